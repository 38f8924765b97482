"""What a person sees while waiting (standard error) and at the end (standard output); the only owner of rich."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import IO, TYPE_CHECKING, Protocol

from agentevals_action.model.comparison import Change, SuiteComparison
from agentevals_action.model.result import SuiteSummary, TestResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_SILENCE = 10.0  # seconds between two lines of progress where there is no terminal
_WIDE = 100_000  # columns: without a terminal no line is wrapped
SHOWN = 50  # tests that a table lists beneath the suites

_STYLES = {"pass": "green", "borderline": "yellow", "fail": "red", "error": "magenta"}


@dataclass(frozen=True)
class Line:
    """One line of an outline: `depth` from 0, a label, and what there is to say of it."""

    depth: int
    label: str
    text: str = ""


class Progress(Protocol):
    """Told of every test that finished, by side: `head`, `base`, or `tests` where there is one alone."""

    def expect(self, side: str, total: int) -> None:
        """So many tests of a side are about to run."""
        ...

    def advance(self, side: str, result: TestResult) -> None:
        """One more test of a side is done."""
        ...


def printable(text: str, limit: int = 200) -> str:
    """One line that steers neither a terminal nor a runner: control characters become `�`, a leading `::` is moved off the line's
    beginning, and it is cut to `limit` characters."""
    line = "".join(char if char.isprintable() else " " if char in "\n\r\t" else "�" for char in text)
    line = f"| {line}" if line.lstrip().startswith("::") else line
    return line if len(line) <= limit else line[: limit - 1] + "…"


def console_for(stream: IO[str]) -> "Console":
    """Colours and wrapping only where there is a terminal."""
    from rich.console import Console

    if stream.isatty():
        return Console(file=stream, highlight=False)
    return Console(file=stream, highlight=False, width=_WIDE, no_color=True, force_terminal=False)


@contextmanager
def progress() -> Iterator[Progress]:
    """Progress on standard error: bars on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:<5}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[last]}"),
    )
    with Bars(*columns, console=console_for(sys.stderr), transient=True) as bars:
        yield _Bars(bars)


class _Bars:
    def __init__(self, bars: "Bars") -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def expect(self, side: str, total: int) -> None:
        self._tasks[side] = self._bars.add_task(side, total=total, last="")

    def advance(self, side: str, result: TestResult) -> None:
        from rich.markup import escape

        self._bars.update(self._tasks[side], advance=1, last=escape(f"{mark(result)} {printable(result.eval_id, 60)}"))


class _Lines:
    def __init__(self) -> None:
        self._totals: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._told = monotonic()

    def expect(self, side: str, total: int) -> None:
        self._totals[side], self._done[side] = total, 0

    def advance(self, side: str, result: TestResult) -> None:  # noqa: ARG002 - the protocol's; a line now and then names no test
        self._done[side] += 1
        finished = self._done == self._totals
        if finished or monotonic() - self._told >= _SILENCE:
            self._told = monotonic()
            print(
                ", ".join(f"{side}: {self._done[side]} of {total} tests" for side, total in self._totals.items()),
                file=sys.stderr,
                flush=True,
            )


def mark(result: TestResult) -> str:
    """The verdict in a word: `pass`, `borderline`, `fail` or `error`."""
    return result.verdict or "error"


def figure(value: float | None, digits: int = 2) -> str:
    """A number as the tables show it; unknown is a dash, never zero."""
    return "–" if value is None else f"{value:.{digits}f}"


def rate(value: float | None) -> str:
    """A share of 0-1 in percent; unknown is a dash."""
    return "–" if value is None else f"{value:.0%}"


def suite_table(summaries: Sequence[SuiteSummary], stream: IO[str]) -> None:
    """A row a suite: how many passed, were borderline, failed, ended in an error, the pass rate and the mean score."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column("suite", no_wrap=True)
    for title in ("pass", "borderline", "fail", "error", "pass rate", "score", "cost", "time"):
        table.add_column(title, justify="right", no_wrap=True)
    for summary in summaries:
        counts = {"pass": summary.passed, "borderline": summary.borderline, "fail": summary.failed, "error": summary.errored}
        cells = [Text(str(count), style=_STYLES[name] if count else "dim") for name, count in counts.items()]
        cost = "–" if summary.cost_usd is None else f"${summary.cost_usd:.4f}"
        last = [rate(summary.pass_rate), figure(summary.average_score), cost, f"{summary.duration_ms / 1000:.1f} s"]
        table.add_row(Text(printable(summary.eval_path)), *cells, *last)
    console_for(stream).print(table)


def not_passed(results: Iterable[TestResult], stream: IO[str]) -> None:
    """What did not pass and why, a line each; the first fifty, the rest counted."""
    from rich.text import Text

    console, left = console_for(stream), 0
    for number, result in enumerate(results):
        if number >= SHOWN:
            left += 1
            continue
        line = Text.assemble(
            (f"{mark(result):<10}", _STYLES[mark(result)]), f" {result.path}:{result.line} {printable(result.eval_id, 80)}"
        )
        line.append(f"  {printable(why(result))}", style="dim")
        console.print(line, soft_wrap=True)
    if left:
        console.print(f"… and {left} more")


def why(result: TestResult) -> str:
    """The most telling reason for a verdict: the error, the failed gates, else what missed."""
    if result.verdict is None and result.error:
        return f"{result.error.kind}: {result.error.message}"
    if result.gates_failed:
        return f"required gate failed: {', '.join(result.gates_failed)}"
    return "; ".join(result.misses)


def comparison_lines(suites: Sequence[SuiteComparison], stream: IO[str]) -> None:
    """What became of every test that is not unchanged, a line each."""
    from rich.text import Text

    console = console_for(stream)
    colours = {Change.REGRESSED: "red", Change.IMPROVED: "green"}
    for suite in suites:
        for test in suite.tests:
            if test.change is Change.UNCHANGED:
                continue
            head, base = (mark(side) if side else "–" for side in (test.head, test.base))
            line = Text.assemble(
                (f"{test.change:<17}", colours.get(test.change, "")), f" {suite.path} {printable(test.id, 80)}: {base} → {head}"
            )
            console.print(line, soft_wrap=True)


def outline(lines: Iterable[Line], stream: IO[str]) -> None:
    """Labels with their texts, indented by depth; a line is cut at 1000 characters and never wrapped."""
    from rich.text import Text

    console = console_for(stream)
    for line in lines:
        label = printable(line.label, 1000)
        text = Text.assemble("  " * line.depth, (f"{label:<11}  " if line.text else label, "dim" if line.depth > 1 else "bold"))
        text.append(printable(line.text, 1000))
        console.print(text, soft_wrap=True)
