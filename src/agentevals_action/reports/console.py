"""What a person sees while waiting (standard error) and at the end (standard output)."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import IO, TYPE_CHECKING, Protocol, TypeVar

from agentevals_action import formatting
from agentevals_action.model.comparison import Change, SuiteComparison, TestComparison
from agentevals_action.model.result import SuiteSummary, TestResult
from agentevals_action.reports.conversations import Turns, together
from agentevals_action.reports.terminal import (
    Column,
    Styled,
    print_line,
    print_table,
    printable,
    rich_console,
)

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

T = TypeVar("T")

_SILENCE = 10.0  # seconds between two lines of progress where there is no terminal
_ROOM = 120  # columns of a terminal from which the table of suites has all its own
SHOWN = 50  # tests that a table lists beneath the suites

_STYLES = {"pass": "green", "borderline": "yellow", "fail": "red", "error": "magenta"}


@dataclass(frozen=True)
class Line:
    """One line of an outline: `depth` from 0, a label, and what there is to say of it."""

    depth: int
    label: str
    text: str = ""


class Progress(Protocol):
    """Told of every test that finished, by side: `head`, `base`, or `tests` where there is one
    alone."""

    def expect(self, side: str, total: int) -> None:
        """So many tests of a side are about to run."""
        ...

    def advance(self, side: str, result: TestResult) -> None:
        """One more test of a side is done."""
        ...

    def again(self, tests: int, settled: int, samples: int) -> None:
        """So many tests whose verdict fell are sampled again; what became of how many is settled,
        after so many fresh samples."""
        ...


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
    with Bars(*columns, console=rich_console(sys.stderr), transient=True) as bars:
        yield _Bars(bars)


class _Bars:
    def __init__(self, bars: "Bars") -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def expect(self, side: str, total: int) -> None:
        self._tasks[side] = self._bars.add_task(side, total=total, last="")

    def advance(self, side: str, result: TestResult) -> None:
        from rich.markup import escape

        self._bars.update(
            self._tasks[side],
            advance=1,
            last=escape(f"{mark(result)} {printable(result.eval_id, 60)}"),
        )

    def again(self, tests: int, settled: int, samples: int) -> None:
        if "again" not in self._tasks:
            self.expect("again", tests)
        self._bars.update(
            self._tasks["again"],
            completed=settled,
            last=formatting.counted(samples, "fresh sample"),
        )


class _Lines:
    def __init__(self) -> None:
        self._totals: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._told = monotonic()

    def expect(self, side: str, total: int) -> None:
        self._totals[side], self._done[side] = total, 0

    def advance(self, side: str, result: TestResult) -> None:  # noqa: ARG002
        self._done[side] += 1
        sides = ", ".join(
            f"{side}: {self._done[side]} of {total} tests" for side, total in self._totals.items()
        )
        self._tell(sides, at_once=self._done == self._totals)

    def again(self, tests: int, settled: int, samples: int) -> None:
        fell = f"{formatting.counted(tests, 'test')} whose verdict fell"
        words = f"sampled again: {settled} of {fell}, {formatting.counted(samples, 'fresh sample')}"
        self._tell(words, at_once=samples == 0 or settled == tests)

    def _tell(self, words: str, at_once: bool) -> None:
        if at_once or monotonic() - self._told >= _SILENCE:
            self._told = monotonic()
            print(words, file=sys.stderr, flush=True)


def mark(result: TestResult) -> str:
    """The verdict in a word: `pass`, `borderline`, `fail` or `error`."""
    return result.verdict or "error"


def figure(value: float | None, digits: int = 2) -> str:
    """A number as the tables show it; unknown is a dash, never zero."""
    return "–" if value is None else f"{value:.{digits}f}"


def rate(value: float | None) -> str:
    """A share of 0-1 in percent; unknown is a dash."""
    return "–" if value is None else f"{value:.0%}"


def suite_table(suites: Sequence[SuiteComparison], stream: IO[str]) -> None:
    """A row for each suite that head has: how many passed, were borderline, failed, ended in an
    error, the pass rate and the mean score, the time, and what its agents took, against base where
    there is one; nothing of what nobody knows. On a narrow terminal what they took stands
    beneath."""
    rows = [(suite.head, suite.base) for suite in suites if suite.head]
    taken = [_taken(head, base) for head, base in rows]
    known = list(dict.fromkeys(title for row in taken for title in row))
    beside = known if not stream.isatty() or rich_console(stream).width >= _ROOM else []
    titles = ("pass", "borderline", "fail", "error", "pass rate", "score", "time", *beside)
    listed: list[list[Styled]] = []
    for (head, _base), row in zip(rows, taken, strict=True):
        counts = {
            "pass": head.passed,
            "borderline": head.borderline,
            "fail": head.failed,
            "error": head.errored,
        }
        cells = [(str(count), _STYLES[name] if count else "dim") for name, count in counts.items()]
        figures = (
            rate(head.pass_rate),
            figure(head.average_score),
            f"{head.duration_ms / 1000:.1f} s",
        )
        listed.append(
            [
                printable(head.eval_path),
                *cells,
                *figures,
                *(row.get(title, "–") for title in beside),
            ]
        )
    print_table(
        stream, [Column("suite"), *(Column(title, is_figure=True) for title in titles)], listed
    )
    if not beside:
        for (head, _base), row in zip(rows, taken, strict=True):
            words = ", ".join(f"{title} {figures}" for title, figures in row.items())
            remarks([f"{head.eval_path}: {words}" if words else ""], stream)


def _taken(head: SuiteSummary, base: SuiteSummary | None) -> dict[str, str]:
    """What a suite's agents took, in words by its name; without what is known of neither side."""
    from agentevals_action.reports.view import cost

    kinds_of = (
        ("cost", formatting.cost, cost.agent_cost),
        ("tokens", formatting.tokens, cost.agent_tokens),
    )
    known = (
        (title, words, amount(head), amount(base) if base else None)
        for title, words, amount in kinds_of
    )
    return {
        title: cost.against(words, there, here)
        for title, words, here, there in known
        if {here.total, there and there.total} != {None}
    }


