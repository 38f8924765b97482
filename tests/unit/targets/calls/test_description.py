"""What a stored reply depends on: each change makes another request, and nothing of this machine
does."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.messages import Block, Message, ToolCall
from agentevals_action.model.target import Price, Request, Target
from agentevals_action.targets.calls.description import describe_request, digest, first_difference
from tests.support import suites, targets
from tests.support.cases import file_block

MODEL = {"provider": "openai", "model": "m", "config": {"temperature": 0}}
AGENT = {"provider": "cli", "command": ["python3", "agent/run.py"]}
FILES = {
    "evals/terms.txt": "Thirty days.",
    "evals/picture.png": "no picture, but its bytes count",
    "other.txt": "of no concern",
}


def files(root: Path, changes: Mapping[str, str] | None = None) -> Path:
    return suites.write(root, {**FILES, **(changes or {})})


DATA = {"b": 1, "a": [True, None]}


def messages_of(*question: Block) -> list[Message]:
    call = ToolCall("search", {"q": "refund"}, "found", "call_1")
    return [
        Message("system", "Be brief."),
        Message("user", question),
        Message("assistant", "", tool_calls=(call,)),
    ]


def request(root: Path, **fields: Any) -> Request:
    messages = messages_of(
        Block("text", "How long?"),
        file_block("file", "terms.txt", root / "evals/terms.txt"),
        file_block("image", "picture.png", root / "evals/picture.png"),
        Block("json", DATA),
    )
    return replace(targets.request(root, *messages, folder=root / "evals"), **fields)


def model(**changes: Any) -> Target:
    return targets.target({**MODEL, **changes})


def describe(
    target: Target, request: Request, variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    return describe_request(target, request, lambda *_: variables or {})


def test_describe__the_same_in_two_folders(tmp_path: Path) -> None:
    first = files(tmp_path / "one")
    second = files(tmp_path / "a much longer name/other", {"other.txt": "changed"})
    assert describe(model(), request(first)) == describe(model(), request(second))


def test_describe__the_digest_is_that_of_earlier_versions(tmp_path: Path) -> None:
    """It is the name of the file of a stored reply."""
    known = {"MODEL": "gpt-5-mini", "KEY": "sk-2"}
    target = model(model="${{ MODEL }}", api_key="${{ KEY }}")
    wanted = "9f04527c2afd111a40a0ff4f6b5c26a9ed1c369caad8b1bf35747cd82d8b4d4b"
    asked = targets.request(tmp_path, *messages_of(Block("text", "How long?"), Block("json", DATA)))
    assert digest(describe(target, asked, known)) == wanted


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


@pytest.mark.parametrize(
    ("target", "fields", "reason"),
    [
        (targets.target(AGENT), {}, "does not contain its code"),
        (model(), {"workspace": Path("/w")}, "works in a workspace"),
    ],
)
def test_describe__refuses_what_the_request_does_not_contain(
    tmp_path: Path, target: Target, fields: Mapping[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        describe(target, request(files(tmp_path), **fields))


def test_describe__has_variables_by_name_and_value_and_no_secret(tmp_path: Path) -> None:
    target = model(base_url="https://${{ HOST }}/${{ PATH_TOKEN }}", api_key="${{ KEY }}")
    variables = {"HOST": "a.example", "PATH_TOKEN": "secret-1", "KEY": "sk-2", "MODE": "fast"}
    described = describe(target, request(files(tmp_path)), variables)
    assert described["options"] == {
        "model": "m",
        "base_url": "https://${{ HOST }}/${{ PATH_TOKEN }}",
        "config": {"temperature": 0},
    }
    assert described["variables"] == {"HOST": "a.example"}
    content = described["messages"][1]["content"]
    assert ["sha256" in block for block in content] == [False, True, True, False]


REQUEST: dict[str, Any] = {
    "provider": "openai",
    "options": {"model": "m"},
    "sample": 1,
    "messages": [{"role": "user", "content": "Hi"}],
}


def changed(**fields: Any) -> dict[str, Any]:
    return {**REQUEST, **fields}


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        ([], ""),
        ([changed(sample=2)], "`sample` is 1 instead of 2"),
        ([changed(options={"model": "n"})], '`options.model` is "m" instead of "n"'),
        ([changed(options={})], '`options.model` ("m") is new'),
        ([changed(options={"model": "m", "temperature": 0})], "`options.temperature` is missing"),
        ([changed(sample=True)], "`sample` is 1 instead of true"),
        # The one with the most values in common, not the first.
        (
            [changed(provider="azure", options={"model": "n"}), changed(sample=3)],
            "`sample` is 1 instead of 3",
        ),
    ],
)
def test_difference__of_the_nearest_request(recorded: list[dict[str, Any]], wanted: str) -> None:
    assert first_difference(REQUEST, recorded) == wanted


def asked(text: str) -> dict[str, Any]:
    return {**REQUEST, "messages": [{"role": "user", "content": text}]}


LINE = "a line of the prompt that both have in common, word for word, and it ends with "
JUDGE = "Between {}:\n<answer>\n{}\n</answer>"


@pytest.mark.parametrize(
    ("text", "recorded", "wanted"),
    [
        # The line, and what differs in it.
        (
            *(f"Be kind.\n{LINE}tea.", f"Be kind.\n{LINE}milk."),
            '(line 2) is "…d, and it ends with tea." instead of "…d, and it ends with milk."',
        ),
        # A text that only goes on.
        (
            *("Be kind.\nBe brief.\nBe quick.", "Be kind.\nBe brief."),
            '(line 2) is "Be brief. Be quick." instead of "Be brief."',
        ),
        # The mark of a judge's prompt counts only where nothing else differs.
        (
            *(JUDGE.format("a" * 32, "tea"), JUDGE.format("b" * 32, "milk")),
            '(line 3) is "tea </answer>" instead of "milk </answer>"',
        ),
        (
            *(JUDGE.format("a" * 32, "tea"), JUDGE.format("b" * 32, "tea")),
            'is "Between aaaa',
        ),
    ],
    ids=["long", "longer", "judge", "mark"],
)
def test_difference__of_two_texts(text: str, recorded: str, wanted: str) -> None:
    difference = first_difference(asked(text), [asked(recorded)])
    assert difference.startswith(f"`messages[0].content` {wanted}")
