"""Where the base's results come from: in a sentence, and suite by suite with how sure their
differences are."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from agentevals_action.escaping import code, prose
from agentevals_action.formatting import counted, joined
from agentevals_action.model.comparison import Origin, Review, SuiteComparison
from agentevals_action.reports.view import differences
from agentevals_action.reports.view.links import Links, linked
from agentevals_action.reports.view.models import Listing
from agentevals_action.reports.view.tests import listing

_RERUN = "run again in this job with the base's own files"
_SOURCES = {
    "branch": "stored results",
    "artifact": "the report of an earlier run",
    "file": "the baseline file",
}
_NOISE = "Mean differences per sample with their 95 % intervals; one whose interval holds 0 is no change."
_FRESH = "Fresh samples count for verdicts and so for the pass rate, not for mean scores and their differences."


class BaselineTeller:
    """Makes words of a review's base."""

    def __init__(self, review: Review, links: Links) -> None:
        self._review = review
        self._links = links
        self._origins = [
            (suite, suite.origin) for suite in review.suites if suite.base and suite.origin
        ]

    def sentence(self) -> str:
        """What head was compared with, or why with nothing."""
        base = self._review.baseline
        if not self._review.suites:
            return ""
        commit = self.commit(base.commit or self._review.base_sha)
        when = f" of {date(base.commit_time)}" if base.commit_time else ""
        if base.problem:
            return f"**The base{f' {commit}' if commit else ''} could not be had:** {prose(base.problem, 500)}"
        if not base.wanted:
            return f"Nothing to compare with{f': {prose(base.reason)}' if base.reason else ''}."
        return f"Compared with the base{f' {commit}' if commit else ''}{when}{self._source()}."

    def notes(self, limit: int) -> tuple[str, ...]:
        """What is to be known of single suites: renamed, broken or missing on base, graded
        again."""
        review = self._review
        regraded = sum(test.regraded for suite in review.suites for test in suite.tests)
        again = f"{counted(regraded, 'test')} re-graded: the grading changed, so head's evaluators graded the base's answers"
        notes = [again] if regraded else []
        notes += [
            _base_note(suite)
            for suite in review.suites
            if _needs_note(suite, review.baseline.problem)
        ]
        shown = notes[:limit]
        return (
            (*shown, f"… and {len(notes) - len(shown):,} more")
            if len(notes) > len(shown)
            else tuple(shown)
        )

    def details(self, limit: int) -> Listing | None:
        """Suite by suite where its results come from, if that differs, and how sure its differences
        are; why other sources gave none."""
        if not limit:
            return None
        several, alike = len(self._review.suites) > 1, self._alike() is not None
        lines: list[str] = []
        noise = False
        for suite in self._review.suites:
            sure = differences.lines(suite)
            from_where = (
                [self._origin(suite.origin)] if suite.origin and suite.base and not alike else []
            )
            lines += _told(suite, [*from_where, *sure], several)
            noise = noise or bool(sure)
        lines += [
            f"{code(rung.source)} did not serve: {prose(rung.problem, 500)}"
            for rung in self._review.baseline.tried
        ]
        found = listing(
            "Baseline and noise" if noise else "How the baseline was got", lines, len(lines), limit
        )
        return (
            Listing(found.title, found.lines, found.left, self._meaning() if noise else "")
            if found
            else None
        )

    def _meaning(self) -> str:
        """What the differences are of; where fresh samples were taken, why verdicts may tell
        otherwise."""
        sides = (
            side
            for suite in self._review.suites
            for test in suite.tests
            for side in (test.head, test.base)
        )
        return f"{_NOISE} {_FRESH}" if any(side and side.confirming for side in sides) else _NOISE

    def commit(self, sha: str | None) -> str:
        """A commit, short and linked; empty without one."""
        return linked(code(sha[:7]), self._links.commit(sha)) if sha else ""

    def _source(self) -> str:
        if not self._origins:
            source = self._review.baseline.source
            return (
                f", {_RERUN}"
                if source == "rerun"
                else f": {_SOURCES[source]}"
                if source in _SOURCES
                else f", from {code(source)}"
            )
        alike = self._alike()
        if alike:
            return f"{',' if alike.source == 'rerun' else ':'} {self._origin(alike)}"
        sources = Counter(
            _SOURCES.get(origin.source, code(origin.source))
            for _, origin in self._origins
            if origin.source != "rerun"
        )
        words = [f"{name} for {counted(number, 'suite')}" for name, number in sources.items()]
        again = sum(origin.source == "rerun" for _, origin in self._origins)
        words += [f"{counted(again, 'suite')} run again in this job"] if again else []
        stale = sum(origin.stale for _, origin in self._origins)
        old = f" (**stale** for {counted(stale, 'suite')})" if stale else ""
        return f": {joined(words)}{old}"

    def _alike(self) -> Origin | None:
        """The origin of all suites when they have one in common: what differs in samples is told by
        the least."""
        origins = [origin for _, origin in self._origins]
        if (
            not origins
            or len({(one.source, one.commit, one.distance, one.time, one.stale) for one in origins})
            > 1
        ):
            return None
        return min(origins, key=lambda one: one.samples)

    def _origin(self, origin: Origin) -> str:
        if origin.source == "rerun":
            return _RERUN
        facts = [f"{_SOURCES.get(origin.source, f'from {code(origin.source)}')}{self._of(origin)}"]
        facts += [f"at least {counted(origin.samples, 'sample')} a test"] if origin.samples else []
        facts += (
            [f"the latest of {date(origin.time)}{self._age(origin.time)}"] if origin.time else []
        )
        facts += ["**stale**: older than `baseline-max-age`"] if origin.stale else []
        return ", ".join(facts)

    def _of(self, origin: Origin) -> str:
        if origin.distance == 0 or (origin.commit and origin.commit == self._review.base_sha):
            return " of that commit"
        if not origin.commit:
            return ""
        far = f", {counted(origin.distance, 'commit')} before the base" if origin.distance else ""
        return f" of {self.commit(origin.commit)}{far}"

    def _age(self, time: str) -> str:
        """How many days before this run, by head's own results: a report has no clock."""
        runs = [
            test.head.timestamp
            for suite in self._review.suites
            for test in suite.tests
            if test.head
        ]
        now, then = _instant(max(runs, default="")), _instant(time)
        days = (now - then).days if now and then else 0
        return f" ({counted(days, 'day')} old)" if days > 0 else ""