def remarks(sentences: Iterable[str], stream: IO[str]) -> None:
    """Sentences for the reader, a line each, cut at 1000 characters and never wrapped; empty ones
    are left out."""
    for sentence in filter(None, sentences):
        print_line(stream, printable(sentence, 1000))


def not_passed(results: Iterable[TestResult], turns: Turns, stream: IO[str]) -> None:
    """What did not pass and why, a line each, turns of one conversation side by side; the first
    fifty, the rest counted."""
    from itertools import islice

    left = iter(results)
    for result in _side_by_side(islice(left, SHOWN), turns, lambda result: result):
        verdict = (f"{mark(result):<10}", _STYLES[mark(result)])
        place = f" {printable(result.path)}:{result.line} {printable(result.eval_id, 80)}{in_conversation(turns, result)}"
        print_line(stream, verdict, place, (f"  {printable(why(result))}", "dim"))
    if more := sum(1 for _ in left):
        print_line(stream, f"… and {more} more")


def in_conversation(turns: Turns, result: TestResult | None) -> str:
    """` (turn 2 of 3 of the conversation NAME)` for a line that tells of a test, empty for one that
    stands by itself."""
    turn = turns.of(result)
    return f" ({turn.words} of the conversation {printable(turn.conversation, 80)})" if turn else ""


def _side_by_side(
    items: Iterable[T], turns: Turns, result_of: Callable[[T], TestResult | None]
) -> Iterator[T]:
    def key(item: T) -> tuple[str, str] | None:
        result = result_of(item)
        return (
            (result.eval_path, result.conversation_id)
            if result and result.conversation_id is not None
            else None
        )

    def number(item: T) -> int:
        turn = turns.of(result_of(item))
        return turn.number if turn else 0

    return (item for group in together(items, key, number) for item in group)


