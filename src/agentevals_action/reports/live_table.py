"""The progress of a run as a table on a terminal, which is erased when the run ends."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic

from rich.box import SIMPLE
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agentevals_action.escaping import printable
from agentevals_action.formatting import cost, counted, time
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.reports.console import STYLES

_NAME = 60  # characters of an id
_NOW = 5  # running tests that are named
_OTHER_LINES = 8  # of the screen: title and frame of the table, the lines below it, the prompt
_PER_SECOND = 4  # the table is drawn


@dataclass
class _Suite:
    """The tests of a suite: how many run and are finished by side, and the verdicts of those that
    are finished on the side under test."""

    total: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    cost_usd: float | None = None

    @property
    def is_done(self) -> bool:
        return self.done == self.total


def confirmation_line(tests: int, settled: int, samples: int) -> str:
    """How many suspects are settled, by how many fresh samples."""
    suspects = f"{settled} of {counted(tests, 'test')} whose verdict dropped"
    return f"confirmed: {suspects}, {counted(samples, 'fresh sample')}"


class LiveTable:
    """Suites with their verdicts and cost, what runs now, and the time left. Secrets are removed
    when a name comes in: the thread that draws does not know them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = Lock()  # another thread draws the table
        self._started = monotonic()
        self._suites: dict[str, _Suite] = {}
        self._running: dict[tuple[str, str, str], None] = {}
        self._sides: dict[str, None] = {}
        self._confirmed = ""
        self._is_cost_partial = False

    def expect(self, side: str, tests: Mapping[str, int]) -> None:
        """Adds the tests of a side by suite path."""
        with self._lock:
            self._sides[side] = None
            for path, number in tests.items():
                self._suites.setdefault(path, _Suite()).total[side] += number

    def start(self, side: str, suite: Suite, test: Test) -> None:
        """Adds a test to those that run."""
        with self._lock:
            self._running[side, suite.path, test.id] = None

    def advance(self, side: str, result: TestResult) -> None:
        """Counts a finished test."""
        path = result.eval_path
        with self._lock:
            self._running.pop((side, path, result.eval_id), None)
            suite = self._suites.setdefault(path, _Suite())
            suite.done[side] += 1
            if side != "base":
                suite.verdicts[result.verdict or "error"] += 1
            if result.spent.cost_usd is not None:
                suite.cost_usd = (suite.cost_usd or 0.0) + result.spent.cost_usd
            self._is_cost_partial |= result.spent.unpriced_replies > 0

    def confirm(self, tests: int, settled: int, samples: int) -> None:
        """Shows the confirmation, whose cost is not part of the sum."""
        with self._lock:
            self._confirmed = confirmation_line(tests, settled, samples)
            self._is_cost_partial |= samples > 0

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Shows the table until the block ends."""
        with Live(
            get_renderable=self._drawn,
            console=self._console,
            refresh_per_second=_PER_SECOND,
            transient=True,
        ):
            # A second Ctrl-C and a kill end the process at once: the cursor must not stay hidden.
            self._console.show_cursor()
            yield

    def _drawn(self) -> RenderableType:
        with self._lock:
            below = [self._now(), self._total(), self._confirmed]
            lines = [Text(line, no_wrap=True, overflow="ellipsis") for line in below if line]
            return Group(self._table(), *lines)

    def _table(self) -> Table:
        table = Table(box=SIMPLE, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        table.add_column("suite", no_wrap=True, overflow="ellipsis", min_width=12)
        has_cost = any(suite.cost_usd is not None for suite in self._suites.values())
        for title in (*self._sides, *STYLES, *(["cost"] if has_cost else [])):
            table.add_column(title, justify="right", no_wrap=True, min_width=len(title))
        shown, left = self._listed()
        for path in shown:
            suite = self._suites[path]
            done = (f"{suite.done[side]}/{suite.total[side]}" for side in self._sides)
            verdicts = (
                Text(str(suite.verdicts[verdict]), style if suite.verdicts[verdict] else "dim")
                for verdict, style in STYLES.items()
            )
            amount = [cost(suite.cost_usd)] if has_cost else []
            style = "dim" if suite.is_done else ""
            table.add_row(Text(printable(path), style), *done, *verdicts, *amount)
        if left:
            finished = sum(self._suites[path].is_done for path in left)
            table.add_row(f"… and {counted(len(left), 'more suite')}, {finished} finished")
        return table

    def _listed(self) -> tuple[list[str], list[str]]:
        """The suites that the screen has lines for, those that run first, and the others."""
        room = max(self._console.height - _OTHER_LINES, 1)
        paths = list(self._suites)
        if len(paths) <= room:
            return paths, []
        running = {suite for _, suite, _ in self._running}
        order = sorted(paths, key=lambda path: (path not in running, self._suites[path].is_done))
        kept = set(order[: max(room - 1, 1)])
        return [path for path in paths if path in kept], [one for one in paths if one not in kept]

    def _now(self) -> str:
        if not self._running:
            return ""
        named = list(self._running)[:_NOW]
        names = ", ".join(printable(test, _NAME) for _, _, test in named)
        left = len(self._running) - len(named)
        return f"now: {names}{f' and {left} more' if left else ''}"

    def _total(self) -> str:
        total = sum(suite.total.total() for suite in self._suites.values())
        done = sum(suite.done.total() for suite in self._suites.values())
        costs = [one.cost_usd for one in self._suites.values() if one.cost_usd is not None]
        elapsed = (monotonic() - self._started) * 1000
        parts = [f"{done:,} of {counted(total, 'test')}", f"{time(elapsed)}"]
        if 0 < done < total:
            parts.append(f"about {time(elapsed * (total - done) / done)} left")
        if costs:
            parts.append(f"{'at least ' if self._is_cost_partial else ''}{cost(sum(costs))}")
        return ", ".join(parts)
