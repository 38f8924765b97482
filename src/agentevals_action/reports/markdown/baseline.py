"""The origin of the baseline, and the differences to it with their confidence intervals."""

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from agentevals_action.escaping import code, prose
from agentevals_action.formatting import counted, delta, first_line, plural, time
from agentevals_action.model.baseline import SAME_SERVICE, STORED, BaselineOrigin
from agentevals_action.model.comparison import Difference, SuiteComparison
from agentevals_action.model.review import Review
from agentevals_action.reports.view.links import Links, linked

_RERUN = "run again with the base's own files"
#: Explains the lines of `difference_lines`.
NOISE_NOTE = (
    "Mean differences per sample with their 95 % intervals, without fresh samples. "
    "A difference whose interval contains 0 is not a change."
)


class BaselineText:
    """The Markdown sentences about the base of a review."""

    def __init__(self, review: Review, links: Links) -> None:
        self._review = review
        self._links = links
        self._origins = [
            suite.run.base.origin for suite in review.suites if suite.base and suite.run.base.origin
        ]

    def sentence(self) -> str:
        """States what head was compared with, or why there was nothing to compare with."""
        base = self._review.run.baseline
        if not self._review.suites:
            return ""
        commit = self.commit(base.commit or self._review.run.base_sha)
        named = f" {commit}" if commit else ""
        if base.problem:
            return (
                f"**The base{named} could not be obtained:** {prose(first_line(base.problem), 500)}"
            )
        if not base.wanted:
            reason = base.reason or "there is nothing to compare with"
            return f"{prose(reason[0].upper() + reason[1:])}."
        when = f" of {date(base.commit_time)}" if base.commit_time else ""
        if not self._origins and any(suite.run.base.same_service for suite in self._review.suites):
            return f"**Not compared** with the base{named}{when}: {SAME_SERVICE}."
        subject = "Compared"
        if self._review.run.uncommitted:
            head = self.commit(self._review.run.head_sha)
            subject = f"{self._review.run.head_label.capitalize()} {head}, compared"
        return f"{subject} with the base{named}{when}{self._source()}."

    def lines(self) -> list[str]:
        """The origin of each suite's base if they differ; suites that were renamed, or are invalid
        or missing on base; re-scored tests; why other sources were not used."""
        base = self._review.run.baseline
        lines = []
        for suite in self._review.suites:
            facts, run = [], suite.run
            if run.base.origin and suite.base and not self._common_origin():
                facts.append(self._origin(run.base.origin))
            if run.base_path != run.path:
                facts.append(f"on base {code(run.base_path)}")
            if run.base.is_new:
                facts.append("the suite is new")
            elif run.base.broken:
                broken = f"the suite is invalid on base ({run.base.broken})"
                facts.append(prose(f"{broken}, so its tests cannot be compared"))
            elif run.base.problem not in ("", base.problem):
                facts.append(prose(run.base.problem, 1_000))
            if alike := len(run.base.same_service):
                words = counted(alike, "test", plural(alike, "is", "are"))
                advice = "with `start`, the target starts one for each side"
                facts.append(f"{words} not comparable: {SAME_SERVICE} ({advice})")
            if rescored := sum(test.rescored for test in suite.tests):
                why = "their evaluators changed, so head's evaluators scored the base's answers"
                facts.append(f"{counted(rescored, 'test')} re-scored: {why}")
            lines += [f"{code(suite.path)}: {'; '.join(facts)}"] if facts else []
        tried = base.tried
        return lines + [
            f"{name[0].upper()}{name[1:]}: {prose(source.problem, 500)}"
            for source in tried
            for name in [_name(source.source)]
        ]

    def commit(self, sha: str | None) -> str:
        """A commit, shortened and linked; empty without one."""
        return linked(code(sha[:7]), self._links.commit(sha)) if sha else ""

    def _source(self) -> str:
        if not self._origins:
            return ""
        if common := self._common_origin():
            return f"{',' if common.source == 'rerun' else ':'} {self._origin(common)}"
        rerun = sum(origin.source == "rerun" for origin in self._origins)
        stale = sum(origin.stale for origin in self._origins)
        again = f", {counted(rerun, 'suite')} run again" if rerun else ""
        old = f" (**stale** for {counted(stale, 'suite')})" if stale else ""
        return f": stored results for {counted(len(self._origins) - rerun, 'suite')}{old}{again}"

    def _common_origin(self) -> BaselineOrigin | None:
        """The origin that all suites share, with the smallest number of samples."""
        alike = {
            # When it was run again is no difference.
            (origin.source, origin.commit, origin.source != "rerun" and origin.time, origin.stale)
            for origin in self._origins
        }
        return min(self._origins, key=lambda origin: origin.samples) if len(alike) == 1 else None

    def _origin(self, origin: BaselineOrigin) -> str:
        if origin.source == "rerun":
            return _RERUN
        facts = [f"{_name(origin.source)}{self._describe_commit(origin)}"]
        if origin.samples:
            facts.append(f"at least {counted(origin.samples, 'sample')} per test")
        if origin.time:
            facts.append(f"the latest of {date(origin.time)}{self._age(origin.time)}")
        if origin.stale:
            facts.append("**stale**: older than `baseline-max-age`")
        return ", ".join(facts)

    def _describe_commit(self, origin: BaselineOrigin) -> str:
        if not origin.commit:
            return ""
        if origin.commit == self._review.run.base_sha:
            return " of that commit"
        return f" of {self.commit(origin.commit)}"

    def _age(self, time: str) -> str:
        """The age at the time of head's latest result, because a report has no clock."""
        tests = (test for suite in self._review.suites for test in suite.tests)
        latest = max((test.head.timestamp for test in tests if test.head), default="")
        now, then = _instant(latest), _instant(time)
        days = (now - then).days if now and then else 0
        return f" ({counted(days, 'day')} old)" if days > 0 else ""


