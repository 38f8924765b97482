"""The results that an untrusted run left as an archive, and the review that reports them as claims.
Every byte of the archive may be an attack."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.github.events import Job
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.review import Decision, Outcome, Review
from agentevals_action.results.jsonl import RESULT
from agentevals_action.results.summary import suite_run
from agentevals_action.review import gate
from agentevals_action.review.change.workspace import BASE_RESULTS, HEAD_RESULTS
from agentevals_action.review.stored_results import compare_runs
from agentevals_action.settings import Settings
from agentevals_action.system.files.archives import DAMAGED

#: What the title of the check run begins with.
CLAIMED = "Claims of an untrusted run, not verified."
_SUMMARY = "summary.json"
#: Members of the archive, bytes of each that is read, and tests of each side, at most.
_MEMBERS, _BYTES, _TESTS = 100, 64 << 20, 20_000
_BASELINE = BaselineInfo(
    "none", wanted=False, reason="the results of base are claims of the same run"
)


class _Summary(BaseModel):
    outcome: Outcome


@dataclass(frozen=True)
class Claims:
    """What a run claims: its outcome, and its results of head and of base by the suite's path."""

    outcome: Outcome
    head: Mapping[str, SuiteRun]
    base: Mapping[str, SuiteRun]


def read_claims(content: bytes) -> Claims:
    """The claims in a ZIP. InvalidInput states why it is refused; the sentence contains no text of
    the archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if len(archive.infolist()) > _MEMBERS:
                raise _refused(f"it contains more than {_MEMBERS} files")
            summary, head, base = (
                _read(archive, name) for name in (_SUMMARY, HEAD_RESULTS, BASE_RESULTS)
            )
    except (*DAMAGED, OSError, ValueError) as error:
        raise _refused(f"it is not a valid archive ({type(error).__name__})") from error
    try:
        outcome = _Summary.model_validate_json(summary).outcome
    except ValidationError as error:
        raise _refused(f"`{_SUMMARY}` states no outcome") from error
    return Claims(outcome, _runs(head, HEAD_RESULTS), _runs(base, BASE_RESULTS))


def review_claims(job: Job, claims: Claims, settings: Settings) -> Review:
    """The review of claims. Its check run is red, or asks for a person; it is never green."""
    compared = compare_runs(claims.base, claims.head)
    policy = gate.Policy(settings.fail_on or job.fail_on, settings.min_pass_rate)
    decided = gate.decide(policy, [suite for suite in compared if suite.head], _BASELINE)
    reasons = (f"the run says that its outcome is `{claims.outcome}`", *decided.reasons)
    decision = gate.inconclusive_decision(reasons, "fail")
    if claims.outcome in (Outcome.FAILED, Outcome.INVALID):
        decision = Decision(Outcome.FAILED, ExitCode.FAILED, "failure", reasons)
    return Review(
        head_sha=job.head_sha,
        base_sha=job.base.revision,
        decision=decision,
        suites=compared,
        baseline=_BASELINE,
    )


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a member. The size in its header may be false."""
    try:
        with archive.open(name) as file:
            content = file.read(_BYTES + 1)
    except KeyError as error:
        raise _refused(f"it contains no `{name}`") from error
    if len(content) > _BYTES:
        raise _refused(f"`{name}` is larger than {_BYTES >> 20} MiB")
    return content


def _runs(content: bytes, name: str) -> dict[str, SuiteRun]:
    lines = [line for line in content.splitlines() if line.strip()]
    if len(lines) > _TESTS:
        raise _refused(f"`{name}` has more than {_TESTS:,} tests")
    by_suite: dict[str, dict[str, TestResult]] = {}
    for line in lines:
        try:
            result = RESULT.validate_json(line)
        except ValidationError as error:
            raise _refused(f"`{name}` has a row that is no result") from error
        of_suite = by_suite.setdefault(result.eval_path, {})
        if result.eval_id in of_suite:
            raise _refused(f"`{name}` has a test twice")
        of_suite[result.eval_id] = result
    return {
        path: suite_run(path, next(iter(found.values())).dataset, found.values())
        for path, found in by_suite.items()
    }


def _refused(reason: str) -> InvalidInput:
    return InvalidInput(f"the artifact of the first phase is refused: {reason}")
