"""A review on one screen of a terminal: the outcome, the suites, what needs attention and why."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rich.text import Text

from agentevals_action.escaping import printable
from agentevals_action.formatting import counted
from agentevals_action.model.review import Outcome
from agentevals_action.reports import console
from agentevals_action.reports.html.report_page import PAGE
from agentevals_action.reports.terminal import rich_console
from agentevals_action.reports.view.groups import GROUPS
from agentevals_action.reports.view.models import ListedTest, ReportView
from agentevals_action.reports.view.sentences import headline
from agentevals_action.reports.view.suite_table import suite_table

LINES = 12  # of the screen; a review has at most fifteen
_SUITES = 3  # suites that are listed; more are counted
_HEADLINE = 3  # lines of the outcome
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
    outcome = Text(printable(headline(view), 2_000), _STYLES[view.review.decision.outcome])
    top = [*outcome.wrap(terminal, width)[:_HEADLINE], *_suites(view)]
    bottom = list(_last_lines(view, report))
    entries = list(_entries(view))
    room = LINES - len(top) - len(bottom) - 1
    lines = [
        Text("  " if number else "").append_text(line)
        for entry in entries
        for number, line in enumerate(entry.wrap(terminal, width - 2))
    ]
    if len(lines) > room:
        lines = entries  # cut, one line each
    if len(lines) > room:
        lines = [*entries[: room - 1], Text(f"… and {len(entries) - room + 1} more")]
    for line in (*top, *([Text()] if lines else []), *lines, *bottom):
        line.truncate(width, overflow="ellipsis")
        terminal.print(line, soft_wrap=True)


def _suites(view: ReportView) -> Iterator[Text]:
    """One line for each suite, the worst first."""
    suites = view.review.suites
    table = suite_table(suites, len(suites) if len(suites) <= _SUITES + 1 else _SUITES)
    rows = [row for row in table.rows if row.path] if table else []
    longest = max((len(printable(row.path)) for row in rows), default=0)
    for row in rows:
        figures = [f"pass rate {row.pass_rate}"]
        figures += [counted(row.head.total, "test")] if row.head else []
        figures += [f"{row.regressed} regressed"] if row.regressed not in ("0", "–") else []
        yield Text(f"{printable(row.path):<{longest}}  {', '.join(figures)}")
    if table and table.left:
        yield Text(table.left)


def _entries(view: ReportView) -> Iterator[Text]:
    """What needs attention, the most important first."""
    errors = [str(diagnostic) for diagnostic in view.review.invalid]
    if view.review.decision.outcome is Outcome.INVALID and not errors:
        errors = list(view.review.decision.reasons)
    for error in errors:
        yield Text.assemble(("error ", "red"), printable(error, 1_000))
    shown = [group.key for group in GROUPS if group.place == "open"] + ["undecided"]
    for key in shown:
        yield from map(_test, view.groups[key])


def _test(listed: ListedTest) -> Text:
    test = listed.comparison
    sides = dict.fromkeys(console.verdict_word(side) for side in (test.base, test.head) if side)
    why = console.reason_for(test.head) if test.head else ""
    return Text.assemble(
        (printable(test.id, 80), "bold"),
        console.turn_note(listed),
        "  ",
        (" → ".join(sides), console.STYLES[console.verdict_word(test.head)] if test.head else ""),
        f"  {printable(why, 500)}",
    )


def _last_lines(view: ReportView, report: Path) -> Iterator[Text]:
    review = view.review
    remarks = [f"compared with {review.base_sha[:7]}"] if review.base_sha else []
    remarks += [counted(len(review.warnings), "warning")] if review.warnings else []
    remarks += [counted(len(view.notices), "notice")] if view.notices else []
    path = report / PAGE
    name = os.path.relpath(path)
    yield Text()
    if remarks:
        yield Text("; ".join(remarks), "dim")
    shown = printable(str(path) if name.startswith("..") else name, 500)
    yield Text(f"report: {shown}", "dim")
