"""`setup` and `prepare`, with real processes."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.execution.preparation import LineSplitter, Preparation
from agentevals_action.system.child_environment import ChildContext

CHILDREN = ChildContext({"PATH": os.environ["PATH"]}, withheld=("OPENAI_API_KEY",))


class Log:
    """Keeps its lines; `answer`, a file, is made when the line `awaited` is written."""

    def __init__(self, awaited: str = "", answer: Path | None = None) -> None:
        self.lines: list[str] = []
        self._awaited, self._answer = awaited, answer

    @contextmanager
    def section(self, title: str) -> Iterator[Callable[[str], None]]:
        self.lines.append(f"[{title}")
        yield self._write
        self.lines.append("]")

    def _write(self, line: str) -> None:
        self.lines.append(line)
        if self._answer and line == self._awaited:
            self._answer.touch()


def preparation(
    folder: Path,
    setup: str | None = None,
    prepare: str | None = None,
    log: Log | None = None,
    obstacle: str = "",
) -> Preparation:
    return Preparation(setup, prepare, folder, CHILDREN, (log or Log()).section, obstacle)


def errors_of(prepared: Preparation, *trees: Path) -> Sequence[AttemptError | None]:
    """The error of each tree, which are prepared at the same time."""

    async def prepare(tree: Path) -> AttemptError | None:
        try:
            await prepared.run(tree)
        except AttemptError as error:
            return error
        return None

    async def prepare_all() -> Sequence[AttemptError | None]:
        return await asyncio.gather(*map(prepare, trees))

    return asyncio.run(prepare_all())


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    head, base = tmp_path / "head", tmp_path / "base"
    head.mkdir()
    base.mkdir()
    return head, base


def test_setup__is_logged_while_it_runs(tmp_path: Path) -> None:
    log = Log("waiting", tmp_path / "answer")
    script = "pwd; echo waiting; while [ ! -e answer ]; do sleep 0.02; done; echo oops >&2; env"
    prepared = preparation(tmp_path, script, log=log)
    assert errors_of(prepared, tmp_path) == [None]
    assert log.lines[:3] == ["[setup", str(tmp_path), "waiting"]
    assert "oops" in log.lines
    assert log.lines[-1] == "]"


def test_setup_and_prepare__the_workspace_is_their_tree(trees: tuple[Path, Path]) -> None:
    """Attack: `setup` runs head's files as root, by the path of the checkout."""
    head, base = trees
    environment = {**CHILDREN.environment, "GITHUB_WORKSPACE": str(head)}
    script = 'test "$GITHUB_WORKSPACE" = "$(pwd)"'
    prepared = Preparation(script, script, base, ChildContext(environment), Log().section)
    assert errors_of(prepared, base) == [None]


@pytest.mark.parametrize(
    ("script", "folder", "sentence"),
    [
        ("seq 39 40 >&2; exit 3", "", "`setup` ended with exit code 3:\n39\n40"),
        ("true", "gone", "`setup` cannot be started: there is no folder {folder}"),
    ],
)
def test_setup__the_error_names_the_cause(
    tmp_path: Path, script: str, folder: str, sentence: str
) -> None:
    (error,) = errors_of(preparation(tmp_path / folder, script), tmp_path)
    assert error
    assert error.kind == "prepare"
    assert str(error) == sentence.format(folder=tmp_path / folder)


def test_setup__runs_once_for_both_trees_and_prepare_in_each(trees: tuple[Path, Path]) -> None:
    head, base = trees
    prepared = preparation(
        head,
        "echo once >> setup.txt; sleep 0.1; touch ready",
        "test -e ../head/ready && echo once >> prepared",
    )
    assert errors_of(prepared, head, base, head, base) == [None] * 4
    for file in (head / "setup.txt", head / "prepared", base / "prepared"):
        assert file.read_text() == "once\n"


@pytest.mark.parametrize(
    ("obstacle", "sentence"),
    [
        ("", "`setup` ended with exit code 1: no such package"),
        ("base is gone", "`setup` did not run: base is gone"),
    ],
)
def test_setup__its_failure_is_that_of_each_tree(
    trees: tuple[Path, Path], obstacle: str, sentence: str
) -> None:
    script = "echo tried >> setup.txt; echo no such package; exit 1"
    prepared = preparation(trees[0], script, "touch prepared", obstacle=obstacle)
    errors = errors_of(prepared, *trees)
    assert list(map(str, errors)) == [sentence] * 2
    assert errors[0] is not errors[1]
    tried = trees[0] / "setup.txt"
    assert (tried.read_text() if tried.exists() else "") == ("" if obstacle else "tried\n")
    assert not list(trees[0].parent.glob("*/prepared"))


def test_prepare__its_failure_is_that_of_its_tree(trees: tuple[Path, Path]) -> None:
    (trees[0] / "here").touch()
    on_head, on_base = errors_of(preparation(trees[0], prepare="ls here"), *trees)
    assert on_head is None
    assert str(on_base).startswith("`prepare` ended with exit code")


def test_run__without_commands_writes_no_log(tmp_path: Path) -> None:
    log = Log()
    prepared = preparation(tmp_path, log=log, obstacle="base is gone")
    assert errors_of(prepared, tmp_path) == [None]
    assert log.lines == []


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_line_splitter__pieces_become_lines(size: int) -> None:
    lines: list[str] = []
    splitter = LineSplitter(lines.append)
    data = "häl\u20aclo\r\n\r\n10%\r100%\ntail".encode() + b"\n\xff\xfe!\n\xe2"
    for start in range(0, len(data), size):
        splitter.add(data[start : start + size])
    splitter.end()
    assert lines == ["häl\u20aclo", "100%", "tail", "\ufffd\ufffd!", "\ufffd"]
