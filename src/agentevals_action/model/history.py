"""The stored history of a suite: samples of earlier runs by test and fingerprint, and the latest
answer of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentevals_action.model.result import Fingerprint, TraceSummary, Verdict

#: A sample of an earlier run: time and commit of the run, and the index of the sample in it.
SampleKey = tuple[str, str, int]


@dataclass(frozen=True)
class PastSample:
    """One sample of an earlier run. `time` (UTC, ISO 8601 to the millisecond with `Z`, so that it
    sorts as text) and `commit` (SHA) are those of the run, `index` counts the test's samples in
    that run from 0. `score` is 0-1; `cost_usd` (US dollars) and `duration_ms` (milliseconds) are
    the agent's, None if unknown. `cached`: the answer is a cached one."""

    time: str
    commit: str
    index: int
    score: float
    verdict: Verdict
    gates_failed: tuple[str, ...] = ()
    cost_usd: float | None = None
    duration_ms: float | None = None
    cached: bool = False

    @property
    def at(self) -> SampleKey:
        """The key of the sample; keys sort by time."""
        return self.time, self.commit, self.index


@dataclass(frozen=True)
class PastAnswer:
    """The answer of the sample `at`, so that it can be scored again: messages in wire form, trace
    summary, unified diff."""

    at: SampleKey
    output_messages: tuple[Mapping[str, Any], ...]
    trace_summary: TraceSummary | None = None
    file_changes: str | None = None


@dataclass(frozen=True)
class Series:
    """The samples of one test with one fingerprint, oldest first, and the latest answer that was
    small enough. `used` is the time of the latest run with it, cached results included."""

    fingerprint: Fingerprint
    samples: tuple[PastSample, ...]
    used: str
    answer: PastAnswer | None = None


@dataclass(frozen=True)
class SuiteHistory:
    """The history of the suite at `path`: the series of each test by id, the last used first."""

    path: str
    name: str
    tests: Mapping[str, tuple[Series, ...]]

    def samples(self) -> tuple[PastSample, ...]:
        """All samples of all tests."""
        return tuple(
            sample
            for several in self.tests.values()
            for series in several
            for sample in series.samples
        )


@dataclass(frozen=True)
class Remembered:
    """The stored histories of suites by path, and for damaged ones the reason."""

    histories: Mapping[str, SuiteHistory] = field(default_factory=dict)
    damaged: Mapping[str, str] = field(default_factory=dict)
