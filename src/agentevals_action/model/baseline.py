"""The results of the base, and their source."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.result import TestResult

#: The sources of stored results, as sentences name them.
STORED = {"branch": "stored results", "file": "the baseline file"}
#: Why a test of a service that no side starts is not run on base.
SAME_SERVICE = "both sides would ask the same service"


@dataclass(frozen=True)
class StoredRun:
    """The results of an earlier run; its `commit` (SHA), `time` (UTC, ISO 8601) and `run_id`
    (GitHub's) are unknown for a committed file."""

    results: tuple[TestResult, ...]
    commit: str | None = None
    time: str | None = None
    run_id: str | None = None


@dataclass(frozen=True)
class IncompleteSource:
    """A source without results, or without results of some suites, and the reason."""

    source: str
    problem: str


@dataclass(frozen=True)
class BaselineInfo:
    """The source of the base's results. `wanted` is False when there is nothing to compare with
    (`reason`); `problem` is the reason why an existing base has no results, `is_obtained` is
    whether its tree could be checked out. `commit_time` is ISO 8601. `tried` are the sources that
    were read before."""

    source: str
    wanted: bool
    commit: str | None = None
    commit_time: str | None = None
    reason: str = ""
    problem: str = ""
    is_obtained: bool = True
    tried: tuple[IncompleteSource, ...] = ()


@dataclass(frozen=True)
class BaselineOrigin:
    """The origin of one suite's base results: the `source` (as in the input `baseline`), the
    `commit` that was run, the `time` of the latest result (ISO 8601), the number of `samples` of
    the test with the fewest, and whether they are `stale` (older than `baseline-max-age`)."""

    source: str
    commit: str | None = None
    time: str | None = None
    samples: int = 1
    stale: bool = False


@dataclass(frozen=True)
class BaseSuite:
    """The `origin` of the results of a suite on base. There are no results if base has no such
    suite (`is_new`), if the suite has an error on base (`broken`), or because of a `problem`. The
    tests in `same_service` (their ids) have no result: head asks the same service."""

    origin: BaselineOrigin | None = None
    is_new: bool = False
    broken: Diagnostic | None = None
    problem: str = ""
    same_service: tuple[str, ...] = ()


@dataclass(frozen=True)
class BaseResults:
    """What is known of base's suites, and their results; both by the suite's path on head.
    `variants` are stored results of variants of head, which are still valid."""

    info: BaselineInfo
    suites: Mapping[str, BaseSuite] = field(default_factory=dict)
    rows: Mapping[str, tuple[TestResult, ...]] = field(default_factory=dict)
    variants: tuple[TestResult, ...] = ()
