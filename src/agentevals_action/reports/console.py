"""Results for people at a terminal: tables and lists of tests."""

from collections.abc import Iterable, Sequence
from typing import IO

from agentevals_action import formatting
from agentevals_action.escaping import printable
from agentevals_action.model.comparison import ChangeKind
from agentevals_action.model.result import SuiteSummary, TestResult
from agentevals_action.model.review import Decision
from agentevals_action.reports.terminal import (
    Column,
    Styled,
    print_line,
    print_table,
    rich_console,
)
from agentevals_action.reports.view import cost, waivers
from agentevals_action.reports.view.models import ListedTest, ReportView

_WIDE = 120  # columns of a terminal from which the table of suites has columns for cost and tokens
_LINE = 1_000  # characters
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


def verdict_style(result: TestResult | None) -> str:
    """The style of a test's verdict."""
    return STYLES[verdict_word(result)] if result else ""


def figure(value: float | None) -> str:
    """A number with two digits; unknown is a dash."""
    return formatting.UNKNOWN if value is None else f"{value:.2f}"


def rate(value: float | None) -> str:
    """A share of 0-1 in percent; unknown is a dash."""
    return formatting.UNKNOWN if value is None else f"{value:.0%}"


def print_suites(view: ReportView, stream: IO[str]) -> None:
    """A table of head's suites: verdicts, pass rate, mean score, time, cost and tokens.

    Cost and tokens are against base. A narrow terminal shows them below the table."""
    suites = [(suite.head, suite.base) for suite in view.review.suites if suite.head]
    spent = [_spent(head, base) for head, base in suites]
    is_wide = not stream.isatty() or rich_console(stream).width >= _WIDE
    extra = list(dict.fromkeys(title for row in spent for title in row)) if is_wide else []
    titles = ["pass", "borderline", "fail", "error", "pass rate", "score", "time", *extra]
    rows: list[list[Styled]] = []
    for (head, _), amounts in zip(suites, spent, strict=True):
        counts = (head.passed, head.borderline, head.failed, head.errored)
        verdicts = [
            (str(count), style if count else "dim")
            for count, style in zip(counts, STYLES.values(), strict=True)
        ]
        figures = [rate(head.pass_rate), figure(head.average_score)]
        figures += [f"{head.duration_ms / 1000:.1f} s"]
        figures += [amounts.get(title, formatting.UNKNOWN) for title in extra]
        rows.append([printable(head.eval_path), *verdicts, *figures])
    columns = [Column("suite"), *(Column(title, is_figure=True) for title in titles)]
    print_table(stream, columns, rows)
    if not is_wide:
        for (head, _), amounts in zip(suites, spent, strict=True):
            words = ", ".join(f"{title} {amount}" for title, amount in amounts.items())
            print_sentences([f"{head.eval_path}: {words}" if words else ""], stream)


def _spent(head: SuiteSummary, base: SuiteSummary | None) -> dict[str, str]:
    """Cost and tokens of the agents, if they are known of either side."""
    amounts = {
        "cost": (formatting.cost, cost.agent_cost),
        "tokens": (formatting.tokens, cost.agent_tokens),
    }
    spent = {}
    for title, (words, amount_of) in amounts.items():
        here, there = amount_of(head), amount_of(base) if base else None
        if here.total is not None or (there and there.total is not None):
            spent[title] = cost.compare_amounts(words, there, here)
    return spent


def print_sentences(sentences: Iterable[str], stream: IO[str]) -> None:
    """One line for each sentence; empty ones are left out."""
    for sentence in filter(None, sentences):
        print_line(stream, printable(sentence, _LINE))


def print_not_passed(view: ReportView, stream: IO[str]) -> None:
    """The first tests of head that did not pass, and why."""
    heads = [(listed, listed.comparison.head) for listed in view.tests]
    failed = [(listed, head) for listed, head in heads if head and head.verdict != "pass"]
    for listed, result in failed[:SHOWN]:
        word = verdict_word(result)
        location = f" {printable(result.path)}:{result.line} {printable(result.eval_id, 80)}"
        why = (f"  {printable(reason_for(result))}", "dim")
        print_line(stream, (f"{word:<10}", STYLES[word]), f"{location}{turn_note(listed)}", why)
    if len(failed) > SHOWN:
        print_line(stream, f"… and {len(failed) - SHOWN} more")


def turn_note(one: ListedTest) -> str:
    """` (turn 2 of 3 of the conversation NAME)`; empty for a test that is not one of several."""
    if one.turn is None:
        return ""
    return f" ({one.turn} of the conversation {printable(one.turn.conversation, 80)})"


def reason_for(result: TestResult) -> str:
    """The reason for a verdict: the error, or the failed gates and the misses, or the score."""
    if result.verdict is None and result.error:
        return f"{formatting.error_kind(result.error.kind)}: {result.error.message}"
    gates = ", ".join(result.gates_failed)
    misses = "; ".join(dict.fromkeys(result.misses))
    reasons = {"required gate failed": gates, "missed": misses}
    words = [f"{label}: {text}" for label, text in reasons.items() if text]
    return "; ".join(words) or f"score {figure(result.score)}"


def print_changes(view: ReportView, stream: IO[str]) -> None:
    """One line for each test that changed, with its confirmation and why it does not count."""
    for one in view.tests:
        test = one.comparison
        if test.change is ChangeKind.UNCHANGED:
            continue
        change, *notes = waivers.describe_change(test)
        is_waived = test.accepted_by or test.quarantine
        style = "" if is_waived else _CHANGE_STYLES.get(test.change, "")
        sides = (verdict_word(side) if side else "–" for side in (test.base, test.head))
        name = f" {printable(one.suite)} {printable(test.id, 80)}{turn_note(one)}"
        note = (f"  {printable('; '.join(notes), 500)}" if notes else "", "dim")
        print_line(stream, (f"{change:<17}", style), f"{name}: {' → '.join(sides)}", note)


def print_figures(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    stream: IO[str],
    texts: Sequence[int] = (0,),
) -> None:
    """A table of figures, with words in the columns `texts`."""
    columns = [Column(title, number not in texts) for number, title in enumerate(titles)]
    print_table(stream, columns, [[printable(cell) for cell in row] for row in rows])


def outcome_line(decision: Decision) -> str:
    """`failed: 1 test regressed; 1 required gate failed`."""
    reasons = "; ".join(decision.reasons)
    return printable(": ".join(filter(None, (decision.outcome, reasons))), _LINE)
