"""A review: the suites that ran and why, the comparison with the base, and the outcome."""

from dataclasses import dataclass
from enum import StrEnum

from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.diagnostic import Diagnostic


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
class Selection:
    """A suite that runs: `reasons` as phrases (`changed: evals/EVAL.yaml`), `files` the changed
    files that affect it."""

    path: str
    reasons: tuple[str, ...]
    files: tuple[str, ...] = ()
    base_path: str | None = None


@dataclass(frozen=True)
class CommentTemplate:
    """A user's template of the comment; `name` is its path."""

    name: str
    text: str


@dataclass(frozen=True)
class Review:
    """Everything that a report can show, not rendered.

    `invalid` are errors of suites that the change affects, `warnings` errors of other suites and
    warnings of all. `gone_suites` are paths of suites that only base has. `notices` are sentences
    for the reader (a missing permission, ...). `uncommitted` are the paths that differed from
    `head_sha` when a working tree was run. `test_globs` selected the tests (`shard 1/3` is one part
    of them), empty if all ran. `template` renders the comment, None is the packaged one.
    `claims` states that an untrusted run made the results, in a sentence; else it is empty."""

    head_sha: str
    base_sha: str | None
    decision: Decision
    selections: tuple[Selection, ...] = ()
    suites: tuple[SuiteComparison, ...] = ()
    baseline: BaselineInfo = BaselineInfo(source="none", wanted=False)  # noqa: RUF009 - frozen
    invalid: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    gone_suites: tuple[str, ...] = ()
    suites_in_repository: int = 0
    notices: tuple[str, ...] = ()
    samples: int = 1
    duration_ms: float = 0.0
    uncommitted: tuple[str, ...] = ()
    test_globs: tuple[str, ...] = ()
    template: CommentTemplate | None = None
    claims: str = ""
