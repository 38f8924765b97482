"""Progress of a run on standard error: a table on a terminal, otherwise a line now and then."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from rich.markup import escape

from agentevals_action.escaping import printable
from agentevals_action.formatting import counted
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.reports.live_table import LiveTable, confirmation_line
from agentevals_action.reports.terminal import rich_console

_INTERVAL = 10.0  # seconds between two lines of progress
_NAME = 60  # characters


class Progress(Protocol):
    """Counts finished tests by side: `head`, `base`, or `tests` if there is only one side."""

    def expect(self, side: str, tests: Mapping[str, int]) -> None:
        """Announces how many tests of a side run, by suite path."""
        ...

    def start(self, side: str, suite: Suite, test: Test) -> None:
        """Notes that an attempt of a test starts."""
        ...

    def advance(self, side: str, result: TestResult) -> None:
        """Counts a finished test."""
        ...

    def confirm(self, tests: int, settled: int, samples: int) -> None:
        """Shows how many of the suspects are settled, and how many fresh samples that took."""
        ...


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Shows progress until the block ends."""
    console = rich_console(sys.stderr)
    if not console.is_terminal or console.is_dumb_terminal:
        yield _Lines()
        return
    table = LiveTable(console)
    with table.shown():
        yield table


class _Lines:
    def __init__(self) -> None:
        self._totals: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._printed = monotonic()

    def expect(self, side: str, tests: Mapping[str, int]) -> None:
        self._totals[side], self._done[side] = sum(tests.values()), 0

    def start(self, side: str, suite: Suite, test: Test) -> None:
        """Nothing: a line is about finished tests."""

    def advance(self, side: str, result: TestResult) -> None:  # noqa: ARG002 # for the table
        self._done[side] += 1
        is_last = self._done == self._totals
        sides = (f"{one}: {self._done[one]} of {self._totals[one]} tests" for one in self._totals)
        self._print(", ".join(sides), is_due=is_last)

    def confirm(self, tests: int, settled: int, samples: int) -> None:
        line = confirmation_line(tests, settled, samples)
        self._print(line, is_due=samples == 0 or settled == tests)

    def _print(self, line: str, *, is_due: bool) -> None:
        if is_due or monotonic() - self._printed >= _INTERVAL:
            self._printed = monotonic()
            print(line, file=sys.stderr, flush=True)


@contextmanager
def show_checks(total: int) -> Iterator[Callable[[str], None]]:
    """Shows on a terminal how many targets have answered; the block calls it with each name."""
    if not sys.stderr.isatty():
        yield lambda _name: None
        return
    done = 0
    with rich_console(sys.stderr).status(f"checking {counted(total, 'target')} …") as status:

        def finish(name: str) -> None:
            nonlocal done
            done += 1
            last = escape(printable(name, _NAME))
            status.update(f"checking {counted(total, 'target')} … {done} done, the last {last}")

        yield finish
