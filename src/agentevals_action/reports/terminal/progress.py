"""Progress of a run on standard error: a bar for each side on a terminal, otherwise a line now and
then."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

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
from agentevals_action.execution.executor import AttemptStarted, Event, SuiteEnded, SuiteStarted
from agentevals_action.formatting import cost, counted
from agentevals_action.model.result import TestResult
from agentevals_action.reports.terminal.lines import rich_console

_INTERVAL = 10.0  # seconds between two lines
_NAME = 60  # characters of an id


@dataclass
class _Side:
    """The tests of one side; `cost_usd` is None as long as no cost is known. `open` are the suites
    whose tests are not known yet, by path, with the programs that run them."""

    total: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    cost_usd: float | None = None
    running: dict[tuple[str, str], None] = field(default_factory=dict)
    open: dict[str, str] = field(default_factory=dict)

    def add(self, result: TestResult) -> None:
        self.total += result.eval_path in self.open
        self.running.pop(result.key, None)
        self.verdicts[result.state] += 1
        if result.spent.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + result.spent.cost_usd

    def note(self) -> str:
        parts = [f"{number} {verdict}" for verdict, number in self.verdicts.items()]
        parts += [] if self.cost_usd is None else [cost(self.cost_usd)]
        if self.running:
            first = printable(next(iter(self.running))[1], _NAME)
            more = f" and {len(self.running) - 1} more" if len(self.running) > 1 else ""
            parts.append(f"now {first}{more}")
        return ", ".join(parts)


class Progress:
    """Counts finished tests by side: `head`, `base`, or `tests` if there is only one side. Without
    `bars` it prints lines."""

    def __init__(self, bars: Bars | None = None) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}
        self._sides: dict[str, _Side] = {}
        self._printed = monotonic()

    def handle(self, side: str, event: Event) -> None:
        """Counts and shows what happens on a side."""
        counts = self._sides.setdefault(side, _Side())
        match event:
            case SuiteStarted(path, None, program):
                counts.open[path] = program
                counts.running[path, program] = None
                what = f"`{printable(program, _NAME)}` runs {printable(path, _NAME)}"
                self._print(f"{side}: {what}", is_due=True)
            case SuiteStarted(_, int(tests)):
                counts.total += tests
            case AttemptStarted(path, test):
                counts.running[path, test] = None
            case SuiteEnded(path) if path in counts.open:
                counts.running.pop((path, counts.open.pop(path)), None)
                self._print_counts()
            case TestResult():
                counts.add(event)
                self._print_counts()
        if self._bars:
            self._update(side, counts.total, counts.verdicts.total(), counts.note())

    def _print_counts(self) -> None:
        counts = {name: (side.verdicts.total(), side.total) for name, side in self._sides.items()}
        parts = [
            f"{name}: {done} of {counted(total, 'test')}"
            for name, (done, total) in counts.items()
            if total
        ]
        is_done = all(done == total for done, total in counts.values())
        is_open = any(side.open for side in self._sides.values())
        self._print(", ".join(parts), is_due=is_done and not is_open)

    def count(self, name: str, done: int, total: int) -> None:
        """Shows how many of some things are done."""
        self._update(name, total, done, "")
        self._print(f"{name}: {done} of {total}", is_due=done == total)

    def confirm(self, tests: int, settled: int, samples: int, subject: str) -> None:
        """Shows how many of the suspects are settled, and how many fresh samples that took."""
        fresh = counted(samples, "fresh sample")
        self._update("confirmation", tests, settled, fresh)
        suspects = f"{counted(tests, 'test')} {subject}"
        line = f"checked {settled} of {suspects}, {fresh}" if samples else f"checking {suspects} …"
        self._print(line, is_due=samples == 0 or settled == tests)

    def _update(self, name: str, total: int, completed: int, note: str) -> None:
        if self._bars is None:
            return
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, note="")
        self._bars.update(self._tasks[name], total=total, completed=completed, note=note)

    def _print(self, line: str, *, is_due: bool) -> None:
        if self._bars is None and (is_due or monotonic() - self._printed >= _INTERVAL):
            self._printed = monotonic()
            print(line, file=sys.stderr, flush=True)


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Shows progress until the block ends."""
    console = rich_console(sys.stderr)
    if not console.is_terminal or console.is_dumb_terminal:
        yield Progress()
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
        yield Progress(bars)
