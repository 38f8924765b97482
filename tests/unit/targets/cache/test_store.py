"""Replies kept between runs: complete and bounded. A problem with the file costs calls, never
a run."""

import asyncio
import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.targets.cache.store import (
    FILENAME,
    REPLY_LIMIT,
    Cache,
    CacheLimits,
    check_folder,
    compress,
)

T = TypeVar("T")
DAY = 24 * 60 * 60
CALL = ToolCall("search", {"q": [1, None, {"deep": True}]}, "found", "call_1", 12.5)
FULL = Trace(
    messages=(
        Message("assistant", "Let me see. \ud800 é", tool_calls=(CALL,)),
        Message("tool", "found", tool_call_id="call_1", name="search"),
        Message("assistant", (Block("text", "30 days"), Block("json", {"days": 30}))),
    ),
    tool_calls=(CALL,),
    llm_call_count=2,
    usage=Usage(11, 7, 3, cost_usd=0.0125),
    duration_ms=1234.5,
)


def key(number: int = 1) -> str:
    return f"{number:064x}"


def answer(text: str) -> Trace:
    return Trace((Message("assistant", text),))


class Notices(list[str]):
    """Collects sentences."""

    def __call__(self, sentence: str) -> None:
        self.append(sentence)


def using(
    folder: Path,
    work: Callable[[Cache], Awaitable[T]],
    mode: str = "on",
    notice: Callable[[str], None] | None = None,
    limits: CacheLimits | None = None,
    now: float = 1_000_000_000,
) -> T:
    """What the work gives with a cache that is closed after it; a notice fails the test unless
    somebody listens."""

    async def run() -> T:
        opened = Cache(folder, mode, pytest.fail if notice is None else notice, limits, lambda: now)
        try:
            return await work(opened)
        finally:
            await opened.close()

    return asyncio.run(run())


def put(folder: Path, trace: Trace = FULL, at: str | None = None, **how: Any) -> int:
    async def work(opened: Cache) -> int:
        await opened.put(at or key(), trace)
        return opened.stored

    return using(folder, work, **how)


def get(folder: Path, at: str | None = None, **how: Any) -> Trace | None:
    return using(folder, lambda opened: opened.get(at or key()), **how)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def edit(folder: Path, *commands: tuple[str, tuple[Any, ...]]) -> None:
    """What a stranger does to the file."""
    database = sqlite3.connect(folder / FILENAME)
    with database:
        for command, values in commands:
            database.execute(command, values)
    database.close()


def test_get__what_was_put_with_its_figures_marked_as_cached(tmp_path: Path) -> None:
    assert put(tmp_path) == 1
    assert get(tmp_path) == replace(FULL, cached=True)
    assert get(tmp_path, mode="read") == replace(FULL, cached=True)


def test_get__counts_hits_and_misses(tmp_path: Path) -> None:
    async def work(opened: Cache) -> tuple[int, int, int]:
        await opened.get(key())
        await opened.put(key(), FULL)
        await opened.get(key())
        await opened.get(key(2))
        return opened.hits, opened.misses, opened.stored

    assert using(tmp_path, work) == (1, 2, 1)


def test_get__unknown_figures_stay_unknown(tmp_path: Path) -> None:
    put(tmp_path, answer("30 days"))
    assert get(tmp_path) == replace(answer("30 days"), cached=True)


@pytest.mark.parametrize("text", ["short", "long " * 100_000, os.urandom(3000).hex(), ""])
def test_get__any_text(tmp_path: Path, text: str) -> None:
    put(tmp_path, answer(text))
    found = get(tmp_path)
    assert found is not None
    assert found.output == text


def test_put__the_later_one_counts(tmp_path: Path) -> None:
    put(tmp_path, answer("one"))
    put(tmp_path, answer("two"))
    found = get(tmp_path)
    assert found is not None
    assert found.output == "two"


def test_close__leaves_one_file_and_opens_again_when_asked(tmp_path: Path) -> None:
    async def work(opened: Cache) -> Trace | None:
        await opened.put(key(), FULL)
        await opened.close()
        assert names(tmp_path) == [FILENAME]
        return await opened.get(key())

    assert using(tmp_path, work) is not None
    assert names(tmp_path) == [FILENAME]


