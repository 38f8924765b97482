"""What a stored reply depends on: each change makes another request, and nothing of this machine
does."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.files import NamedFile
from agentevals_action.model.messages import Block, Message, ToolCall
from agentevals_action.model.target import Price, Request, Target
from agentevals_action.targets.calls.description import FileDigests, RequestDescriptions, digest
from tests.support import suites, targets
from tests.support.cases import file_block

MODEL = {"provider": "openai", "model": "m", "config": {"temperature": 0}}
AGENT = {"provider": "cli", "command": ["python3", "agent/run.py"]}
FILES = {
    "agent/run.py": "print('30 days')\n",
    "agent/prompt.md": "You are kind.",
    "evals/terms.txt": "Thirty days.",
    "evals/picture.png": "no picture, but its bytes count",
    "other.txt": "of no concern",
}


def files(root: Path, changes: Mapping[str, str] | None = None) -> Path:
    return suites.write(root, {**FILES, **(changes or {})})


def request(root: Path, **fields: Any) -> Request:
    content = (
        Block("text", "How long?"),
        file_block("file", "terms.txt", root / "evals/terms.txt"),
        file_block("image", "picture.png", root / "evals/picture.png"),
        Block("json", {"b": 1, "a": [True, None]}),
    )
    call = ToolCall("search", {"q": "refund"}, "found", "call_1")
    messages = [
        Message("system", "Be brief."),
        Message("user", content),
        Message("assistant", "", tool_calls=(call,)),
    ]
    return replace(targets.request(root, *messages, folder=root / "evals"), **fields)


def model(**changes: Any) -> Target:
    return targets.target({**MODEL, **changes})


def agent(*globs: str, named: Sequence[str] = ("agent/run.py",), **changes: Any) -> Target:
    update = {
        "cache_key": globs or ("agent/**",),
        "files": tuple(NamedFile(name, "target") for name in named),
    }
    return targets.target({**AGENT, **changes}).model_copy(update=update)


def describe(
    target: Target,
    request: Request,
    variables: Mapping[str, str] | None = None,
    excluded: Sequence[Path] = (),
) -> dict[str, Any]:
    """The description with these variables, all of which the workflow passes on."""
    known = variables or {}
    descriptions = RequestDescriptions(lambda *_: known, known, FileDigests(excluded))
    return descriptions.describe(target, request)


def test_describe__the_same_in_two_folders(tmp_path: Path) -> None:
    first = files(tmp_path / "one")
    second = files(tmp_path / "a much longer name/other", {"other.txt": "changed"})
    for target in (model(), agent()):
        assert describe(target, request(first)) == describe(target, request(second))


def test_describe__a_model_differs_by_all_that_it_is_asked(tmp_path: Path) -> None:
    root = files(tmp_path / "root")
    base = request(root)
    system, user, call = base.messages
    shorter = replace(user, content=user.content[:-1])
    reordered = replace(
        user, content=(*user.content[:-1], Block("json", {"a": [True, None], "b": 1}))
    )
    variants = [
        (model(), base, {}),
        (model(model="n"), base, {}),
        (model(model="${{ MODEL }}"), base, {"MODEL": "a"}),
        (model(model="${{ MODEL }}"), base, {"MODEL": "b"}),
        (model(config={"temperature": 1}), base, {}),
        (model(config={}), base, {}),
        (model(base_url="http://localhost/v1"), base, {}),
        (model(), replace(base, attempt=1), {}),
        (model(), replace(base, repeat=1), {}),
        (model(), replace(base, temperature=0.0), {}),
        (model(), replace(base, messages=[user, call]), {}),
        (model(), replace(base, messages=[user, system, call]), {}),
        (model(), replace(base, messages=[system, shorter, call]), {}),
        (model(), replace(base, messages=[system, reordered, call]), {}),
        (model(), replace(base, messages=[system, user, replace(call, tool_calls=())]), {}),
        (model(), request(files(tmp_path / "terms", {"evals/terms.txt": "Forty days."})), {}),
        (model(), request(files(tmp_path / "picture", {"evals/picture.png": "others"})), {}),
    ]
    assert len({digest(describe(*variant)) for variant in variants}) == len(variants)


def test_describe__not_by_what_no_reply_depends_on(tmp_path: Path) -> None:
    base = request(files(tmp_path))
    changes = {
        "name": "other",
        "judge_target": "judge",
        "retries": 9,
        "timeout_seconds": 3,
        "price": Price(input=1, output=2),
        "max_concurrency": 1,
        "requests_per_minute": 7,
    }
    other = model(api_key="${{ KEY }}").model_copy(update=changes)
    known = describe(model(), base)
    assert describe(other, base, {"KEY": "sk-2"}) == known
    changed = replace(base, eval_id="second", conversation_id="c", metadata={"a": 1}, timeout=1)
    assert describe(model(), changed) == known


def test_describe__an_agent_differs_by_all_that_is_behind_it(tmp_path: Path) -> None:
    root = files(tmp_path / "root")
    base = request(root)
    changed = {
        name: request(files(tmp_path / name, {path: text}))
        for name, path, text in (
            ("code", "agent/run.py", "print('60 days')\n"),
            ("more", "agent/rules/first.md", "Be brief."),
            ("named", "agent/run.py", "print(1)\n"),
        )
    }
    variants = [
        (agent(), base, {}),
        (agent(command=["python3", "agent/run.py", "-v"]), base, {}),
        (agent(cwd="/agent"), base, {}),
        (agent("agent/*.md"), base, {}),
        (agent(), replace(base, eval_id="second"), {}),
        (agent(), replace(base, attempt=1), {}),
        (agent(), replace(base, metadata={"tier": "gold"}), {}),
        (agent(), replace(base, suite_folder=root), {}),
        (agent(), base, {"MODE": "a"}),
        (agent(), base, {"MODE": "b"}),
        (agent(env=["MODE"]), base, {"MODE": "b"}),
        (agent(), changed["code"], {}),
        (agent(), changed["more"], {}),
        (agent("agent/*.md"), changed["named"], {}),
        (agent(named=["agent/run.py", "gone.py"]), base, {}),
    ]
    assert len({digest(describe(*variant)) for variant in variants}) == len(variants)
    only = [describe(agent(env=["MODE"]), base, {"MODE": "a", "OTHER": other}) for other in "12"]
    assert only[0] == only[1]


def test_describe__what_an_agent_writes_is_not_its_code(tmp_path: Path) -> None:
    root = files(tmp_path)
    descriptions = RequestDescriptions(lambda *_: {}, {}, FileDigests())
    before = descriptions.describe(agent(), request(root))
    (root / "agent/state.json").write_text("{}")
    assert descriptions.describe(agent(), request(root)) == before


def test_describe__globs_follow_links_inside_and_skip_byproducts(tmp_path: Path) -> None:
    root = files(tmp_path, {"shared/rules.md": "one"})
    (root / "agent/rules.md").symlink_to("../shared/rules.md")
    before = describe(agent(), request(root))
    (root / "agent/__pycache__").mkdir()
    (root / "agent/__pycache__/run.cpython-311.pyc").write_bytes(b"1")
    (root / "agent/logs").mkdir()
    (root / "agent/logs/last.txt").write_text("written by a run")
    own = [root / "agent/logs"]
    assert describe(agent(), request(root), excluded=own) == before
    assert describe(agent(), request(root)) != before
    (root / "shared/rules.md").write_text("two")
    linked = describe(agent(), request(root), excluded=own)
    assert linked != before
    (root / "agent/run.py").chmod(0o755)
    assert describe(agent(), request(root), excluded=own) != linked


@pytest.mark.parametrize(
    ("target", "fields", "reason"),
    [
        (targets.target(AGENT), {}, "name it in `cache_key`"),
        (model(), {"workspace": Path("/w")}, "works in a workspace"),
        (agent(), {"conversation_id": "c"}, "may remember the conversation"),
        (agent("agent/**", "prompts/*.md"), {}, "no file matches `prompts/*.md`"),
        (agent("agent/gone.py"), {}, "no file matches `agent/gone.py`"),
        (agent("agent/**", "!agent/**"), {}, "leaves no file"),
        (agent("!agent/**"), {}, "leaves no file"),
        (agent("../*"), {}, "no file matches `../*`"),
        (agent("/etc/passwd"), {}, "no file matches `/etc/passwd`"),
        (agent("links/out"), {}, "does not lead to a file of the repository"),
        (agent("links/**"), {}, "does not lead to a file of the repository"),
        (agent("outside"), {}, "does not lead to a file of the repository"),
        (agent("pipes/*"), {}, "does not lead to a file of the repository"),
    ],
)
def test_describe__refuses_what_the_request_does_not_contain(
    tmp_path: Path, target: Target, fields: Mapping[str, Any], reason: str
) -> None:
    root = files(tmp_path / "root")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret").write_text("outside")
    (root / "links").mkdir()
    (root / "links/out").symlink_to(tmp_path / "elsewhere/secret")
    (root / "outside").symlink_to(tmp_path / "elsewhere")
    (root / "pipes").mkdir()
    os.mkfifo(root / "pipes/one")
    with pytest.raises(ValueError, match=re.escape(reason)):
        describe(target, request(root, **fields))


def test_describe__has_variables_by_name_and_value_and_no_secret(tmp_path: Path) -> None:
    headers = {"X-Api-Key": "abc-123-def-456", "Accept": "text/plain"}
    service = {
        "provider": "http",
        "url": "https://${{ HOST }}/${{ PATH_TOKEN }}",
        "headers": headers,
    }
    target = targets.target(service, cache_key=("agent/**",))
    variables = {"HOST": "a.example", "PATH_TOKEN": "secret-1", "MODE": "fast"}
    described = describe(target, request(files(tmp_path)), variables)
    assert described["options"] == {
        "url": "https://${{ HOST }}/${{ PATH_TOKEN }}",
        "headers": {"X-Api-Key": "***", "Accept": "text/plain"},
    }
    assert described["variables"] == {"HOST": "a.example", "MODE": "fast"}
    content = described["messages"][1]["content"]
    assert ["sha256" in block for block in content] == [False, True, True, False]