def date(iso: str) -> str:
    """A moment (ISO 8601) to the minute in UTC; what is none as it stands."""
    when = _instant(iso)
    return when.strftime("%Y-%m-%d %H:%M UTC") if when else code(iso)


def _instant(iso: str) -> datetime | None:
    try:
        when = datetime.fromisoformat(iso)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _told(suite: SuiteComparison, facts: Sequence[str], several: bool) -> Sequence[str]:
    """The facts of a suite: under its name where there are several suites."""
    if not several or not facts:
        return facts
    name = code(suite.path)
    return (
        [f"{name}: {facts[0]}"]
        if len(facts) == 1
        else ["\n".join([name, *(f"  - {fact}" for fact in facts)])]
    )


def _renamed(suite: SuiteComparison) -> bool:
    return suite.base_path is not None and suite.base_path != suite.path


def _needs_note(suite: SuiteComparison, told: str) -> bool:
    return bool(suite.note or (suite.problem and suite.problem != told) or _renamed(suite))


def _base_note(suite: SuiteComparison) -> str:
    name = code(suite.path) + (
        f" (on base {code(suite.base_path)})" if suite.base_path and _renamed(suite) else ""
    )
    why = suite.problem or suite.note
    return f"{name}: {prose(why)}" if why else f"{name} was renamed"