def test_open__touches_nothing_before_it_is_used(tmp_path: Path) -> None:
    async def work(opened: Cache) -> None:
        return None

    using(tmp_path / "cache", work)
    assert not (tmp_path / "cache").exists()


def test_read__finds_nothing_and_makes_nothing(tmp_path: Path) -> None:
    assert get(tmp_path / "cache", mode="read") is None
    assert put(tmp_path / "cache", mode="read") == 0
    assert not (tmp_path / "cache").exists()


def test_read__changes_nothing(tmp_path: Path) -> None:
    put(tmp_path)
    before = (tmp_path / FILENAME).read_bytes()
    assert put(tmp_path, at=key(2), mode="read") == 0
    assert get(tmp_path, mode="read", now=2_000_000_000) is not None
    assert (tmp_path / FILENAME).read_bytes() == before
    assert names(tmp_path) == [FILENAME]


def test_put__no_reply_out_of_a_cache(tmp_path: Path) -> None:
    async def work(opened: Cache) -> int:
        await opened.put(key(1), replace(FULL, cached=True))
        return opened.stored

    assert using(tmp_path, work) == 0


def test_put__nothing_that_cannot_be_kept(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    notices = Notices()

    async def work(opened: Cache) -> int:
        await opened.put(key(1), answer("x" * REPLY_LIMIT))
        await opened.put(key(2), replace(FULL, tool_calls=(ToolCall("t", deep),)))
        return opened.stored

    assert using(tmp_path, work, notice=notices) == 0
    assert notices == ["A reply is too large or too deep to be stored in the cache."] * 2


@pytest.mark.parametrize("value", [b"", b"j{}", "text", 7, 1.5, b"z" + bytes(32), bytes(32)])
def test_get__a_row_that_is_not_a_reply_is_a_miss_and_replaced(
    tmp_path: Path, value: object
) -> None:
    put(tmp_path)
    edit(tmp_path, ("UPDATE replies SET value = ?", (value,)))
    assert get(tmp_path) is None
    put(tmp_path)
    assert get(tmp_path) is not None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"j",
        b"jnull",
        b"j{}",
        b'j{"messages": 1}',
        b"j[",
        b"z",
        b"zzz",
        b"j" + b"[" * 100_000,
    ],
)
def test_get__nonsense_is_a_miss(tmp_path: Path, data: bytes) -> None:
    put(tmp_path)
    edit(tmp_path, ("UPDATE replies SET value = ?", (data,)))
    assert get(tmp_path) is None


def test_get__does_not_unfold_more_than_a_reply(tmp_path: Path) -> None:
    put(tmp_path)
    value = compress('{"messages": [], "x": "' + " " * (REPLY_LIMIT + 1) + '"}')
    assert len(value) < REPLY_LIMIT / 100
    edit(tmp_path, ("UPDATE replies SET value = ?", (value,)))
    assert get(tmp_path) is None


