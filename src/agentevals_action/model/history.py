"""What is remembered of a suite's earlier runs: samples by test and fingerprint, and the latest
answer of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentevals_action.model.result import Fingerprint, TraceSummary, Verdict

#: The run that a sample is of, and its number there: time, commit, place.
Place = tuple[str, str, int]


@dataclass(frozen=True)
class PastSample:
    """One sample of an earlier run. `time` (UTC, ISO 8601 to the millisecond with `Z`, so that it
    sorts as text) and `commit` (SHA) are the run's, `place` is its number among the test's samples
    in that run (from 0). `score` is 0-1; `cost_usd` (US dollars) and `duration_ms` (milliseconds)
    are the agent's, None where unknown. `cached` says that the answer was a stored one."""

    time: str
    commit: str
    place: int
    score: float
    verdict: Verdict
    gates_failed: tuple[str, ...] = ()
    cost_usd: float | None = None
    duration_ms: float | None = None
    cached: bool = False

    @property
    def at(self) -> Place:
        """Where it belongs in time."""
        return self.time, self.commit, self.place


@dataclass(frozen=True)
class PastAnswer:
    """What the agent answered in the sample `at`, so that it can be graded again: messages in wire
    form, figures, unified diff."""

    at: Place
    output_messages: tuple[Mapping[str, Any], ...]
    trace_summary: TraceSummary | None = None
    file_changes: str | None = None


@dataclass(frozen=True)
class Series:
    """The samples of one test with one fingerprint, oldest first, and the latest answer among them
    that was small enough to be kept. `used` is the time of the latest run that had results with it,
    be they out of a cache."""

    fingerprint: Fingerprint
    samples: tuple[PastSample, ...]
    used: str
    answer: PastAnswer | None = None


@dataclass(frozen=True)
class SuiteHistory:
    """What is remembered of one suite: by test id its series, the one used last first. `path` is
    the suite's, relative to the repository."""

    path: str
    name: str
    tests: Mapping[str, tuple[Series, ...]]

    def samples(self) -> tuple[PastSample, ...]:
        """All samples of all tests."""
        return tuple(
            sample for kept in self.tests.values() for series in kept for sample in series.samples
        )


@dataclass(frozen=True)
class Remembered:
    """What a store had of the suites that were asked for, by path: histories, and why what is there
    of others is not to be used."""

    histories: Mapping[str, SuiteHistory] = field(default_factory=dict)
    damaged: Mapping[str, str] = field(default_factory=dict)
