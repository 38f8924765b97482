"""The estimated cost and time of a run, from the results of earlier runs."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import cost, counted, dollars, time, tokens
from agentevals_action.model.result import TestResult
from agentevals_action.results.jsonl import read_results


@dataclass(frozen=True)
class Figures:
    """The totals of the attempts of one suite: `attempts` at least 1, US dollars and tokens (None
    if unknown), and milliseconds, all at least 0. ValueError for anything else: they are read from
    files that others may have written."""

    attempts: int
    cost_usd: float | None
    tokens: int | None
    duration_ms: float

    def __post_init__(self) -> None:
        numbers = (self.cost_usd, self.tokens, self.duration_ms)
        if self.attempts < 1 or any(
            number is not None and not (0 <= number < math.inf) for number in numbers
        ):
            raise ValueError("figures are numbers of at least 0, of at least one attempt")


@dataclass
class _Sum:
    attempts: int = 0
    cost_usd: float | None = None
    tokens: int | None = None
    duration_ms: float = 0.0


@dataclass
class EstimateTally:
    """Adds up results as they come. A test with a cached reply or an error is left out: it does not
    predict the next run. The samples of a test run concurrently, so that each counts with the full
    duration of the test."""

    _suites: dict[str, _Sum] = field(default_factory=dict)

    def add(self, result: TestResult) -> None:
        """Adds a test."""
        if (
            result.cached_replies
            or result.error is not None
            or any(sample.cached for sample in result.samples)
        ):
            return
        suite = self._suites.setdefault(result.eval_path, _Sum())
        attempts = max(len(result.samples), 1)
        suite.attempts += attempts
        suite.duration_ms += attempts * (result.duration_ms or 0.0)
        if result.cost_usd is not None:
            suite.cost_usd = (suite.cost_usd or 0.0) + result.cost_usd
        for sample in result.samples:
            if sample.trace_summary is not None and sample.trace_summary.total_tokens is not None:
                suite.tokens = (suite.tokens or 0) + sample.trace_summary.total_tokens

    def figures(self) -> Mapping[str, Figures]:
        """By suite path, without unknown suites."""
        return {
            path: Figures(one.attempts, one.cost_usd, one.tokens, one.duration_ms)
            for path, one in self._suites.items()
        }


def tally(results: Iterable[TestResult]) -> Mapping[str, Figures]:
    """The figures of complete results, as of an earlier results file."""
    added = EstimateTally()
    for result in results:
        added.add(result)
    return added.figures()


def sentence(
    tests: Mapping[str, int],
    base: Mapping[str, int],
    *,
    samples: int,
    at_once: int,
    last: Mapping[str, Figures],
    limit: float | None = None,
) -> str:
    """The estimate for the log. `tests` are the numbers of tests that run by suite path, `base`
    those that run on base by the same paths, `at_once` is the concurrency, `last` the figures of
    earlier runs by suite path, `limit` the input `max-cost-usd`."""
    number, on_base = sum(tests.values()), sum(base.values())
    known = {path: last[path] for path in tests if path in last}
    words = f"Estimate: {counted(number, 'test')}"
    words += f" × {samples} samples" if samples > 1 else ""
    if on_base:
        words += " on head and base" if on_base == number else f" on head and {on_base} on base"
    words = f"{words}: {counted((number + on_base) * samples, 'attempt')}"
    if not known or not number:
        return f"{words}; cost and time are unknown before the first run"
    total = _scaled({path: (tests[path] + base.get(path, 0)) * samples for path in known}, known)
    parts = [
        *([f"about {_worth(total)}"] if _worth(total) else []),
        f"{time(_wall(total, at_once))} at {at_once} at once",
    ]
    one = _Sum(1, _each(total.cost_usd, total), None, total.duration_ms / max(total.attempts, 1))
    each_attempt = " and ".join(filter(None, (_worth(one), time(one.duration_ms))))
    words = f"{words}, {', '.join(parts)} (by the last run: {each_attempt} an attempt)"
    if strange := number - sum(tests[path] for path in known):
        words = (
            f"{words}, without the {counted(strange, 'test')} of suites that have not run before"
        )
    if unpriced := sum(tests[path] for path, before in known.items() if before.cost_usd is None):
        words = f"{words}; the cost of {counted(unpriced, 'test')} is unknown"
    if total.cost_usd is not None and limit is not None and total.cost_usd > limit:
        words += f"; that is above `max-cost-usd` ({dollars(limit)}), so that some will not be made"
    return words


def _scaled(attempts: Mapping[str, int], known: Mapping[str, Figures]) -> _Sum:
    """The totals of a number of attempts of each suite, if each is like the earlier ones."""
    total = _Sum()
    for path, number in attempts.items():
        before = known[path]
        share = number / before.attempts
        total.attempts += number
        total.duration_ms += before.duration_ms * share
        if before.cost_usd is not None:
            total.cost_usd = (total.cost_usd or 0.0) + before.cost_usd * share
        if before.tokens is not None:
            total.tokens = (total.tokens or 0) + round(before.tokens * share)
    return total


def _wall(total: _Sum, at_once: int) -> float:
    """Milliseconds of wall time with all slots in use."""
    return total.duration_ms / max(min(at_once, total.attempts), 1)


def _each(value: float | None, total: _Sum) -> float | None:
    return None if value is None else value / max(total.attempts, 1)


def _worth(total: _Sum) -> str:
    worth = (
        None if total.cost_usd is None else cost(total.cost_usd),
        None if total.tokens is None else f"{tokens(total.tokens)} tokens",
    )
    return " and ".join(filter(None, worth))


def earlier_figures(results: Path) -> Mapping[str, Figures]:
    """The figures of an earlier run by suite path; empty if its results cannot be read or are no
    possible figures: they are used for an estimate only."""
    try:
        return tally(read_results(results)) if results.is_file() else {}
    except (InvalidInput, OSError, ValueError):
        return {}
