"""What a stored reply depends on: each change makes another key, and nothing of this machine
does."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.model.target import Price, Target
from agentevals_action.targets.base import Request
from agentevals_action.targets.cache.file_digests import CacheFiles
from agentevals_action.targets.cache.keys import CacheKeys
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


def files(root: Path, changes: Mapping[str, str | None] | None = None) -> Path:
    return suites.write(
        root,
        {name: text for name, text in {**FILES, **(changes or {})}.items() if text is not None},
    )


def asked(root: Path, **fields: Any) -> Request:
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
    return replace(
        targets.target({**AGENT, **changes}), cache_key=globs or ("agent/**",), files=tuple(named)
    )


def key(
    target: Target,
    request: Request,
    secrets: Sequence[str] = ("sk-1",),
    allowed: Mapping[str, str] | None = None,
    notice: Callable[[str], None] = lambda sentence: pytest.fail(sentence),
    excluded: Sequence[Path] = (),
) -> str | None:
    options = targets.options(target.definition)
    return CacheKeys(allowed or {}, notice, CacheFiles(excluded)).key(
        target, options, request, tuple(secrets)
    )


def test_key__the_same_in_two_folders_and_for_head_and_base(tmp_path: Path) -> None:
    one, other = (
        files(tmp_path / "one"),
        files(tmp_path / "a much longer name" / "other", {"other.txt": "changed"}),
    )
    for target in (model(), agent()):
        found = key(target, asked(one))
        assert found is not None
        assert found == key(target, asked(other))
        assert len(found) == 64


def test_key__another_for_each_thing_that_a_model_is_asked(tmp_path: Path) -> None:
    root = files(tmp_path / "root")
    request = asked(root)
    system, user, call = request.messages
    variants = [
        (model(), request),
        (model(model="n"), request),
        (model(config={"temperature": 1}), request),
        (model(config={}), request),
        (model(base_url="http://localhost/v1"), request),
        (model(), replace(request, attempt=1)),
        (model(), replace(request, messages=[user, call])),
        (model(), replace(request, messages=[user, system, call])),
        (
            model(),
            replace(request, messages=[system, replace(user, content=user.content[:-1]), call]),
        ),
        (
            model(),
            replace(
                request,
                messages=[
                    system,
                    replace(user, content=(*user.content[:-1], Block("json", {"b": 1}))),
                    call,
                ],
            ),
        ),
        (
            model(),
            replace(
                request,
                messages=[replace(system, content=(Block("text", "Be brief."),)), user, call],
            ),
        ),
        (model(), replace(request, messages=[system, user, replace(call, tool_calls=())])),
        (model(), asked(files(tmp_path / "terms", {"evals/terms.txt": "Forty days."}))),
        (model(), asked(files(tmp_path / "picture", {"evals/picture.png": "others"}))),
    ]
    keys = [key(target, asked) for target, asked in variants]
    assert None not in keys
    assert len({found for found in keys if found}) == len(variants)


def test_key__not_of_what_no_reply_depends_on(tmp_path: Path) -> None:
    root = files(tmp_path)
    plain = key(model(), asked(root))
    other = replace(
        model(api_key="sk-2"),
        name="other",
        judge_target="judge",
        retries=9,
        timeout_seconds=3,
        price=Price(1, 2),
        max_concurrency=1,
        requests_per_minute=7,
    )
    assert key(other, asked(root)) == plain
    assert (
        key(
            model(),
            asked(root, eval_id="second", conversation_id="c", metadata={"a": 1}, timeout=1),
        )
        == plain
    )


def test_key__a_file_changed_while_we_run_is_another_question(tmp_path: Path) -> None:
    root = files(tmp_path)
    keys = CacheKeys({}, pytest.fail)
    before = keys.key(model(), targets.options(MODEL), asked(root), ("sk-1",))
    (root / "evals/terms.txt").write_text("Sixty days.")
    assert keys.key(model(), targets.options(MODEL), asked(root), ("sk-1",)) != before


def test_key__depends_on_the_secrets(tmp_path: Path) -> None:
    request = asked(files(tmp_path))
    found = [
        key(model(), request, secrets)
        for secrets in ([], ["sk-1"], ["sk-2"], ["sk-1", "sk-2"], ["sk-1sk-2"])
    ]
    assert len({*found} - {None}) == 5
    assert key(model(), request, ["sk-2", "sk-1", ""]) == found[3]


def test_key__depends_on_a_token_in_a_header(tmp_path: Path) -> None:
    request = asked(files(tmp_path))
    service = {"provider": "http", "url": "http://localhost/ask"}
    found = [
        key(
            replace(targets.target({**service, "headers": headers}), cache_key=("agent/**",)),
            request,
            (),
        )
        for headers in ({"Authorization": "Bearer one"}, {"Authorization": "Bearer two"}, {})
    ]
    assert len({*found} - {None}) == 3


def test_key__none_for_what_must_not_be_cached(tmp_path: Path) -> None:
    root = files(tmp_path)
    assert (
        key(
            targets.target({"provider": "mock", "responses": [{"pattern": "a", "response": "b"}]}),
            asked(root),
        )
        is None
    )
    assert key(model(), asked(root, workspace=root)) is None
    assert key(agent(), asked(root, workspace=root)) is None
    assert key(agent(), asked(root, conversation_id="c")) is None
    assert key(targets.target(AGENT), asked(root)) is None


def test_key__another_for_each_thing_that_is_behind_an_agent(tmp_path: Path) -> None:
    root = files(tmp_path / "root")
    request = asked(root)
    variants = [
        (agent(), request, {}),
        (agent(command=["python3", "agent/run.py", "-v"]), request, {}),
        (agent(cwd="/agent"), request, {}),
        (agent("agent/*.md"), request, {}),
        (agent(), replace(request, eval_id="second"), {}),
        (agent(), replace(request, attempt=1), {}),
        (agent(), replace(request, metadata={"tier": "gold"}), {}),
        (agent(), replace(request, suite_folder=root), {}),
        (agent(), request, {"MODE": "a"}),
        (agent(), request, {"MODE": "b"}),
        (agent(env=["MODE"]), request, {"MODE": "b"}),
        (agent(), asked(files(tmp_path / "changed", {"agent/run.py": "print('60 days')\n"})), {}),
        (agent(), asked(files(tmp_path / "more", {"agent/rules/first.md": "Be brief."})), {}),
        (agent("agent/*.md"), asked(files(tmp_path / "named", {"agent/run.py": "print(1)\n"})), {}),
        (agent(named=["agent/run.py", "gone.py"]), request, {}),
    ]
    keys = [key(target, asked, allowed=allowed) for target, asked, allowed in variants]
    assert None not in keys
    assert len({found for found in keys if found}) == len(variants)


def test_key__only_the_variables_that_an_agent_is_handed(tmp_path: Path) -> None:
    request = asked(files(tmp_path))
    target = agent(env=["MODE"])
    assert key(target, request, allowed={"MODE": "a", "OTHER": "1"}) == key(
        target, request, allowed={"MODE": "a", "OTHER": "2"}
    )


@pytest.mark.parametrize(
    ("globs", "why"),
    [
        (["agent/**", "prompts/*.md"], "no file matches `prompts/*.md`"),
        (["agent/gone.py"], "no file matches `agent/gone.py`"),
        (["agent/**", "!agent/**"], "leaves no file"),
        (["!agent/**"], "leaves no file"),
        (["../*"], "leads out of the repository"),
        (["/etc/passwd"], "leads out of the repository"),
        (["links/out"], "does not lead to a file of the repository"),
        (["links/**"], "does not lead to a file of the repository"),
        (["links/folder/*"], "goes through a symbolic link"),
        (["pipes/*"], "does not lead to a file of the repository"),
    ],
)
def test_key__a_glob_of_no_use_is_told_once(tmp_path: Path, globs: list[str], why: str) -> None:
    root = files(tmp_path / "root")
    (tmp_path / "secret").write_text("outside")
    (root / "links").mkdir()
    (root / "links/out").symlink_to(tmp_path / "secret")
    (root / "links/folder").symlink_to(root / "agent")
    (root / "pipes").mkdir()
    os.mkfifo(root / "pipes/one")
    told: list[str] = []
    keys = CacheKeys({}, told.append)
    target = agent(*globs)
    assert [
        keys.key(target, targets.options(AGENT), asked(root, attempt=sample), ())
        for sample in range(2)
    ] == [None, None]
    (sentence,) = told
    assert sentence.startswith("Replies of the target `default` are not cached: ")
    assert why in sentence


def test_key__globs_follow_links_inside_and_take_no_byproducts(tmp_path: Path) -> None:
    root = files(tmp_path, {"shared/rules.md": "one"})
    (root / "agent/rules.md").symlink_to("../shared/rules.md")
    before = key(agent(), asked(root))
    (root / "agent/__pycache__").mkdir()
    (root / "agent/__pycache__/run.cpython-311.pyc").write_bytes(b"1")
    (root / "agent/logs").mkdir()
    (root / "agent/logs/last.txt").write_text("a run's own")
    assert key(agent(), asked(root), excluded=[root / "agent/logs"]) == before
    assert key(agent(), asked(root)) != before
    (root / "shared/rules.md").write_text("two")
    assert key(agent(), asked(root), excluded=[root / "agent/logs"]) != before


def test_key__whether_a_file_can_be_run_counts(tmp_path: Path) -> None:
    root = files(tmp_path)
    before = key(agent(), asked(root))
    (root / "agent/run.py").chmod(0o755)
    assert key(agent(), asked(root)) != before


def test_key__what_an_agent_writes_meanwhile_is_not_what_it_is_made_of(tmp_path: Path) -> None:
    root = files(tmp_path)
    keys = CacheKeys({}, pytest.fail)
    before = keys.key(agent(named=()), targets.options(AGENT), asked(root), ())
    (root / "agent/state.json").write_text("{}")
    assert keys.key(agent(named=()), targets.options(AGENT), asked(root), ()) == before


def test_key__a_folder_alone_names_all_below_it(tmp_path: Path) -> None:
    root = files(tmp_path)
    assert (
        key(agent("agent"), asked(root))
        == key(agent("./agent/**"), asked(root))
        == key(agent("agent/**/*"), asked(root))
    )


def described(target: Target, request: Request) -> dict[str, Any]:
    return CacheKeys({}, print).describe(target, request)


def test_describe__names_files_and_variables_and_no_key(tmp_path: Path) -> None:
    target = targets.target(
        {**MODEL, "api_key": "${{ KEY }}", "base_url": "${{ URL }}", "config": {"max_tokens": 9}}
    )
    found = described(target, asked(files(tmp_path)))
    assert found["options"] == {
        "model": "m",
        "base_url": "${{ URL }}",
        "config": {"max_tokens": 9},
    }
    content = found["messages"][1]["content"]
    assert [sorted(block) for block in content] == [
        ["type", "value"],
        ["sha256", "type", "value"],
        ["sha256", "type", "value"],
        ["type", "value"],
    ]


def test_describe__keeps_the_names_of_headers_alone(tmp_path: Path) -> None:
    headers = {"X-Api-Key": "abc-123-def-456", "Accept": "text/plain"}
    target = replace(
        targets.target({"provider": "http", "url": "https://a.example", "headers": headers}),
        cache_key=("agent/**",),
    )
    found = described(target, asked(files(tmp_path)))
    assert found["options"]["headers"] == ["Accept", "X-Api-Key"]
    assert set(found["behind"]["files"]) == {"agent/run.py", "agent/prompt.md"}


@pytest.mark.parametrize(
    ("target", "fields", "reason"),
    [
        (targets.target(AGENT), {}, "name it in `cache_key`"),
        (model(), {"workspace": Path("/w")}, "works in a workspace"),
        (agent("missing/**"), {}, "no file matches `missing/**`"),
    ],
)
def test_describe__refuses_what_the_reply_depends_on_and_the_request_lacks(
    tmp_path: Path, target: Target, fields: Mapping[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        described(target, asked(files(tmp_path), **fields))