def broken_pages(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    file.write_bytes(data)


@pytest.mark.parametrize(
    "harm",
    [
        lambda file: file.write_bytes(b"no database at all" * 1000),
        lambda file: file.write_bytes(file.read_bytes()[:5000]),
        broken_pages,
        lambda file: edit(
            file.parent,
            ("CREATE TRIGGER t AFTER INSERT ON replies BEGIN DELETE FROM replies; END", ()),
        ),
        lambda file: edit(file.parent, ("CREATE VIEW v AS SELECT 1", ())),
        lambda file: edit(
            file.parent, ("DROP TABLE replies", ()), ("CREATE TABLE replies (digest TEXT)", ())
        ),
        lambda file: edit(
            file.parent,
            ("PRAGMA writable_schema = ON", ()),
            ("UPDATE sqlite_master SET sql = CAST(x'ff' AS TEXT)", ()),
        ),
    ],
)
def test_damage__is_dropped_with_one_notice_and_the_run_goes_on(
    tmp_path: Path, harm: Callable[[Path], object]
) -> None:

    async def fill(opened: Cache) -> None:
        for number in range(50):
            await opened.put(key(number), answer(os.urandom(500).hex()))

    using(tmp_path, fill)
    harm(tmp_path / FILENAME)
    notices = Notices()

    async def work(opened: Cache) -> Trace | None:
        for number in range(50):
            assert await opened.get(key(number)) is None
        await opened.put(key(), FULL)
        return await opened.get(key())

    assert using(tmp_path, work, notice=notices) is not None
    (sentence,) = notices
    assert sentence.startswith("The cache was damaged (")
    assert sentence.endswith(") and is deleted; this run starts an empty one.")
    assert names(tmp_path) == [FILENAME]
    assert get(tmp_path) is not None


def test_damage__is_left_where_it_is_when_only_reading(tmp_path: Path) -> None:
    (tmp_path / FILENAME).write_bytes(b"no database at all" * 1000)
    notices = Notices()
    assert get(tmp_path, mode="read", notice=notices) is None
    assert notices == ["The cache is damaged (file is not a database); this run goes without it."]
    assert names(tmp_path) == [FILENAME]


def test_damage__of_an_empty_file_is_none(tmp_path: Path) -> None:
    (tmp_path / FILENAME).touch()
    put(tmp_path)
    assert get(tmp_path) is not None


def test_locked__reads_what_is_there(tmp_path: Path) -> None:
    put(tmp_path)
    other = sqlite3.connect(tmp_path / FILENAME, isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("BEGIN IMMEDIATE")
    notices = Notices()

    async def work(opened: Cache) -> tuple[Trace | None, int]:
        await opened.put(key(2), FULL)
        return await opened.get(key()), opened.stored

    found, stored = using(tmp_path, work, notice=notices, limits=CacheLimits(patience=0.05))
    other.close()
    assert found is not None
    assert stored == 0
    assert notices == [
        "The cache cannot be written (database is locked); replies are only read from it."
    ]


def test_locked__goes_without_what_cannot_be_read(tmp_path: Path) -> None:
    put(tmp_path)
    other = sqlite3.connect(tmp_path / FILENAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    notices = Notices()
    assert get(tmp_path, notice=notices, limits=CacheLimits(patience=0.05)) is None
    other.close()
    assert notices == [
        "The cache cannot be written (database is locked); replies are only read from it.",
        "The cache cannot be used (database is locked); this run goes without it.",
    ]


def test_place__that_is_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    notices = Notices()
    assert get(tmp_path / "cache", notice=notices) is None
    assert notices == ["The cache cannot be written (File exists); replies are only read from it."]


def test_place__that_became_a_link_meanwhile_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    notices = Notices()

    async def work(opened: Cache) -> int:
        (tmp_path / "cache" / FILENAME).symlink_to(tmp_path / "elsewhere")
        await opened.put(key(), FULL)
        assert await opened.get(key()) is None
        return opened.stored

    assert using(tmp_path / "cache", work, notice=notices) == 0
    assert not (tmp_path / "elsewhere").exists()
    assert (
        notices[-1]
        == "The cache cannot be used (a symbolic link leads elsewhere); this run goes without it."
    )


def test_close__lets_go_what_nobody_asks_for(tmp_path: Path) -> None:
    start = 1_000_000_000
    put(tmp_path, at=key(1), now=start)
    put(tmp_path, at=key(2), now=start)
    assert get(tmp_path, key(1), now=start + 20 * DAY) is not None
    assert get(tmp_path, key(3), now=start + 31 * DAY) is None
    assert get(tmp_path, key(1), now=start + 31 * DAY) is not None
    assert get(tmp_path, key(2), now=start + 31 * DAY) is None


def test_close__keeps_to_its_size_by_what_was_used_last(tmp_path: Path) -> None:
    limits = CacheLimits(size=500_000)
    for number in range(8):
        put(
            tmp_path,
            answer(os.urandom(50_000).hex()),
            key(number),
            now=1_000_000_000 + number,
            limits=limits,
        )
    assert get(tmp_path, key(0), now=1_000_000_100, limits=limits) is not None
    for number in range(8, 16):
        put(
            tmp_path,
            answer(os.urandom(50_000).hex()),
            key(number),
            now=1_000_000_200 + number,
            limits=limits,
        )
    kept = [number for number in range(16) if get(tmp_path, key(number), mode="read") is not None]
    assert kept == list(range(16 - len(kept), 16))
    assert 6 <= len(kept) <= 10
    assert (tmp_path / FILENAME).stat().st_size < 700_000


def _write(folder: Path, first: int, count: int) -> None:
    async def work(opened: Cache) -> None:
        for number in range(first, first + count):
            await opened.put(key(number), answer(f"answer {number}"))
            await opened.get(key(number))

    using(folder, work)


def _write_until_killed(folder: Path, ready: Any) -> None:
    async def work(opened: Cache) -> None:
        for number in range(1_000_000):
            await opened.put(key(number), answer(f"answer {number}"))
            if number == 50:
                ready.set()

    using(folder, work)


@pytest.mark.slow
def test_processes__share_one_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_write, args=(tmp_path, number * 20, 20)) for number in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4

    async def work(opened: Cache) -> int:
        return sum([await opened.get(key(number)) is not None for number in range(80)])

    assert using(tmp_path, work) == 80
    assert names(tmp_path) == [FILENAME]


def test_processes__one_that_is_killed_leaves_the_file_whole(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    worker = context.Process(target=_write_until_killed, args=(tmp_path, ready))
    worker.start()
    assert ready.wait(60)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join(60)

    async def work(opened: Cache) -> list[str]:
        return [found.output for number in range(50) if (found := await opened.get(key(number)))]

    assert using(tmp_path, work) == [f"answer {number}" for number in range(50)]
    assert names(tmp_path) == [FILENAME]


def test_get__many_at_once(tmp_path: Path) -> None:
    async def work(opened: Cache) -> list[Trace | None]:
        await asyncio.gather(
            *(opened.put(key(number), answer(str(number))) for number in range(100))
        )
        return await asyncio.gather(*(opened.get(key(number)) for number in range(100)))

    assert [found.output for found in using(tmp_path, work) if found] == [
        str(number) for number in range(100)
    ]


def test_get__one_that_is_given_up_leaves_the_others(tmp_path: Path) -> None:
    put(tmp_path)

    async def work(opened: Cache) -> Trace | None:
        asked = [asyncio.create_task(opened.get(key())) for _ in range(5)]
        await asyncio.sleep(0)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        return await opened.get(key())

    assert using(tmp_path, work) is not None


def test_check_folder__a_folder_of_its_own(tmp_path: Path) -> None:
    check_folder(tmp_path / ".agentevals-cache", tmp_path, tracked=False)
    put(tmp_path / "deep" / "cache")
    check_folder(tmp_path / "deep" / "cache", tmp_path, tracked=False)


@pytest.mark.parametrize(
    ("name", "tracked", "problem"),
    [
        (".", False, "is not a folder inside the workspace"),
        ("../cache", False, "is not a folder inside the workspace"),
        ("/var/cache", False, "is not a folder inside the workspace"),
        (".git/cache", False, "is inside git's own"),
        ("cache", True, "is tracked by git"),
        ("link", False, "has a symbolic link in it (link)"),
        ("link/below", False, "has a symbolic link in it (link)"),
        ("linked", False, f"has a symbolic link in it (linked/{FILENAME})"),
        ("file", False, "cannot be used: its path is not a folder"),
        ("file/below", False, "cannot be used: its path is not a folder"),
        ("strange", False, "cannot be used: its path is not a folder"),
    ],
)
def test_check_folder__refuses_what_a_change_could_bring(
    tmp_path: Path, name: str, tracked: bool, problem: str
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "link").symlink_to(tmp_path)
    (workspace / "linked").mkdir()
    (workspace / "linked" / FILENAME).symlink_to(tmp_path / "elsewhere")
    (workspace / "file").write_text("")
    (workspace / "strange" / FILENAME).mkdir(parents=True)
    with pytest.raises(InvalidInput, match=r"^the cache's folder ") as refused:
        check_folder(workspace / name, workspace, tracked)
    assert problem in str(refused.value)
    assert refused.value.hint
