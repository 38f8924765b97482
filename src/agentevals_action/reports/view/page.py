"""The texts of the comment, the check run and the job summary: Markdown, cut to limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from agentevals_action import __version__
from agentevals_action.escaping import code, inline, prose
from agentevals_action.formatting import (
    counted,
    counted_error_kinds,
    each_once,
    joined,
    plural,
    time,
)
from agentevals_action.model.comparison import describe_worse
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.review import Outcome
from agentevals_action.reports.view import edits, verdict, waivers
from agentevals_action.reports.view.baseline import BaselineText
from agentevals_action.reports.view.cost import spending_sentence
from agentevals_action.reports.view.links import linked
from agentevals_action.reports.view.listing import Listing, cut, make_listing
from agentevals_action.reports.view.models import ListedTest, ReportView
from agentevals_action.reports.view.suite_table import SuiteTable, suite_tables
from agentevals_action.reports.view.tests import Entry, Line, ListLimits, TestRow, TestText

MARKER = "<!-- agentevals-report -->"

_TABLE_FROM = 6  # tests that need a reviewer, from which on they are a table
_OPEN_ROWS = 20  # of that table; the others are folded
_OPEN_NOTICES = 4  # the others are folded
_NOTICE = 500  # characters
_FLAKY = "Not counted: the verdict dropped in some samples, and fresh samples did not confirm it."
_UNDECIDED = (
    "Not counted: the verdict dropped, "
    "and fresh samples could not decide whether that is more than noise."
)
_BY_EDITS = (
    "Base's evaluators scored head's answers too. A change of evaluators alone does not block."
)
_QUARANTINE = "These tests run, but do not count until their entry in `.agentevals.yaml` expires."


@dataclass(frozen=True)
class TestColumns:
    """Whether the optional columns of the table of tests contain anything."""

    suite: bool
    gate: bool


@dataclass(frozen=True)
class Worse:
    """Tests that need a reviewer. A few are `entries`. Of many there is a table: `rows`, and folded
    `more_rows` below the summary `more`; `left` counts those that are in neither. Then the entries
    are folded below the summary `details`."""

    title: str
    entries: tuple[Entry, ...] = ()
    details: str = ""
    columns: TestColumns | None = None
    rows: tuple[TestRow, ...] = ()
    more: str = ""
    more_rows: tuple[TestRow, ...] = ()
    left: str = ""


@dataclass(frozen=True)
class Page:
    """What a template gets as `view`: escaped Markdown, nothing to compute. Absent parts are None
    or empty.

    `verdict` is one sentence, `report` the link to the uploaded report page; `reasons` are listed
    if the sentence does not contain all of them.
    `noise` lists the origin and the differences of each suite. `shortened` states that parts are
    left out, and where they are."""

    marker: str
    alert: str
    verdict: str
    report: str
    reasons: tuple[str, ...]
    suites: SuiteTable | None
    all_suites: SuiteTable | None
    diagnostics: Listing | None
    regressions: Worse | None
    failures: Worse | None
    accepted: Worse | None
    passed_by_edits: Listing | None
    gone: Listing | None
    edits: Listing | None
    unscored_by_base: Listing | None
    errors: Listing | None
    errors_open: bool
    undecided: Listing | None
    flaky: Listing | None
    quarantined: Listing | None
    improvements: Listing | None
    changed_questions: Listing | None
    new: Listing | None
    removed: Listing | None
    still_failing: Listing | None
    not_compared: Listing | None
    moved_scores: Listing | None
    baseline: str
    baseline_notes: tuple[str, ...]
    noise: Listing | None
    spent: str
    selections: Listing | None
    warnings: Listing | None
    notices: tuple[str, ...]
    notices_folded: Listing | None
    shortened: str
    footer: str


def build_page(view: ReportView, limits: ListLimits) -> Page:
    """Words a view for the templates; all untrusted text is escaped here."""
    return _PageBuilder(view, limits).page()


class _PageBuilder:
    def __init__(self, view: ReportView, limits: ListLimits) -> None:
        self._view = view
        self._review = view.review
        self._limits = limits
        self._base = BaselineText(view.review, view.links)
        self._text = TestText(view.links, limits, [suite.path for suite in view.review.suites])

    def page(self) -> Page:
        view, review, limits, text = self._view, self._review, self._limits, self._text
        suites, all_suites = suite_tables(review.suites, view.links, limits.items)
        notices, folded_notices = self._notices()
        removed = [one for one in view.removal.tests if one.comparison.quarantine is None]

        def listing(
            limit: int, words: str, tests: Sequence[ListedTest], line: Line, note: str = ""
        ) -> Listing | None:
            return text.listing(counted(len(tests), "test", words), tests, line, limit, note)

        folded, quiet = partial(listing, limits.folded), partial(listing, limits.quiet)
        return Page(
            marker=MARKER,
            alert=view.alert,
            verdict=self._verdict(),
            report=self._report(),
            reasons=self._reasons(),
            suites=suites,
            all_suites=all_suites,
            diagnostics=self._diagnostics(review.invalid, "error", _invalid_files(review.invalid)),
            regressions=self._worse(
                joined(describe_worse([one.comparison for one in view.regressions])),
                view.regressions,
                "Regressions and failed gates",
            ),
            failures=self._worse(
                f"{counted(len(view.failures), 'test')} failed with nothing to compare with",
                view.failures,
            ),
            accepted=self._worse(self._accepted_title(), view.accepted),
            passed_by_edits=text.listing(
                edits.by_edits_title([one.comparison for one in view.passed_by_edits]),
                view.passed_by_edits,
                text.by_base_line,
                self._few(),
                _BY_EDITS,
            ),
            gone=self._removal(),
            edits=self._edits(),
            unscored_by_base=quiet(
                "could not be scored with base's evaluators",
                view.unscored_by_base,
                text.by_base_line,
            ),
            errors=text.listing(self._errors_title(), view.errors, text.error_line, limits.folded),
            errors_open=review.decision.outcome is Outcome.INCONCLUSIVE,
            undecided=folded("undecided", view.undecided, text.evidence_line, _UNDECIDED),
            flaky=folded("flaky", view.flaky, text.evidence_line, _FLAKY),
            quarantined=folded(
                "in quarantine", view.quarantined, text.quarantine_line, _QUARANTINE
            ),
            improvements=folded("improved", view.improved, text.line),
            changed_questions=quiet(
                "not compared: the question changed", view.question_changed, text.reason_line
            ),
            new=quiet(plural(len(view.new), "is new", "are new"), view.new, text.line),
            removed=folded("removed", removed, text.line),
            still_failing=quiet("still failing", view.still_failing, text.worse_line),
            not_compared=quiet("could not be compared", view.not_compared, text.reason_line),
            moved_scores=quiet(
                "with another score and the same verdict", view.score_changed, text.line
            ),
            baseline=self._base.sentence(),
            baseline_notes=self._base.notes(limits.items),
            noise=self._base.details(min(limits.items, limits.folded)),
            spent=spending_sentence(view.spending),
            selections=self._selections(),
            warnings=self._diagnostics(review.warnings, "warning", "about suites"),
            notices=notices,
            notices_folded=folded_notices,
            shortened=self._shortened(),
            footer=self._footer(),
        )

    def _verdict(self) -> str:
        outcome = f"**{self._review.decision.outcome.capitalize()}:**"
        waived = waivers.sentences((one.comparison for one in self._view.tests), code)
        edited = verdict.edits_and_removal(self._view, code)
        parts = [self._review.claims, outcome, prose(self._view.sentence, 1000), edited, waived]
        return " ".join(filter(None, parts))

    def _report(self) -> str:
        url = self._view.links.report_url
        return f"**[Open the report]({url})**: every answer, tool call and sample" if url else ""

    def _reasons(self) -> tuple[str, ...]:
        reasons = self._review.decision.reasons
        is_passed = self._review.decision.outcome is Outcome.PASSED
        if is_passed or len(reasons) <= verdict.REASONS_IN_SENTENCE:
            return ()
        return cut([prose(reason, 500) for reason in reasons], self._limits.items)

    def _accepted_title(self) -> str:
        names = dict.fromkeys(code(one.comparison.accepted_by) for one in self._view.accepted)
        number = counted(len(self._view.accepted), "regression")
        return f"{number} accepted by {joined(list(names))}"

    def _errors_title(self) -> str:
        """Counts the errors by kind: an exhausted budget needs another action than a target."""
        heads = [one.comparison.head for one in self._view.errors]
        ended = [head.error for head in heads if head and head.error and not head.verdict]
        unconfirmed = sum(head is not None and head.verdict is not None for head in heads)
        words = []
        if unconfirmed:
            words.append(counted(unconfirmed, "test", "got worse and could not be confirmed"))
        if number := len(heads) - unconfirmed:
            by_kind = counted_error_kinds(error.kind for error in ended)
            error = f"ended in an error{f': {inline(by_kind)}' if by_kind else ''}"
            words.append(f"{counted(number, 'test')} {error}")
        return joined(words)

    def _worse(
        self, title: str, tests: Sequence[ListedTest], short_title: str = ""
    ) -> Worse | None:
        if not tests:
            return None
        limits, text = self._limits, self._text
        entries = text.entries(tests[: limits.detailed])
        rows = text.rows(tests[: limits.rows]) if len(tests) >= _TABLE_FROM else ()
        if not rows:
            return Worse(title, entries)
        # A fold of a few rows would not save much.
        few = _OPEN_ROWS if len(rows) > _OPEN_ROWS + _TABLE_FROM else len(rows)
        more, left = len(rows) - few, len(tests) - len(rows)
        first = "" if len(entries) == len(tests) else "first "
        details = f"Questions, answers and statistics of the {first}{counted(len(entries), 'test')}"
        return Worse(
            short_title or title,
            entries,
            details=details,
            columns=TestColumns(len(self._review.suites) > 1, any(row.gate for row in rows)),
            rows=rows[:few],
            more=counted(more, "more test") if more else "",
            more_rows=rows[few:],
            left=f"… and {counted(left, 'more test')}" if left else "",
        )

    def _removal(self) -> Listing | None:
        removal, name = self._view.removal, self._text.name
        base_file = self._view.links.base_file
        lines = [f"suite {linked(code(path), base_file(path))}" for path in removal.suites]
        for one in removal.tests:
            gates = [code(gate) for gate in one.comparison.gates_removed[:5]]
            noun = plural(len(one.comparison.gates_removed), "gate")
            with_gates = f" with its required {noun} {joined(gates)}" if gates else ""
            lines.append(f"test {name(one)} of {code(one.suite)}{with_gates}")
        lines += [
            f"required gate {code(gate)} of {name(one)} in {code(one.suite)}"
            for one, gate in removal.gates
        ]
        return make_listing(removal.sentence.rstrip("."), lines, self._few())

    def _edits(self) -> Listing | None:
        found, links = self._view.edits, self._view.links
        lines = []
        for edit in found[: self._few()]:
            file = links.base_file if edit.action == "removed" else links.head_file
            url = file(edit.location.path, edit.location.line)
            lines.append(edits.describe(edit, code, url))
        return make_listing(edits.sentence(found).rstrip("."), lines, self._few(), len(found))

    def _few(self) -> int:
        """Items of a list that is always shown."""
        return min(self._limits.items, max(self._limits.folded, 5))

    def _diagnostics(
        self, diagnostics: Sequence[Diagnostic], noun: str, where: str
    ) -> Listing | None:
        lines = [self._diagnostic(one) for one in diagnostics[: self._limits.items]]
        title = f"{counted(len(diagnostics), noun)} {where}"
        return make_listing(title, lines, self._limits.items, len(diagnostics))

    def _diagnostic(self, one: Diagnostic) -> str:
        url = self._view.links.head_file(one.location.path, one.location.line)
        message = "; ".join(filter(None, (one.problem, one.advice)))
        return f"{linked(code(str(one.location)), url)} {prose(message, self._limits.text)}"

    def _selections(self) -> Listing | None:
        selections = self._review.selections if self._limits.folded else ()
        limit = min(self._limits.items, self._limits.folded)
        lines = [
            f"{code(one.path)}: {prose(', '.join(one.reasons[:5]), 300)}"
            for one in selections[:limit]
        ]
        suites = "this suite" if len(selections) == 1 else f"these {len(selections):,} suites"
        return make_listing(f"Why {suites} ran", lines, limit, len(selections))

    def _notices(self) -> tuple[tuple[str, ...], Listing | None]:
        """The first notices, and the others as a list; equal ones are counted."""
        notices = [prose(notice, _NOTICE) for notice in each_once(self._view.notices)]
        # A list of a single notice would not save a line.
        few = _OPEN_NOTICES if len(notices) > _OPEN_NOTICES + 1 else len(notices)
        title = counted(len(notices) - few, "more notice")
        return tuple(notices[:few]), make_listing(title, notices[few:], self._limits.items)

    def _shortened(self) -> str:
        if self._limits.name == "full":
            return ""
        links = self._view.links
        where = "the report folder"
        if links.report_url:
            where = f"the [report page]({links.report_url})"
        elif links.run_url:
            where = f"the [run's summary]({links.run_url})"
        return f"This report is shortened. The full report is in {where}."

    def _footer(self) -> str:
        review = self._review
        head, base = self._base.commit(review.head_sha), self._base.commit(review.base_sha)
        parts = [
            f"agentevals-action {__version__}",
            f"{counted(review.samples, 'sample')} per test",
        ]
        parts += [f"head {head}"] if head else []
        parts += [f"base {base}"] if base else []
        return " · ".join([*parts, time(review.duration_ms)])


def _invalid_files(diagnostics: Sequence[Diagnostic]) -> str:
    in_configuration = {one.location.path == FILE for one in diagnostics}
    where = ["in suites that the change affects"] if False in in_configuration else []
    return joined(where + ([f"in `{FILE}`"] if True in in_configuration else []))