def _name(source: str) -> str:
    return STORED.get(source) or code(source)


def date(iso: str) -> str:
    """A moment (ISO 8601) in UTC to the minute; other text as it is."""
    when = _instant(iso)
    return when.strftime("%Y-%m-%d %H:%M UTC") if when else code(iso)


def _instant(iso: str) -> datetime | None:
    try:
        when = datetime.fromisoformat(iso)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def difference_lines(suite: SuiteComparison) -> tuple[str, ...]:
    """The differences of a suite that its figures show."""
    means = (side.average_score if side else None for side in (suite.base, suite.head))
    in_table = score_change(suite.score, *means)
    figures = (
        ("score", suite.score, _score, ("higher", "lower"), in_table),
        ("cost", suite.cost, _dollars, ("more expensive", "cheaper"), ""),
        ("time", suite.duration, time, ("slower", "faster"), ""),
    )
    return tuple(
        f"{name} {_describe(found, words, comparatives, mean or _signed(found.mean, words))}"
        for name, found, words, comparatives, mean in figures
        if found and _is_visible(found, words)
    )


def score_change(difference: Difference | None, base: float | None, head: float | None) -> str:
    """The difference of two mean scores as they are shown, so that it has one value in a report and
    a reader who subtracts gets the same; empty if the paired difference is of other tests."""
    if difference is None or base is None or head is None:
        return delta(base, head)
    is_of_these = abs(head - base - difference.mean) < 1e-6
    return delta(base, head) if is_of_these else ""


def is_noise(difference: Difference | None, base: float | None, head: float | None) -> bool:
    """Whether two figures must not be called different.

    Their difference lies in the interval of the compared tests, which contains 0."""
    if difference is None or difference.is_change or base is None or head is None:
        return False
    return round(difference.low, 9) <= round(head - base, 9) <= round(difference.high, 9)


def pool_differences(differences: Iterable[Difference | None]) -> Difference | None:
    """The difference over several suites, which are independent; None if one is unknown."""
    every = list(differences)
    known = [difference for difference in every if difference is not None]
    if not known or len(known) < len(every):
        return None
    pairs = sum(part.pairs for part in known)
    mean = sum(part.mean * part.pairs for part in known) / pairs
    half = math.hypot(*((part.high - part.mean) * part.pairs for part in known)) / pairs
    detectable = math.hypot(*(part.detectable * part.pairs for part in known)) / pairs
    clusters = sum(part.clusters for part in known)
    return Difference(mean, mean - half, mean + half, detectable, pairs, clusters)


def _is_visible(difference: Difference, words: Callable[[float], str]) -> bool:
    values = [difference.mean]
    if words is _score and not difference.is_change:
        values += [difference.low, difference.high]
    return any(words(abs(value)) != words(0.0) for value in values)


def _describe(
    difference: Difference, words: Callable[[float], str], comparatives: tuple[str, str], mean: str
) -> str:
    low, high = _bound(difference.low, words), _bound(difference.high, words)
    change = f"{mean} ({low} to {high})" if low != high else mean
    if difference.is_change:
        return f"{change}: {comparatives[difference.mean < 0]} than on base"
    detects = f"this suite can detect changes from {words(difference.detectable)}"
    if words is _score and difference.detectable > 1:
        detects = "this suite has too few tests to detect any change"
    return f"{change}: not significant; {detects}"


def _signed(value: float, words: Callable[[float], str]) -> str:
    text = words(abs(value))
    return text if text == words(0.0) else f"{'+' if value > 0 else '−'}{text}"


def _bound(value: float, words: Callable[[float], str]) -> str:
    # A bound other than 0 is not shown as 0, because the interval would seem to contain it.
    if value and words(abs(value)) == words(0.0):
        return "just above 0" if value > 0 else "just below 0"
    return _signed(value, words)


def _score(value: float) -> str:
    if value == 0 or value >= 0.005:
        return f"{value:.2f}"
    return f"{value:.1g}" if value >= 0.00005 else "0.00"


def _dollars(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"
