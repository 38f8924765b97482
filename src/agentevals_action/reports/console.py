"""Results for people at a terminal: tables and lists of tests."""

from collections.abc import Iterable
from typing import IO

from agentevals_action import formatting
from agentevals_action.escaping import printable
from agentevals_action.model.comparison import ChangeKind
from agentevals_action.model.result import TestResult
from agentevals_action.model.review import Decision
from agentevals_action.reports.terminal import Styled, print_line, print_table, rich_console
from agentevals_action.reports.view.models import ListedTest, ReportView
from agentevals_action.reports.view.sentences import describe_change
from agentevals_action.reports.view.suite_table import suite_table

_WIDE = 120  # columns of a terminal from which the costs of base and head fit
_LINE = 1_000  # characters
_SUITES = 1_000  # in the table
SHOWN = 50  # tests in a list

#: The styles of verdicts.
STYLES = {"pass": "green", "borderline": "yellow", "fail": "red", "error": "magenta"}
_CHANGE_STYLES = {
    ChangeKind.REGRESSED: "red",
    ChangeKind.IMPROVED: "green",
    ChangeKind.UNDECIDED: "yellow",
}


def verdict_word(result: TestResult) -> str:
    """`pass`, `borderline`, `fail` or `error`."""
    return result.verdict or "error"


def print_suites(view: ReportView, stream: IO[str]) -> None:
    """The table of suites: head's verdicts, and the figures against base. With a base, a narrow
    terminal has no room for the verdicts and the cost."""
    table = suite_table(view.review.suites, _SUITES)
    if table is None:
        return
    is_wide = not stream.isatty() or rich_console(stream).width >= _WIDE
    has_room = is_wide or not table.has_base
    has_cost = table.has_cost and has_room
    rows: list[list[Styled]] = []
    for row in table.rows:
        head = row.head
        counts = (head.passed, head.borderline, head.failed, head.errored) if head else (0,) * 4
        verdicts = [
            (str(count), style if count else "dim")
            for count, style in zip(counts, STYLES.values(), strict=True)
        ]
        figures = [row.pass_rate, row.score, *([row.cost] if has_cost else []), row.time]
        rows.append([printable(row.name), *(verdicts if has_room else []), *figures])
    titles = ["suite", *(STYLES if has_room else []), "pass rate", "score"]
    titles += ["cost", "time"] if has_cost else ["time"]
    print_table(stream, titles, rows)
    print_sentences([table.left], stream)


def print_sentences(sentences: Iterable[str], stream: IO[str]) -> None:
    """One line for each sentence; empty ones are left out."""
    for sentence in filter(None, sentences):
        print_line(stream, printable(sentence, _LINE))


def print_not_passed(view: ReportView, stream: IO[str]) -> None:
    """The first tests of head that did not pass, and why."""
    heads = [(test, test.comparison.head) for test in view.tests]
    failed = [(test, head) for test, head in heads if head and head.verdict != "pass"]
    for test, head in failed[:SHOWN]:
        word = verdict_word(head)
        location = f" {printable(head.path)}:{head.line} {printable(head.eval_id, 80)}"
        why = (f"  {printable(reason_for(head))}", "dim")
        print_line(stream, (f"{word:<10}", STYLES[word]), f"{location}{turn_note(test)}", why)
    if len(failed) > SHOWN:
        print_line(stream, f"… and {len(failed) - SHOWN} more")


def turn_note(test: ListedTest) -> str:
    """` (turn 2 of 3 of the conversation NAME)`; empty for a test that is not one of several."""
    if test.turn is None:
        return ""
    return f" ({test.turn} of the conversation {printable(test.turn.conversation, 80)})"


def reason_for(result: TestResult) -> str:
    """The reason for a verdict: the error, or the failed gates and the misses, or the score."""
    if result.verdict is None and result.error:
        return f"{formatting.error_kind(result.error.kind)}: {result.error.message}"
    gates = ", ".join(result.gates_failed)
    misses = "; ".join(dict.fromkeys(result.misses))
    reasons = {"required gate failed": gates, "missed": misses}
    words = [f"{label}: {text}" for label, text in reasons.items() if text]
    return "; ".join(words) or f"score {formatting.score(result.score)}"


def print_changes(view: ReportView, stream: IO[str]) -> None:
    """One line for each test that changed, with its confirmation and why it does not count."""
    for listed in view.tests:
        test = listed.comparison
        if test.change is ChangeKind.UNCHANGED:
            continue
        change, *notes = describe_change(test)
        is_waived = test.accepted_by or test.quarantine
        style = "" if is_waived else _CHANGE_STYLES.get(test.change, "")
        sides = (verdict_word(side) if side else "–" for side in (test.base, test.head))
        name = f" {printable(listed.suite)} {printable(test.id, 80)}{turn_note(listed)}"
        note = (f"  {printable('; '.join(notes), 500)}" if notes else "", "dim")
        print_line(stream, (f"{change:<17}", style), f"{name}: {' → '.join(sides)}", note)


def outcome_line(decision: Decision) -> str:
    """`failed: 1 test regressed; 1 required gate failed`."""
    reasons = "; ".join(decision.reasons)
    return printable(": ".join(filter(None, (decision.outcome, reasons))), _LINE)
