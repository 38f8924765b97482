"""A review on one screen of a terminal: the outcome, the suites, what needs attention and why."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.text import Text

from agentevals_action.escaping import printable
from agentevals_action.formatting import counted
from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.review import Outcome
from agentevals_action.reports import console
from agentevals_action.reports.html.report_page import PAGE
from agentevals_action.reports.terminal import Styled, rich_console
from agentevals_action.reports.view import verdict
from agentevals_action.reports.view.models import ListedTest, ReportView
from agentevals_action.reports.view.ordering import worst_first

LINES = 12  # of the screen; with the estimate before it, a review has at most fifteen
_SUITES = 3  # suites that are listed; more are counted
_HEADLINE = 3  # lines of the outcome
_INDENT = "    "
_NARROWEST = 40  # columns that are used in any case

_STYLES = {
    Outcome.PASSED: "bold green",
    Outcome.FAILED: "bold red",
    Outcome.INCONCLUSIVE: "bold yellow",
    Outcome.INVALID: "bold red",
}


def print_review(view: ReportView, report: Path, stream: IO[str]) -> None:
    """Prints at most `LINES` lines, none wider than the terminal; the rest is in the report."""
    terminal = rich_console(stream)
    width = max(terminal.width, _NARROWEST)
    style = _STYLES[view.review.decision.outcome]
    headline = Text(printable(verdict.headline(view), 2_000), style)
    top = [*headline.wrap(terminal, width)[:_HEADLINE], *_suites(view)]
    bottom = _last_lines(view, report)
    entries = [Text.assemble(*parts) for parts in _entries(view)]
    room = LINES - len(top) - len(bottom) - 1
    lines = [line for entry in entries for line in _hanging(entry, terminal, width)]
    if len(lines) > room:
        lines = entries  # cut, one line each
    if len(lines) > room:
        lines = [*entries[: room - 1], Text(f"… and {len(entries) - room + 1} more")]
    for line in (*top, *([Text()] if lines else []), *lines, *bottom):
        line.truncate(width, overflow="ellipsis")
        terminal.print(line, soft_wrap=True)


def _hanging(text: Text, terminal: Console, width: int) -> Iterator[Text]:
    """The lines of a text; all but the first are indented."""
    first, *rest = text.wrap(terminal, width)
    yield first
    for line in Text(" ").join(rest).wrap(terminal, width - len(_INDENT)):
        yield Text(_INDENT).append_text(line)


def _suites(view: ReportView) -> list[Text]:
    """One line for each suite, the worst first."""
    suites = worst_first(view.review.suites)
    shown = suites if len(suites) <= _SUITES + 1 else suites[:_SUITES]
    longest = max((len(printable(suite.path)) for suite in shown), default=0)
    lines = [
        Text(f"{printable(suite.path):<{longest}}  {', '.join(_figures(suite))}") for suite in shown
    ]
    left = len(suites) - len(shown)
    return [*lines, *([Text(f"… and {counted(left, 'more suite')}")] if left else [])]


def _figures(suite: SuiteComparison) -> Iterator[str]:
    sides = [side for side in (suite.base, suite.head) if side]
    if sides:
        yield f"pass rate {' → '.join(console.rate(side.pass_rate) for side in sides)}"
    if suite.head:
        yield counted(suite.head.total, "test")
    if regressed := sum(test.is_regression for test in suite.tests):
        yield f"{regressed} regressed"
    if suite.problem:
        yield printable(suite.problem)


def _entries(view: ReportView) -> Iterator[list[Styled]]:
    """What needs attention, the most important first."""
    review = view.review
    for diagnostic in review.invalid:
        yield [("error ", "red"), printable(str(diagnostic), 1_000)]
    if review.decision.outcome is Outcome.INVALID and not review.invalid:
        for reason in review.decision.reasons:
            yield [("error ", "red"), printable(reason, 1_000)]
    groups = (view.regressions, view.failures, view.errors, view.undecided)
    listed = {(one.suite, one.comparison.id): one for group in groups for one in group}
    yield from map(_test, listed.values())


def _test(one: ListedTest) -> list[Styled]:
    test = one.comparison
    sides = dict.fromkeys(console.verdict_word(side) for side in (test.base, test.head) if side)
    why = console.reason_for(test.head) if test.head else ""
    change = " → ".join(sides)
    style = console.verdict_style(test.head)
    return [
        (printable(test.id, 80), "bold"),
        console.turn_note(one),
        "  ",
        (change, style),
        f"  {printable(why, 500)}" if why else "",
    ]


def _last_lines(view: ReportView, report: Path) -> list[Text]:
    review = view.review
    remarks = [
        counted(len(items), noun)
        for items, noun in ((review.warnings, "warning"), (view.notices, "notice"))
        if items
    ]
    base = f"compared with {review.base_sha[:7]}" if review.base_sha else ""
    words = "; ".join(filter(None, (base, *remarks)))
    path = report / PAGE
    name = os.path.relpath(path)
    report_words = f"report: {printable(str(path) if name.startswith('..') else name, 500)}"
    return [Text(), *(Text(line, "dim") for line in (words, report_words) if line)]
