"""Stored replies: complete and bounded. A problem with a file costs calls, never a run."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.model.messages import Block, Message, ToolCall
from agentevals_action.model.target import Price
from agentevals_action.model.trace import Trace, Usage
from agentevals_action.settings import Settings
from agentevals_action.targets.calls.description import digest
from agentevals_action.targets.calls.reply_store import (
    ReplyStore,
    StoredCalls,
    StoredReply,
    check_cache,
)
from tests.support import targets
from tests.support.openai_server import OpenAIServer
from tests.support.repositories import Repository

CALL = ToolCall("search", {"q": [1, None, {"deep": True}]}, "found", "call_1", 12.5)
FULL = Trace(
    messages=(
        Message("assistant", "Let me see. \ud800 é", tool_calls=(CALL,)),
        Message("tool", "found", tool_call_id="call_1", name="search"),
        Message("assistant", (Block("text", "30 days"), Block("json", {"days": 30}))),
    ),
    tool_calls=(CALL,),
    llm_call_count=2,
    usage=Usage(input_tokens=11, output_tokens=7, cached_tokens=3, cost_usd=0.0125),
    cost_source="reply",
    duration_ms=1234.5,
)
KEYS = [digest(number) for number in range(3)]


def store(folder: Path, notice: Callable[[str], None] = pytest.fail) -> ReplyStore:
    return ReplyStore(folder / "replies", notice)


def put(stored: ReplyStore, trace: Trace, key: str = KEYS[0]) -> None:
    stored.put(key, StoredReply("EVAL.yaml: first", {"messages": ["q"]}, trace))


def file_of(folder: Path, key: str = KEYS[0]) -> Path:
    return folder / "replies" / key[:2] / f"{key}.json"


@pytest.mark.parametrize(
    "trace",
    [FULL, Trace((Message("assistant", "long " * 100_000),))],
    ids=["all figures", "a long text"],
)
def test_get__what_was_put__marked_as_cached(tmp_path: Path, trace: Trace) -> None:
    put(store(tmp_path), trace)
    assert store(tmp_path).get(KEYS[0]) == replace(trace, cached=True)
    assert store(tmp_path).get(KEYS[1]) is None


def test_put__replaces_an_earlier_reply_and_leaves_one_readable_file(tmp_path: Path) -> None:
    for text in ("one", "two"):
        put(store(tmp_path), Trace((Message("assistant", text),)))
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file == file_of(tmp_path)
    assert file.read_text() == (
        '{\n "test": "EVAL.yaml: first",\n "request": {\n  "messages": [\n   "q"\n  ]\n },\n'
        ' "reply": {\n  "messages": [\n   {\n    "role": "assistant",\n    "content": "two"\n'
        "   }\n  ]\n }\n}\n"
    )


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"nonsense",
        b"[]",
        b'{"test": "t", "request": {}, "reply": {}}',
        b'{"test": "t", "request": {}, "reply": {"messages": [{"role": "nobody", "content": ""}]}}',
        b'{"request": {}}',
        b"[" * 100_000,
    ],
)
def test_get__a_damaged_file_is_a_miss_with_a_notice(tmp_path: Path, damage: bytes) -> None:
    notices: list[str] = []
    stored = store(tmp_path, notices.append)
    put(stored, FULL)
    file_of(tmp_path).write_bytes(damage)
    assert stored.get(KEYS[0]) is None
    assert notices == [f"The stored reply {KEYS[0]}.json is damaged and is not used."]
    put(stored, FULL)
    assert stored.get(KEYS[0]) == replace(FULL, cached=True)


def test_put__a_folder_that_cannot_be_written_costs_the_reply_alone(tmp_path: Path) -> None:
    notices: list[str] = []
    (tmp_path / "replies").write_text("not a folder")
    put(store(tmp_path, notices.append), FULL)
    assert notices == ["A reply is not stored: Not a directory."]


def test_put__what_is_not_json_is_not_stored(tmp_path: Path) -> None:
    notices: list[str] = []
    reply = StoredReply("EVAL.yaml: first", {"metadata": float("nan")}, FULL)
    store(tmp_path, notices.append).put(KEYS[0], reply)
    (notice,) = notices
    assert notice.startswith("A reply is not stored: ")
    assert not (tmp_path / "replies").exists()


def test_prune__the_longest_unused_replies_beyond_a_size_and_an_age(tmp_path: Path) -> None:
    stored = store(tmp_path)
    now = time.time()
    for key, days in zip(KEYS, (40, 2, 1), strict=True):
        put(stored, FULL, key)
        os.utime(file_of(tmp_path, key), (now, now - days * 86_400))
    size = file_of(tmp_path).stat().st_size
    stored.prune()
    assert [file_of(tmp_path, key).exists() for key in KEYS] == [False, True, True]
    assert stored.get(KEYS[1])  # it is the last used now
    stored.prune(max_bytes=size)
    assert [file_of(tmp_path, key).exists() for key in KEYS] == [False, True, False]


def test_complete__a_stored_reply_has_the_price_of_today(tmp_path: Path) -> None:
    async def costs(url: str) -> list[tuple[float | None, bool]]:
        found = []
        for price in (None, Price(input=1.0, output=1.0), Price(input=100.0, output=100.0)):
            target = targets.target(
                {"provider": "openai", "model": "m", "base_url": url}, price=price
            )
            calls = targets.calls()
            stored = StoredCalls(calls, lambda *_: {}, "on", tmp_path, "replies", pytest.fail)
            trace = await stored.complete(target, targets.request(tmp_path, "hello"))
            found.append((trace.usage.cost_usd, trace.cached))
            await calls.close()
            await stored.close()
        return found

    with OpenAIServer(otherwise="hi") as server:
        assert asyncio.run(costs(server.url)) == [
            (None, False),
            (pytest.approx(18e-6), True),
            (pytest.approx(1800e-6), True),
        ]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"cache": "read"}, "input `cache`: `read` needs a folder"),
        ({"cache-dir": "link"}, "link, is no folder, or a symbolic link leads to it"),
        ({"cache-dir": "link/below"}, "link/below, is no folder, or a symbolic link leads to it"),
        ({"cache-dir": "file", "cache": "replay"}, "file, is no folder, or a symbolic link"),
        ({"cache-dir": "tracked"}, "tracked, is tracked by git"),
        ({"cache-dir": "tracked", "cache": "replay"}, ""),
        ({"cache-dir": "new/folder"}, ""),
    ],
)
def test_check_cache__refuses_a_folder_that_a_change_could_bring(
    tmp_path: Path, inputs: dict[str, str], problem: str
) -> None:
    workspace = Repository.create(tmp_path / "work", {"tracked/a.json": "{}"}).path
    (workspace / "link").symlink_to(tmp_path)
    (workspace / "file").write_text("")
    settings = Settings.model_validate(inputs)
    if not problem:
        asyncio.run(check_cache(settings, workspace, os.environ))
        return
    with pytest.raises(InvalidInput) as refused:
        asyncio.run(check_cache(settings, workspace, os.environ))
    assert problem in str(refused.value)
    assert refused.value.hint