def by_conversation(tests: Sequence[TestComparison]) -> tuple[Turns, Iterator[TestComparison]]:
    """The turns of a suite's tests, and the tests with those of one conversation side by side, in
    their order."""
    turns = Turns(test.head for test in tests if test.head)
    return turns, _side_by_side(tests, turns, lambda test: test.head or test.base)


def why(result: TestResult) -> str:
    """The most telling reason for a verdict: the error, the failed gates, else what missed."""
    if result.verdict is None and result.error:
        return f"{formatting.error_kind(result.error.kind)}: {result.error.message}"
    if result.gates_failed:
        return f"required gate failed: {', '.join(result.gates_failed)}"
    return "; ".join(result.misses)


def comparison_lines(suites: Sequence[SuiteComparison], stream: IO[str]) -> None:
    """What became of every test that is not unchanged, a line each, with what fresh samples said,
    and why it does not count."""
    from agentevals_action.reports.view import waivers

    colours = {Change.REGRESSED: "red", Change.IMPROVED: "green", Change.UNDECIDED: "yellow"}
    for suite in suites:
        turns, tests = by_conversation(suite.tests)
        for test in tests:
            if test.change is Change.UNCHANGED:
                continue
            head, base = (mark(side) if side else "–" for side in (test.head, test.base))
            what, *rest = waivers.became(test)
            print_line(
                stream,
                (
                    f"{what:<17}",
                    "" if test.accepted_by or test.quarantine else colours.get(test.change, ""),
                ),
                f" {printable(suite.path)} {printable(test.id, 80)}{in_conversation(turns, test.head)}: {base} → {head}",
                (f"  {printable('; '.join(rest), 500)}" if rest else "", "dim"),
            )


def outline(lines: Iterable[Line], stream: IO[str]) -> None:
    """Labels with their texts, indented by depth; a line is cut at 1000 characters and never
    wrapped."""
    for line in lines:
        label = printable(line.label, 1000)
        shown = (f"{label:<11}  " if line.text else label, "dim" if line.depth > 1 else "bold")
        print_line(stream, "  " * line.depth, shown, printable(line.text, 1000))


def table(
    heading: str, titles: Sequence[str], rows: Iterable[Sequence[str]], stream: IO[str]
) -> None:
    """A heading, and rows of texts under titles; what is too long for its column is folded, never
    cut."""
    cells = [[printable(cell, 1000) for cell in row] for row in rows]
    print_table(stream, [Column(title) for title in titles], cells, printable(heading))


def figures_table(titles: Sequence[str], rows: Iterable[Sequence[str]], stream: IO[str]) -> None:
    """Rows of cells as text under their titles, the first column on the left."""
    columns = [Column(title, is_figure=place > 0) for place, title in enumerate(titles)]
    print_table(stream, columns, [[printable(cell) for cell in row] for row in rows])


def told(good: bool, name: str, text: str, stream: IO[str]) -> None:
    """One line of what became of something: its name, green or red, and words that are cut at 1000
    characters and never wrapped."""
    print_line(
        stream, (printable(name), _STYLES["pass" if good else "fail"]), f": {printable(text, 1000)}"
    )


@contextmanager
def asking(total: int, what: str) -> Iterator[Callable[[str], None]]:
    """While so many are asked, a line on a terminal's standard error that says how many have
    answered; call it with each one's name."""
    if not sys.stderr.isatty():
        yield lambda _name: None
        return
    done = 0
    with rich_console(sys.stderr).status(f"asking {total} {what} …") as status:

        def answered(name: str) -> None:
            from rich.markup import escape

            nonlocal done
            done += 1
            status.update(
                f"asking {total} {what} … {done} done, the last {escape(printable(name, 60))}"
            )

        yield answered
