"""The expected durations of tests, from the results of earlier runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeGuard

from agentevals_action.formatting import counted, time
from agentevals_action.model.result import TestResult
from agentevals_action.model.shards import TestKey

#: Seconds of a test if nothing is known about any test.
_UNKNOWN_SECONDS = 10.0
#: Milliseconds of a sample, at most: a day.
_LONGEST = 86_400_000.0


@dataclass(frozen=True)
class Durations:
    """Seconds of one sample of each known test; `typical` is that of the others."""

    known: Mapping[TestKey, float]
    typical: float

    def of(self, *keys: TestKey) -> float:
        """Seconds of a test under the first of its keys that is known."""
        return next((self.known[key] for key in keys if key in self.known), self.typical)

    def note(self, tests: Sequence[Sequence[TestKey]]) -> str:
        """A sentence about the tests of unknown duration; empty if there are none. Each test has
        the keys under which it may be known."""
        unknown = sum(not any(key in self.known for key in keys) for keys in tests)
        if not unknown:
            return ""
        how = "the median of the others" if self.known else "nothing is known of earlier runs"
        return (
            f"the duration of {unknown} of {counted(len(tests), 'test')} is unknown: "
            f"{time(self.typical * 1000)} is assumed ({how})"
        )


def collect_durations(results: Iterable[TestResult]) -> Durations:
    """The median duration of the samples of each test, by the path of its suite and its id; cached
    answers do not count.

    Accident: an agent reports a time that makes the sum of all times infinite, and every plan
    fails."""
    samples: dict[TestKey, list[float]] = {}
    for key, milliseconds in _of_results(results):
        samples.setdefault(key, []).append(milliseconds)
    known = {key: median(values) / 1000 for key, values in samples.items()}
    return Durations(known, median(known.values()) if known else _UNKNOWN_SECONDS)


def _of_results(results: Iterable[TestResult]) -> Iterator[tuple[TestKey, float]]:
    for result in results:
        for sample in result.main_samples:
            milliseconds = sample.trace_summary.duration_ms if sample.trace_summary else None
            if _is_possible(milliseconds) and not sample.cached:
                yield (result.eval_path, result.eval_id), milliseconds


def _is_possible(milliseconds: float | None) -> TypeGuard[float]:
    return milliseconds is not None and 0 <= milliseconds <= _LONGEST
