"""`setup` and `prepare`, with real processes."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.execution.preparation import LineSplitter, Preparation

ENVIRONMENT = {"PATH": os.environ["PATH"]}


class Log:
    """Keeps what is expected; `answer`, a file, is made when `awaited` is expected."""

    def __init__(self, awaited: str = "", answer: Path | None = None) -> None:
        self.lines: list[str] = []
        self._awaited, self._answer = awaited, answer

    @contextmanager
    def section(self, title: str) -> Iterator[Callable[[str], None]]:
        self.lines.append(f"[{title}")
        yield self.say
        self.lines.append("]")

    def say(self, line: str) -> None:
        self.lines.append(line)
        if self._answer and line == self._awaited:
            self._answer.touch()


def setup(
    command: str, folder: Path, log: Log, withheld: tuple[str, ...] = ()
) -> AttemptError | None:
    prepared = Preparation(command, None, folder, ENVIRONMENT, withheld)
    try:
        asyncio.run(prepared.run(folder, log.section))
    except AttemptError as error:
        return error
    return None


def test_setup__runs_in_the_folder_and_tells_both_streams(tmp_path: Path) -> None:
    log = Log()
    assert setup("pwd; echo; echo oops >&2; printf end", tmp_path, log) is None
    assert sorted(log.lines) == sorted(["[setup", str(tmp_path), "oops", "end", "]"])


def test_setup__is_logged_while_it_runs(tmp_path: Path) -> None:
    log = Log("waiting", tmp_path / "answer")
    assert (
        setup("echo waiting; while [ ! -e answer ]; do sleep 0.02; done; echo done", tmp_path, log)
        is None
    )
    assert log.lines == ["[setup", "waiting", "done", "]"]


def test_setup__a_failure_says_how_and_the_last_lines(tmp_path: Path) -> None:
    refusal = setup("seq 39 40 >&2; exit 3", tmp_path, Log(), ("OPENAI_API_KEY",))
    assert refusal
    assert refusal.kind == "prepare"
    assert str(refusal) == "`setup` ended with exit code 3:\n39\n40"
    assert "OPENAI_API_KEY" in refusal.hint


def test_setup__a_folder_that_is_not_there_is_no_crash(tmp_path: Path) -> None:
    refusal = setup("true", tmp_path / "gone", Log())
    assert refusal
    assert str(refusal) == f"`setup` cannot be started: there is no folder {tmp_path / 'gone'}"


def test_setup__sees_the_environment_given_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    log = Log()
    setup("env", tmp_path, log)
    assert not any("sk-0123456789" in line for line in log.lines)


def preparation(folder: Path, setup: str | None, prepare: str | None) -> Preparation:
    return Preparation(setup, prepare, folder, ENVIRONMENT)


def trees(folder: Path) -> tuple[Path, Path]:
    head, base = folder / "head", folder / "base"
    head.mkdir()
    base.mkdir()
    return head, base


def test_run__setup_once_for_both_trees_and_prepare_in_each(tmp_path: Path) -> None:
    head, base = trees(tmp_path)
    log = Log()
    both = preparation(
        head,
        "echo once >> setup.txt; echo hello; sleep 0.1; touch ready",
        "test -e ../head/ready && touch prepared",
    )

    async def make() -> None:
        await asyncio.gather(both.run(head, log.section), both.run(base, log.section))

    asyncio.run(make())
    assert (head / "setup.txt").read_text() == "once\n"
    assert (head / "prepared").exists()
    assert (base / "prepared").exists()
    assert log.lines == ["[setup", "hello", "]"]


def test_run__a_failed_setup_is_every_trees_and_has_no_second_try(tmp_path: Path) -> None:
    head, base = trees(tmp_path)
    log = Log()
    both = preparation(
        head, "echo tried >> setup.txt; echo no such package; exit 1", "touch prepared"
    )

    async def make() -> list[BaseException | None]:
        return [
            *await asyncio.gather(
                both.run(head, log.section), both.run(base, log.section), return_exceptions=True
            )
        ]

    errors = asyncio.run(make())
    assert [(type(error), str(error)) for error in errors] == [
        (AttemptError, "`setup` ended with exit code 1: no such package")
    ] * 2
    assert [error.kind for error in errors if isinstance(error, AttemptError)] == ["prepare"] * 2
    assert errors[0] is not errors[1]
    assert (head / "setup.txt").read_text() == "tried\n"
    assert not list(tmp_path.glob("*/prepared"))


def test_run__a_failed_prepare_is_of_its_tree_alone(tmp_path: Path) -> None:
    head, base = trees(tmp_path)
    (head / "here").touch()
    both = preparation(head, None, "ls here")

    async def make() -> None:
        await both.run(head, Log().section)
        with pytest.raises(AttemptError, match="`prepare` ended with exit code"):
            await both.run(base, Log().section)

    asyncio.run(make())


def test_run__prepare_is_not_repeated_in_a_tree(tmp_path: Path) -> None:
    prepared = preparation(tmp_path, None, "echo once >> prepared.txt")

    async def make() -> None:
        await asyncio.gather(
            *(prepared.run(tmp_path, Log().section) for _ in range(2)),
        )
        await prepared.run(tmp_path, Log().section)

    asyncio.run(make())
    assert (tmp_path / "prepared.txt").read_text() == "once\n"


def test_run__nothing_to_do_says_nothing(tmp_path: Path) -> None:
    log = Log()
    asyncio.run(preparation(tmp_path, None, None).run(tmp_path, log.section))
    assert log.lines == []


def test_line_splitter__pieces_become_lines_whatever_they_are_cut_at() -> None:
    for size in (1, 2, 3, 7, 100):
        expected: list[str] = []
        lines = LineSplitter(expected.append)
        data = "häl\u20aclo\r\n\r\n10%\r100%\ntail".encode()
        for start in range(0, len(data), size):
            lines.add(data[start : start + size])
        lines.end()
        assert expected == ["häl\u20aclo", "100%", "tail"]


def test_line_splitter__a_long_line_is_passed_on_whole_and_bytes_are_no_text() -> None:
    expected: list[str] = []
    lines = LineSplitter(expected.append)
    lines.add(b"x" * 100_000)
    lines.add(b"y" * 100_000 + b"\n\xff\xfe!\n\xe2")
    lines.end()
    assert [len(expected[0]), *expected[1:]] == [200_000, "\ufffd\ufffd!", "\ufffd"]


def test_setup__that_is_refused_fails_every_tree_without_running(tmp_path: Path) -> None:
    head, base = trees(tmp_path)
    refused = preparation(head, f"touch {tmp_path}/ran", None)
    refused.refuse_setup("base is gone")
    for tree in (head, base):
        with pytest.raises(AttemptError, match="`setup` did not run: base is gone"):
            asyncio.run(refused.run(tree, Log().section))
    assert not (tmp_path / "ran").exists()
    none = preparation(head, None, None)
    none.refuse_setup("base is gone")
    asyncio.run(none.run(head, Log().section))
