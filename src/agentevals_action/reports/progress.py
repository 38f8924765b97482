"""Progress of a run on standard error: a bar for each side on a terminal, otherwise a line now and
then."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bars,
)
from rich.table import Column

from agentevals_action.escaping import printable
from agentevals_action.formatting import cost, counted
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.reports.terminal import rich_console

_INTERVAL = 10.0  # seconds between two lines of progress
_NAME = 60  # characters of an id


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
    note = TextColumn(
        "{task.fields[note]}",
        markup=False,
        table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
    )
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        note,
        console=console,
        transient=True,
        expand=True,
    )
    with bars:
        # A second Ctrl-C and a kill end the process at once: the cursor must not stay hidden.
        console.show_cursor()
        yield _Bars(bars)


class _Bars:
    """A bar for each side with the verdicts and the cost of its finished tests and the name of one
    that runs, and a bar for the confirmation."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}
        self._verdicts: dict[str, Counter[str]] = {}
        self._costs: dict[str, float] = {}
        self._running: dict[str, dict[tuple[str, str], None]] = {}

    def expect(self, side: str, tests: Mapping[str, int]) -> None:
        self._tasks[side] = self._bars.add_task(side, total=sum(tests.values()), note="")
        self._verdicts[side], self._running[side] = Counter(), {}

    def start(self, side: str, suite: Suite, test: Test) -> None:
        self._running[side][suite.path, test.id] = None
        self._bars.update(self._tasks[side], note=self._note(side))

    def advance(self, side: str, result: TestResult) -> None:
        self._running[side].pop((result.eval_path, result.eval_id), None)
        self._verdicts[side][result.verdict or "error"] += 1
        if result.spent.cost_usd is not None:
            self._costs[side] = self._costs.get(side, 0.0) + result.spent.cost_usd
        self._bars.update(self._tasks[side], advance=1, note=self._note(side))

    def confirm(self, tests: int, settled: int, samples: int) -> None:
        if "confirmation" not in self._tasks:
            self._tasks["confirmation"] = self._bars.add_task("confirmation", note="")
        note = counted(samples, "fresh sample")
        self._bars.update(self._tasks["confirmation"], total=tests, completed=settled, note=note)

    def _note(self, side: str) -> str:
        parts = [f"{number} {verdict}" for verdict, number in self._verdicts[side].items()]
        parts += [cost(self._costs[side])] if side in self._costs else []
        running = list(self._running[side])
        if running:
            more = f" and {len(running) - 1} more" if len(running) > 1 else ""
            parts.append(f"now {printable(running[0][1], _NAME)}{more}")
        return ", ".join(parts)


class _Lines:
    def __init__(self) -> None:
        self._totals: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._printed = monotonic()

    def expect(self, side: str, tests: Mapping[str, int]) -> None:
        self._totals[side], self._done[side] = sum(tests.values()), 0

    def start(self, side: str, suite: Suite, test: Test) -> None:
        """Nothing: a line is about finished tests."""

    def advance(self, side: str, result: TestResult) -> None:  # noqa: ARG002 # for the bars
        self._done[side] += 1
        sides = (f"{name}: {self._done[name]} of {self._totals[name]} tests" for name in self._done)
        self._print(", ".join(sides), is_due=self._done == self._totals)

    def confirm(self, tests: int, settled: int, samples: int) -> None:
        suspects = f"{settled} of {counted(tests, 'test')} whose verdict dropped"
        line = f"confirmed: {suspects}, {counted(samples, 'fresh sample')}"
        self._print(line, is_due=samples == 0 or settled == tests)

    def _print(self, line: str, *, is_due: bool) -> None:
        if is_due or monotonic() - self._printed >= _INTERVAL:
            self._printed = monotonic()
            print(line, file=sys.stderr, flush=True)
