"""The view of a review: which test is told where, and how much of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from agentevals_action import __version__, formatting
from agentevals_action.escaping import code, inline, prose
from agentevals_action.formatting import counted, joined, score, time
from agentevals_action.model.comparison import Change, Outcome, Review, TestComparison
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.notices import Notices
from agentevals_action.model.quarantine import FILE
from agentevals_action.reports.view import confirmation, cost, verdict, waivers
from agentevals_action.reports.view.baseline import BaselineTeller
from agentevals_action.reports.view.grouping import Grouping, Line, Placed
from agentevals_action.reports.view.links import Links, linked
from agentevals_action.reports.view.models import MARKER, Limits, Listing, View, Worse
from agentevals_action.reports.view.suite_table import columns, rows
from agentevals_action.reports.view.tests import Teller, listing

_NOTICES = 4  # that stand open; more are folded
_NO_BASE = frozenset(
    {Change.NEW, Change.QUESTION_CHANGED, Change.NOT_COMPARABLE, Change.BASE_ERROR}
)
#: Tests that another list says nothing of, or nothing of their gates.
_STEADY = frozenset({Change.UNCHANGED, Change.IMPROVED, Change.STILL_FAILING, Change.NEW})

_FLAKY = "Not counted: worse in some samples, which fresh ones did not bear out."
_UNDECIDED = "Not counted: worse, and fresh samples could not tell whether that is more than noise."
_QUARANTINE = "Run, and not counted until the entry in `.agentevals.yaml` ends."


def view_of(review: Review, links: Links, limits: Limits) -> View:
    """Numbers and words made ready; all untrusted text is escaped here, for Markdown."""
    return _Maker(review, links, limits).view()


class _Maker:
    def __init__(self, review: Review, links: Links, limits: Limits) -> None:
        self._review = review
        self._links = links
        self._limits = limits
        placed: list[Placed] = [
            (suite.path, test) for suite in review.suites for test in suite.tests
        ]
        self._tests = [(suite, test) for suite, test in placed if not test.quarantine]
        self._held = [(suite, test) for suite, test in placed if test.quarantine]
        self._base = BaselineTeller(review, links)
        self._groups = Grouping(review.suites)
        self._teller = Teller(links, limits, self._groups, several=len(review.suites) > 1)

    def view(self) -> View:
        review, limits, tell = self._review, self._limits, self._teller
        gone = verdict.gone(review)
        table, suites_left = rows(review.suites, self._links, limits.items)
        notices, more_notices = self._notices()
        return View(
            marker=MARKER,
            alert=verdict.alert(review, gone),
            verdict=self._verdict(gone),
            reasons=self._reasons(),
            columns=columns(review.suites),
            suites=table,
            suites_left=suites_left,
            diagnostics=self._diagnostics(review.invalid, _diagnostics_where(review.invalid)),
            regressions=self._regressions(),
            failures=self._failures(),
            accepted=self._accepted(),
            gone=self._gone(gone),
            errors=self._errors(),
            errors_open=review.decision.outcome is Outcome.INCONCLUSIVE,
            undecided=self._undecided(),
            flaky=self._flaky(),
            quarantined=self._quarantined(),
            improvements=self._list("improved", limits.folded, tell.line, Change.IMPROVED),
            changed_questions=self._list(
                "not compared: the question changed",
                limits.quiet,
                tell.reason_line,
                Change.QUESTION_CHANGED,
            ),
            new=self._list("new", limits.quiet, tell.line, Change.NEW, verb=True),
            removed=self._list("removed", limits.folded, tell.line, Change.REMOVED),
            still_failing=self._list(
                "still failing", limits.quiet, tell.worse_line, Change.STILL_FAILING
            ),
            not_compared=self._list(
                "could not be compared",
                limits.quiet,
                tell.reason_line,
                Change.NOT_COMPARABLE,
                Change.BASE_ERROR,
            ),
            moved_scores=self._moved_scores(),
            baseline=self._base.sentence(),
            baseline_notes=self._base.notes(limits.items),
            noise=self._base.details(min(limits.items, limits.folded)),
            spent=cost.of_review(review).words(),
            selections=self._selections(),
            warnings=self._diagnostics(review.warnings, "about suites", "warning"),
            notices=notices,
            notices_folded=more_notices,
            shortened=self._shortened(),
            footer=self._footer(),
        )

    def _where(self, wanted: Callable[[TestComparison], bool]) -> list[Placed]:
        return [(suite, test) for suite, test in self._tests if wanted(test)]

    def _list(
        self, what: str, limit: int, line: Line, *changes: Change, verb: bool = False
    ) -> Listing | None:
        tests = self._where(lambda test: test.change in changes)
        be = ("is " if len(tests) == 1 else "are ") if verb else ""
        return self._groups.told(f"{counted(len(tests), 'test')} {be}{what}", tests, line, limit)

    def _errors(self) -> Listing | None:
        """Errors on head, with what went wrong in the title: a budget that is spent asks for
        something else than a target that fails."""
        tests = self._where(lambda test: test.change is Change.HEAD_ERROR)
        open_ = sum(test.head is not None and test.head.verdict is not None for _, test in tests)
        what = formatting.counted_error_kinds(
            test.head.error.kind
            for _, test in tests
            if test.head and test.head.error and not test.head.verdict
        )
        words = [counted(open_, "test", "got worse and could not be confirmed")] if open_ else []
        words += (
            [
                f"{counted(len(tests) - open_, 'test')} ended in an error{f': {inline(what)}' if what else ''}"
            ]
            if len(tests) > open_
            else []
        )
        return self._groups.told(joined(words), tests, self._teller.error_line, self._limits.folded)

    def _notices(self) -> tuple[tuple[str, ...], Listing | None]:
        """The first few notices, and the others as a list; equal ones are counted."""
        said = Notices()
        for notice in self._review.notices:
            said.add(notice)
        told = said.told()
        few = _NOTICES if len(told) > _NOTICES + 1 else len(told)
        others = (prose(notice, 500) for notice in told[few:])
        more = listing(
            counted(len(told) - few, "more notice"), others, len(told) - few, self._limits.items
        )
        return tuple(prose(notice, 500) for notice in told[:few]), more

    def _verdict(self, gone: verdict.Gone) -> str:
        sentence = prose(verdict.sentence(self._review), 1000)
        lost = f" {gone.sentence()}" if gone.words() else ""
        aside = waivers.sentences(
            (test for suite in self._review.suites for test in suite.tests), code
        )
        return f"**{self._review.decision.outcome.capitalize()}:** {sentence}{lost}{f' {aside}' if aside else ''}"

    def _reasons(self) -> tuple[str, ...]:
        reasons = verdict.reasons(self._review)
        if self._review.decision.outcome is Outcome.PASSED or len(reasons) <= verdict.IN_SENTENCE:
            return ()
        shown = [prose(reason, 500) for reason in reasons[: self._limits.items]]
        return (
            (*shown, f"… and {len(reasons) - len(shown):,} more")
            if len(reasons) > len(shown)
            else tuple(shown)
        )

    def _regressions(self) -> Worse | None:
        tests = self._where(waivers.got_worse)
        regressed = sum(waivers.regressed(test) for _, test in tests)
        gates = sum(len(waivers.gates_failed(test)) for _, test in tests)
        words = [counted(regressed, "test", "regressed")] if regressed else []
        words += [counted(gates, "required gate", "failed")] if gates else []
        return self._worse(sorted(tests, key=_severity), joined(words))

    def _failures(self) -> Worse | None:
        tests = self._where(
            lambda test: test.change in _NO_BASE and not waivers.got_worse(test) and _failed(test)
        )
        return self._worse(
            tests, f"{counted(len(tests), 'test')} failed with nothing to compare with"
        )

    def _accepted(self) -> Worse | None:
        tests = self._where(waivers.accepted)
        who = joined([code(name) for name in dict.fromkeys(test.accepted_by for _, test in tests)])
        return self._worse(
            sorted(tests, key=_severity), f"{counted(len(tests), 'regression')} accepted by {who}"
        )

    def _undecided(self) -> Listing | None:
        tests = self._where(waivers.is_undecided)
        title = f"{counted(len(tests), 'test')} undecided"
        return _noted(
            self._groups.told(title, tests, self._teller.evidence_line, self._limits.folded),
            _UNDECIDED,
        )

    def _flaky(self) -> Listing | None:
        tests = self._where(_is_flaky)
        return _noted(
            self._groups.told(
                f"{counted(len(tests), 'test')} flaky",
                tests,
                self._teller.evidence_line,
                self._limits.folded,
            ),
            _FLAKY,
        )

    def _quarantined(self) -> Listing | None:
        title = f"{counted(len(self._held), 'test')} in quarantine"
        return _noted(
            self._groups.told(title, self._held, self._teller.held_line, self._limits.folded),
            _QUARANTINE,
        )

    def _worse(self, tests: Sequence[Placed], title: str) -> Worse | None:
        if not tests:
            return None
        limits, tell = self._limits, self._teller
        ordered = self._groups.ordered(tests)
        more = ordered[limits.detailed : limits.detailed + limits.lines]
        told, lines = (
            tell.entries(ordered[: limits.detailed]),
            self._groups.lines(more, tell.worse_line),
        )
        left = len(tests) - len(told) - len(more)
        return Worse(
            title,
            told,
            lines,
            f"… and {counted(left, 'more test')}" if left and (told or lines) else "",
        )

    def _gone(self, gone: verdict.Gone) -> Listing | None:
        lines = [f"suite {linked(code(path), self._links.base_file(path))}" for path in gone.suites]
        lines += [
            f"test {self._teller.name(test)} of {code(suite)}{_with_gates(test)}"
            for suite, test in gone.tests
        ]
        lines += [
            f"required gate {code(gate)} of {self._teller.name(test)} in {code(suite)}"
            for suite, test, gate in gone.gates
        ]
        return listing(
            gone.sentence().rstrip("."),
            lines,
            len(lines),
            min(self._limits.items, max(self._limits.folded, 5)),
        )

    def _moved_scores(self) -> Listing | None:
        tests = self._where(lambda test: test.change is Change.UNCHANGED and _scores_differ(test))
        title = f"{counted(len(tests), 'test')} with another score and the same verdict"
        return self._groups.told(title, tests, self._teller.line, self._limits.quiet)

    def _diagnostics(
        self, diagnostics: Sequence[Diagnostic], where: str, noun: str = "fault"
    ) -> Listing | None:
        lines = (self._diagnostic(diagnostic) for diagnostic in diagnostics)
        return listing(
            f"{counted(len(diagnostics), noun)} {where}",
            lines,
            len(diagnostics),
            self._limits.items,
        )

    def _diagnostic(self, diagnostic: Diagnostic) -> str:
        place = linked(
            code(str(diagnostic.location)),
            self._links.head_file(diagnostic.location.path, diagnostic.location.line),
        )
        return f"{place} {prose(diagnostic.problem + (f'; {diagnostic.advice}' if diagnostic.advice else ''), self._limits.text)}"

    def _selections(self) -> Listing | None:
        selections = self._review.selections if self._limits.folded else ()
        lines = (
            f"{code(one.path)}: {prose(', '.join(one.reasons[:5]), 300)}" for one in selections
        )
        title = f"Why {'this suite' if len(selections) == 1 else f'these {len(selections):,} suites'} ran"
        return listing(title, lines, len(selections), min(self._limits.items, self._limits.folded))

    def _shortened(self) -> str:
        if self._limits.name == "full":
            return ""
        where = (
            f"the [run's summary]({self._links.run_url})"
            if self._links.run_url
            else "the report folder"
        )
        return f"This is a shortened report: everything is in {where}."

    def _footer(self) -> str:
        review = self._review
        head, base = self._base.commit(review.head_sha), self._base.commit(review.base_sha)
        shas = [f"head {head}"] if head else []
        shas += [f"base {base}"] if base else []
        samples = f"{counted(review.samples, 'sample')} a test"
        return " · ".join(
            [f"agentevals-action {__version__}", samples, *shas, time(review.duration_ms)]
        )


def _diagnostics_where(diagnostics: Sequence[Diagnostic]) -> str:
    known = {diagnostic.location.path == FILE for diagnostic in diagnostics}
    places = ["in suites that the change touches"] if False in known else []
    return joined([*places, *([f"in `{FILE}`"] if True in known else [])])


def _noted(found: Listing | None, note: str) -> Listing | None:
    """A list with a sentence of what it means."""
    return replace(found, note=note) if found else None


def _is_flaky(test: TestComparison) -> bool:
    """Whether a fall was not borne out, or a required gate failed in some samples and not in most,
    of a test that is told nowhere else."""
    if test.change is Change.FLAKY:
        return not waivers.got_worse(test)
    return (
        test.change in _STEADY and not waivers.got_worse(test) and bool(confirmation.unsteady(test))
    )


def _failed(test: TestComparison) -> bool:
    return test.head is not None and test.head.verdict == "fail"


def _severity(placed: Placed) -> int:
    test = placed[1]
    if test.change is Change.REGRESSED:
        return 0 if test.gates_lost else 1 if _failed(test) else 2
    return 3


def _with_gates(test: TestComparison) -> str:
    gates = test.gates_removed
    return (
        f" with its required {'gate' if len(gates) == 1 else 'gates'} {joined([code(gate) for gate in gates[:5]])}"
        if gates
        else ""
    )


def _scores_differ(test: TestComparison) -> bool:
    return bool(test.base and test.head and score(test.base.score) != score(test.head.score))
