"""A review: the suites that ran and why, the comparison with the base, and the outcome."""

from dataclasses import dataclass
from enum import StrEnum

from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.run import Run


class Outcome(StrEnum):
    """The outcome of a run."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


@dataclass(frozen=True)
class Decision:
    """The outcome with every reason for it as a phrase; `exit_code` and `conclusion` (of the check
    run) follow the policy. `waived` names what would have counted without a waiver: accepted
    regressions, tests in quarantine."""

    outcome: Outcome
    exit_code: int
    conclusion: str
    reasons: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()


@dataclass(frozen=True)
class Review:
    """Everything that a report can show, not rendered: a run, its comparison with base, and the
    decision."""

    run: Run
    decision: Decision
    suites: tuple[SuiteComparison, ...] = ()

    @property
    def has_base(self) -> bool:
        """Whether there is something to compare with, even if it could not be obtained."""
        return self.run.baseline.wanted or any(suite.base for suite in self.suites)
