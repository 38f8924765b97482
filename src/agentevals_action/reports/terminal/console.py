"""Results for people at a terminal: the table of suites, a line for each test, the screen of a
review."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from rich.text import Text

from agentevals_action import formatting
from agentevals_action.escaping import printable
from agentevals_action.formatting import counted, each_once
from agentevals_action.model.comparison import NOT_COMPARED, ChangeKind, Decision, Outcome
from agentevals_action.model.result import TestResult
from agentevals_action.model.run import Level
from agentevals_action.model.skill import name_suite
from agentevals_action.reports.terminal.lines import (
    Styled,
    fitting_lines,
    print_line,
    print_table,
    rich_console,
)
from agentevals_action.reports.view.groups import GROUPS
from agentevals_action.reports.view.judges import describe_judge, describe_pairwise
from agentevals_action.reports.view.models import ReportedTest, ReportView, same_errors
from agentevals_action.reports.view.sentences import describe_change, headline, verdicts
from agentevals_action.reports.view.suite_table import suite_table

_WIDE = 120  # columns of a terminal from which the costs of base and head fit
_LINE = 1_000  # characters
_SUITES = 1_000  # in the table
_TESTS = 50  # in a list
_SCREEN_SUITES = 4  # in the table on the screen of a review
#: Rows of a screen besides the outcome, the suites, tests and notices; the fewest rows of tests and
#: notices.
_FRAME, _LEAST = 11, 6

#: The styles of verdicts.
STYLES = {"pass": "green", "borderline": "yellow", "fail": "red", "error": "magenta"}
_OUTCOMES = {
    Outcome.PASSED: "bold green",
    Outcome.FAILED: "bold red",
    Outcome.INCONCLUSIVE: "bold yellow",
    Outcome.INVALID: "bold red",
}


def print_suites(view: ReportView, stream: IO[str], limit: int = _SUITES) -> None:
    """The table of suites: head's verdicts, and the figures against base. With a base, a narrow
    terminal has no room for the verdicts and the cost."""
    table = suite_table(view.review.suites, limit)
    if table is None:
        return
    is_wide = not stream.isatty() or rich_console(stream).width >= _WIDE
    has_room = is_wide or not table.has_base
    has_cost = table.has_cost and has_room
    rows: list[list[Styled]] = []
    for row in table.rows:
        head = row.head
        counts = (head.passed, head.borderline, head.failed, head.errored) if head else (0,) * 4
        shown = [
            (str(count), style if count else "dim")
            for count, style in zip(counts, STYLES.values(), strict=True)
        ]
        figures = [row.pass_rate, *([row.pass_all] if table.has_pass_all else []), row.score]
        figures += [row.cost, row.time] if has_cost else [row.time]
        rows.append([printable(row.name), *(shown if has_room else []), *figures])
    titles = ["suite", *(STYLES if has_room else []), "pass rate"]
    titles += ["in all samples", "score"] if table.has_pass_all else ["score"]
    titles += ["cost", "time"] if has_cost else ["time"]
    print_table(stream, titles, rows)
    of_variants = (
        f"{row.name}, {table.variants}: {words}" for row in table.rows for words in row.variants
    )
    of_pairs = (
        f"{suite.run.label}, {pairwise.name}: {describe_pairwise(pairwise)}"
        for suite in view.review.suites
        for pairwise in suite.pairwise
    )
    print_sentences([table.left, *of_variants, *of_pairs], stream)


def print_sentences(sentences: Iterable[str], stream: IO[str]) -> None:
    """One line for each sentence; empty ones are left out."""
    for sentence in filter(None, sentences):
        print_line(stream, printable(sentence, _LINE))


def print_tests(view: ReportView, tests: Sequence[ReportedTest], stream: IO[str]) -> None:
    """The first of these tests, each in a line with its place."""
    for test in tests[:_TESTS]:
        print_line(stream, describe_test(view, test, has_place=True))
    if len(tests) > _TESTS:
        print_line(stream, f"… and {len(tests) - _TESTS} more")


def not_passed(view: ReportView) -> Sequence[ReportedTest]:
    """The tests of head that did not pass."""
    heads = [(test, test.comparison.head) for test in view.tests]
    return [test for test, head in heads if head and head.verdict != "pass"]


def changed(view: ReportView) -> Sequence[ReportedTest]:
    """The tests whose state is not the same on both sides."""
    return [test for test in view.tests if test.comparison.change is not ChangeKind.UNCHANGED]


def describe_test(view: ReportView, listed: ReportedTest, *, has_place: bool = False) -> Text:
    """A test in a line: the verdicts, its place and id, what became of it, why, and what fresh
    samples and waivers say of it."""
    test = listed.comparison
    side = listed.result
    place = f"{printable(side.path or side.eval_path)}:{side.line} " if side and has_place else ""
    turn = ""
    if listed.turn:
        turn = f" ({listed.turn} of the conversation {printable(listed.turn.conversation, 80)})"
    change, *notes = describe_change(test)
    # Without a base, every test is new.
    is_quiet = test.change is ChangeKind.UNCHANGED or not view.review.run.baseline.wanted
    if test.change in NOT_COMPARED and test.reason:
        change = f"{change}: {test.reason}"
    facts = [] if is_quiet else [change]
    facts += [_reason(test.head)] if test.head and test.head.verdict != "pass" else []
    facts += notes
    return Text.assemble(
        (f"{verdicts(test):<11} ", STYLES.get(test.head.state if test.head else "error", "dim")),
        place,
        (printable(test.id, 80), "bold"),
        turn,
        (f"  {printable('; '.join(facts), _LINE)}" if facts else "", "dim"),
    )


def _reason(result: TestResult) -> str:
    """The reason for a verdict: the error, or the failed gates and the misses, or the score."""
    if result.verdict is None and result.error:
        return f"{formatting.error_kind(result.error.kind)}: {result.error.message}"
    gates = ", ".join(result.gates_failed)
    misses = "; ".join(dict.fromkeys(result.misses))
    reasons = {"required gate failed": gates, "missed": misses}
    words = [f"{label}: {text}" for label, text in reasons.items() if text]
    return "; ".join(words) or f"score {formatting.score(result.score)}"


def outcome_line(decision: Decision) -> str:
    """`failed: 1 test regressed; 1 required gate failed`."""
    reasons = "; ".join(decision.reasons)
    return printable(": ".join(filter(None, (decision.outcome, reasons))), _LINE)


def print_review(view: ReportView, report: Path, stream: IO[str]) -> None:
    """A review on one screen: the outcome, the suites, what needs attention and why, notices and
    warnings. The rest is in the `report`."""
    review, run, terminal = view.review, view.review.run, rich_console(stream)
    title = Text(printable(headline(view), 500), _OUTCOMES[review.decision.outcome])
    terminal.print(title, "")
    print_suites(view, stream, _SCREEN_SUITES)
    above = len(title.wrap(terminal, terminal.width)) + min(len(review.suites), _SCREEN_SUITES)
    rows = max(terminal.height - above - _FRAME, _LEAST)
    entries, notices = list(_entries(view)), list(_notices(view))
    below = fitting_lines(notices, terminal, rows // 3 if entries else rows)
    for lines in (fitting_lines(entries, terminal, rows - len(below)), below):
        for line in lines:
            terminal.print(line, no_wrap=True, overflow="ellipsis")
    if entries or notices:
        terminal.print()
    if run.base_sha:
        compared = f"{run.head_label} {run.head_sha[:7]}, compared with {run.base_sha[:7]}"
        terminal.print(Text(compared, "dim"))
    path = os.path.relpath(report)
    shown = printable(str(report) if path.startswith("..") else path, 500)
    terminal.print(Text(f"report: {shown}", "dim"), no_wrap=True, overflow="ellipsis")


def _notices(view: ReportView) -> Iterator[Text]:
    remarks = {
        "advisory": map(describe_judge, view.advisory_judges),
        "notice": view.notices,
        "warning": view.review.run.sentences(Level.WARNING),
    }
    for kind, sentences in remarks.items():
        for sentence in each_once(sentences):
            yield Text.assemble((f"{kind}: ", "yellow"), printable(sentence, _LINE))


def _entries(view: ReportView) -> Iterator[Text]:
    """What needs attention, the most important first; an error that several tests share once."""
    errors = [*view.review.run.sentences(Level.ERROR)]
    if view.review.decision.outcome is Outcome.INVALID and not errors:
        errors = list(view.review.decision.reasons)
    for error in errors:
        yield Text.assemble(("error ", "red"), printable(error, _LINE))
    for problem in dict.fromkeys(suite.run.base.problem for suite in view.review.suites):
        if "\n" in problem:
            yield Text.assemble(("base ", "yellow"), printable(problem, _LINE))
    for group in GROUPS:
        if group.place == "open" or group.key == "undecided":
            tests = view.groups[group.key]
            alike, tests = same_errors(tests, _TESTS) if group.key == "errors" else ((), tests)
            for cause, same in alike:
                reason = f"{formatting.error_kind(cause.kind)}: {cause.message}"
                yield Text.assemble(
                    (f"{'error':<11} ", STYLES["error"]),
                    (
                        f"{counted(len(same), 'test')}, {printable(name_suite(same[0].suite))}",
                        "bold",
                    ),
                    (f"  {printable(reason, _LINE)}", "dim"),
                )
            for listed in tests:
                yield describe_test(view, listed, has_place=len(view.review.suites) > 1)
