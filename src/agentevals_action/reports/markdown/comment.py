"""The texts of the comment, the check run, the job summary and the frame of the report page:
Markdown, cut to limits. All untrusted text is escaped here."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentevals_action import __version__
from agentevals_action.escaping import code, prose
from agentevals_action.formatting import counted, each_once, first_line, joined, shortened, time
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.result import ErrorInfo
from agentevals_action.model.review import Outcome
from agentevals_action.model.run import Level
from agentevals_action.reports.markdown import sentences
from agentevals_action.reports.markdown.baseline import (
    NOISE_NOTE,
    BaselineText,
    date,
    difference_lines,
)
from agentevals_action.reports.markdown.suite_table import SuiteTable, suite_table
from agentevals_action.reports.markdown.tests import CommentedTest, Limits, TestText
from agentevals_action.reports.view.cost import spending_sentence
from agentevals_action.reports.view.groups import GROUPS, Group
from agentevals_action.reports.view.links import linked
from agentevals_action.reports.view.models import ReportView, Tests, same_errors

MARKER = "<!-- agentevals-report -->"

_ENTRIES = 5  # tests of a group that are shown in detail; of more there is a list first
_NOTICES = 5  # the others are folded
#: Spaces at which a cell must not break: all but those before an arrow, a unit and a change.
_NO_BREAK = re.compile(r" (?![→(]|per sample)")
_SEPARATOR = " · "
_FIGURES = ("pass_rate", "score", "regressed", "cost", "time")


@dataclass(frozen=True)
class Section:
    """A titled list of Markdown lines. `note` explains it; `entries` are tests in detail, folded
    below the summary `details` if that is not empty."""

    title: str
    lines: tuple[str, ...] = ()
    note: str = ""
    entries: tuple[CommentedTest, ...] = ()
    details: str = ""


@dataclass(frozen=True)
class Comment:
    """What a template gets as `view`: escaped Markdown, nothing to compute. Absent parts are empty.

    `outcome` is a word, `verdict` one sentence, `report` the link to the report page; `reasons` are
    listed if the sentence does not contain all of them. `errors` are those of suites. `tests` are
    the groups that need a reader, `changes` tests that pass with a doubt and what the change
    removes and edits, `counts` the other groups in one line each, `facts` base and cost, `details`
    what can be folded."""

    marker: str
    alert: str
    outcome: str
    verdict: str
    report: str
    reasons: tuple[str, ...]
    errors: Section | None
    suites: SuiteTable | None
    tests: tuple[Section, ...]
    changes: tuple[Section, ...]
    counts: tuple[str, ...]
    facts: tuple[str, ...]
    details: tuple[Section, ...]
    notices: tuple[str, ...]
    shortened: str
    footer: str


def build_comment(view: ReportView, limits: Limits, *, is_short: bool = False) -> Comment:
    """The Markdown of a view; a short one states that it is."""
    return _Builder(view, limits).comment(is_short)


class _Builder:
    def __init__(self, view: ReportView, limits: Limits) -> None:
        self._view = view
        self._review = view.review
        self._limits = limits
        self._base = BaselineText(view.review, view.links)
        runners = {suite.path: suite.run.runner for suite in view.review.suites}
        self._text = TestText(view.links, limits, runners)

    def comment(self, is_short: bool) -> Comment:
        view, review = self._view, self._review
        outcome = f"**{review.decision.outcome.capitalize()}:**"
        sentence = prose(sentences.sentence(view), 1_000)
        notices = [prose(notice, 500) for notice in each_once(view.notices)]
        folded = self._list(counted(len(notices[_NOTICES:]), "more notice"), notices[_NOTICES:])
        invalid = review.run.diagnostics(Level.ERROR)
        spent = spending_sentence(view.spending)  # a result names the source of its cost
        return Comment(
            marker=MARKER,
            alert=sentences.alert(view),
            outcome=review.decision.outcome,
            verdict=" ".join(filter(None, (review.run.claims, outcome, sentence))),
            report=self._report(),
            reasons=self._reasons(),
            errors=self._diagnostics(invalid, "error", _invalid_files(invalid)),
            suites=self._suites(),
            tests=(*self._failed_on_base(), *self._groups("open")),
            changes=tuple(filter(None, (*self._groups("listed"), self._removed(), self._edited()))),
            counts=tuple(
                self._count(group)
                for group in GROUPS
                if group.place == "counted" and view.groups[group.key]
            ),
            facts=tuple(filter(None, (self._base.sentence(), spent and prose(spent)))),
            details=tuple(filter(None, (*self._details(), folded))),
            notices=tuple(notices[:_NOTICES]),
            shortened=self._shortened() if is_short else "",
            footer=self._footer(),
        )

    def _report(self) -> str:
        url = self._view.links.report_url
        return f"**[Open the report]({url})**: every answer, tool call and sample" if url else ""

    def _reasons(self) -> tuple[str, ...]:
        decision = self._review.decision
        few = len(decision.reasons) <= sentences.REASONS_IN_SENTENCE
        if decision.outcome is Outcome.PASSED or few:
            return ()
        return shortened([prose(reason, 500) for reason in decision.reasons], self._limits.items)

    def _suites(self) -> SuiteTable | None:
        table = suite_table(self._review.suites, self._limits.suites)
        if table is None:
            return None
        rows = []
        for row in table.rows:
            name = f"**{row.name}**"
            if row.path:
                name = self._text.suite(row.path, self._view.links.head_file(row.path))
            cells: dict[str, Any] = {
                cell: _NO_BREAK.sub("&nbsp;", getattr(row, cell)) for cell in _FIGURES
            }
            rows.append(replace(row, name=name, **cells))
        return replace(table, rows=tuple(rows))

    def _groups(self, place: str) -> tuple[Section, ...]:
        """The groups of a place with their tests; an error that several tests share stands once."""
        sections = []
        for group in GROUPS:
            tests = self._view.groups[group.key] if group.place == place else ()
            if group.key == "errors":
                alike, tests = same_errors(tests, self._limits.detailed)
                sections += [self._error(error, same) for error, same in alike]
            sections += [self._group(group, tests)] if tests else []
        return tuple(sections)

    def _error(self, error: ErrorInfo, tests: Tests) -> Section:
        suites = list(dict.fromkeys(self._text.suite(test.suite) for test in tests))
        of = suites[0] if len(suites) == 1 else counted(len(suites), "suite")
        title = f"{counted(len(tests), 'test')} of {of} ended in an error"
        return Section(title, note=self._text.of_error(error, tests))

    def _failed_on_base(self) -> Iterator[Section]:
        """The output of the programs because of which there is no base."""
        for problem in dict.fromkeys(suite.run.base.problem for suite in self._review.suites):
            if output := self._text.output(problem):
                words = first_line(problem)
                yield Section(prose(words[0].upper() + words[1:]), note=output)

    def _group(self, group: Group, tests: Tests) -> Section:
        title = prose(group.describe([test.comparison for test in tests]))
        detailed = tests[: self._limits.detailed] if group.place == "open" else ()
        entries = tuple(map(self._text.entry, detailed))
        if entries and len(tests) <= _ENTRIES:
            return Section(title, note=group.note, entries=entries)
        lines = [self._text.line(test) for test in tests[: self._limits.items]]
        left = len(tests) - len(lines)
        lines += [f"… and {left:,} more"] if left else []
        first = "" if len(entries) == len(tests) else "first "
        details = f"Questions and answers of the {first}{counted(len(entries), 'test')}"
        return Section(title, tuple(lines), group.note, entries, details)

    def _count(self, group: Group) -> str:
        tests = self._view.groups[group.key]
        title = prose(group.describe([test.comparison for test in tests]))
        note = f", {group.note}" if group.note else ""
        return f"{linked(title, self._view.links.group(group.key))}{note}"

    def _removed(self) -> Section | None:
        name, url_of = self._text.name, self._view.links.base_file
        lines = [
            f"suite {linked(code(path), url_of(path))}" for path in self._review.run.gone_suites
        ]
        for test in self._view.groups["removed"]:
            gates = joined([code(gate) for gate in test.comparison.gates_removed[:5]])
            with_gates = f" with its required gates {gates}" if gates else ""
            lines.append(f"test {name(test)} of {code(test.suite)}{with_gates}")
        lines += [
            f"required gate {code(gate)} of {name(test)} in {code(test.suite)}"
            for test in self._view.tests
            if test.comparison.head
            for gate in test.comparison.gates_removed
        ]
        return self._list(sentences.removed(self._view), lines)

    def _edited(self) -> Section | None:
        lines = []
        for edit in self._view.edits:
            links = self._view.links
            file = links.base_file if edit.action == "removed" else links.head_file
            url = file(edit.location.path, edit.location.line)
            place = linked(code(f"{edit.location.path}:{edit.location.line}"), url)
            lines.append(f"{prose(sentences.describe_edit(edit))} at {place}")
        return self._list(sentences.edited(self._view.edits), lines)

    def _details(self) -> Sequence[Section | None]:
        """The base, why the suites ran, and warnings."""
        selections = self._review.run.selections
        suites = "this suite" if len(selections) == 1 else f"these {len(selections):,} suites"
        why = [
            f"{code(selection.path)}: {prose(', '.join(selection.reasons[:5]), 300)}"
            for selection in selections
        ]
        warnings = self._diagnostics(
            self._review.run.diagnostics(Level.WARNING), "warning", "about suites"
        )
        return (
            self._list("Origin of the baseline", self._base.lines()),
            self._list(f"Why {suites} ran", why),
            warnings,
        )

    def differences(self) -> Section | None:
        """The differences of the suites with their intervals."""
        lines = [
            f"{code(suite.path)}: {line}"
            for suite in self._review.suites
            for line in difference_lines(suite)
        ]
        return self._list("Differences and noise", lines, NOISE_NOTE)

    def _list(self, title: str, lines: Sequence[str], note: str = "") -> Section | None:
        return Section(title, shortened(lines, self._limits.items), note) if lines else None

    def _diagnostics(
        self, diagnostics: Sequence[Diagnostic], noun: str, where: str
    ) -> Section | None:
        lines = []
        for diagnostic in diagnostics:
            location = diagnostic.location
            url = self._view.links.head_file(location.path, location.line)
            message = prose(diagnostic.message, self._limits.text)
            lines.append(f"{linked(code(str(location)), url)} {message}")
        if not lines:
            return None
        title = f"{counted(len(diagnostics), noun)} {where}"
        return Section(title, shortened(lines, self._limits.errors))

    def _shortened(self) -> str:
        links = self._view.links
        where = "the report folder"
        if links.report_url:
            where = f"the [report page]({links.report_url})"
        elif links.run_url:
            where = f"the [run's summary]({links.run_url})"
        return f"The lists are cut. The full report is in {where}."

    def _footer(self) -> str:
        review = self._review
        head, base = self._base.commit(review.run.head_sha), self._base.commit(review.run.base_sha)
        parts = [
            f"agentevals-action {__version__}",
            f"{counted(review.run.samples, 'sample')} per test",
        ]
        parts += [f"{review.run.head_label} {head}"] if head else []
        parts += [f"base {base}"] if base else []
        return _SEPARATOR.join([*parts, time(review.run.duration_ms)])


def differences(view: ReportView, limits: Limits) -> Section | None:
    """The differences of the suites with their intervals, for the report page."""
    return _Builder(view, limits).differences()


def origin(view: ReportView) -> str:
    """Repository, pull request, branch, time and uncommitted changes of the run, for the report
    page."""
    links, run = view.links, view.review.run
    parts = [code(links.repository)] if links.repository else []
    if links.pull_request:
        parts.append(linked(f"pull request #{links.pull_request}", links.pull()))
    parts += [f"branch {code(links.branch)}"] if links.branch else []
    parts += [date(run.time)] if run.time else []
    parts += [counted(len(run.uncommitted), "uncommitted file")] if run.uncommitted else []
    return _SEPARATOR.join(parts)


def _invalid_files(diagnostics: Sequence[Diagnostic]) -> str:
    in_configuration = {diagnostic.location.path == FILE for diagnostic in diagnostics}
    where = ["in suites that the change affects"] if False in in_configuration else []
    return joined(where + ([f"in `{FILE}`"] if True in in_configuration else []))
