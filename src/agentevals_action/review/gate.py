"""Pure: the policy, and every reason for the outcome (action.md, "Outcome")."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentevals_action.errors import ExitCode
from agentevals_action.model.comparison import (
    BaselineInfo,
    Change,
    Decision,
    Finding,
    Outcome,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import FILE
from agentevals_action.review import waivers


@dataclass(frozen=True)
class Policy:
    """What blocks: `fail_on` of `gates`, `regressions`, `failures`, `never`; `min_pass_rate` 0-1
    over what was scored; `on_inconclusive` one of `fail`, `neutral`, `pass`. `accept_label` is what
    accepts regressions, for the words alone."""

    fail_on: frozenset[str]
    min_pass_rate: float | None = None
    on_inconclusive: str = "fail"
    accept_label: str = "agentevals:accept"


def decide(
    policy: Policy,
    suites: Sequence[SuiteComparison],
    baseline: BaselineInfo,
    invalid: Sequence[Diagnostic] = (),
) -> Decision:
    """The outcome: invalid before all else, then failed, then inconclusive, else passed; all
    reasons that hold are kept, worst first.

    Tests in quarantine count for nothing, accepted regressions not as such; what was waived like
    that is told."""
    decision = _decide(policy, waivers.counting(suites), baseline, invalid)
    if not suites and decision.outcome is Outcome.PASSED:
        decision = replace(decision, reasons=("no suite is touched by the change",))
    return replace(decision, waived=waivers.told(suites, policy.accept_label))


def _decide(
    policy: Policy,
    suites: Sequence[SuiteComparison],
    baseline: BaselineInfo,
    invalid: Sequence[Diagnostic],
) -> Decision:
    errors = list(_invalid(invalid))
    failed = [*_failures(policy, suites), *_under_pass_rate(policy, suites)]
    unknown = [*_not_told(suites), *_no_baseline(policy, suites, baseline)]
    reasons = (*errors, *failed, *unknown)
    if errors:
        return Decision(Outcome.INVALID, ExitCode.INVALID, "failure", reasons)
    if failed:
        return Decision(Outcome.FAILED, ExitCode.FAILED, "failure", reasons)
    if unknown:
        return inconclusive(reasons, policy.on_inconclusive)
    return Decision(Outcome.PASSED, ExitCode.PASSED, "success")


def _invalid(errors: Sequence[Diagnostic]) -> Iterable[str]:
    configuration = sum(diagnostic.location.path == FILE for diagnostic in errors)
    if suites := len(errors) - configuration:
        yield _counted(suites, "fault", "in suites that the change touches")
    if configuration:
        yield _counted(configuration, "fault", f"in `{FILE}`")


def invalid(reasons: Sequence[str]) -> Decision:
    """The decision on a run that could not begin: inputs, repository or event mean nothing."""
    return Decision(Outcome.INVALID, ExitCode.INVALID, "failure", tuple(reasons))


def inconclusive(reasons: Sequence[str], on_inconclusive: str) -> Decision:
    """The decision on what could not be told; `on_inconclusive` as in the policy."""
    exit_code, conclusion = {
        "fail": (ExitCode.COULD_NOT_TELL, "failure"),
        "neutral": (ExitCode.PASSED, "neutral"),
        "pass": (ExitCode.PASSED, "success"),
    }[on_inconclusive]
    return Decision(Outcome.INCONCLUSIVE, exit_code, conclusion, tuple(reasons))


def _failures(policy: Policy, suites: Sequence[SuiteComparison]) -> Iterable[str]:
    tests = [test for suite in suites for test in suite.tests]
    gates = sum(len(test.head.gates_failed) for test in tests if test.head)
    if "gates" in policy.fail_on and gates:
        yield _counted(gates, "required gate", "failed")
    regressions = sum(waivers.blocks(test) for test in tests)
    if "regressions" in policy.fail_on and regressions:
        yield _counted(regressions, "test", "regressed")
    failures = sum(test.head is not None and test.head.verdict == "fail" for test in tests)
    if "failures" in policy.fail_on and failures:
        yield _counted(failures, "test", "failed")


def _under_pass_rate(policy: Policy, suites: Sequence[SuiteComparison]) -> Iterable[str]:
    summaries = [suite.head for suite in suites if suite.head]
    scored = sum(summary.total - summary.errored for summary in summaries)
    passed = sum(summary.passed for summary in summaries)
    wanted = policy.min_pass_rate
    if wanted is not None and scored and round(passed / scored, 9) < round(wanted, 9):
        yield f"{passed} of {scored} scored tests passed, under the `min-pass-rate` of {wanted:g}"


def _not_told(suites: Sequence[SuiteComparison]) -> Iterable[str]:
    tests = [test for suite in suites for test in suite.tests]
    errors = sum(test.head is not None and test.head.verdict is None for test in tests)
    if errors:
        yield _counted(errors, "test", "ended in an error")
    unconfirmed = sum(
        test.evidence is not None and test.evidence.finding is Finding.ERROR for test in tests
    )
    if unconfirmed:
        yield f"{_counted(unconfirmed, 'test', 'got worse')}, and an error kept that from being confirmed"
    for suite in suites:
        if suite.head is None or suite.head.total == suite.head.errored:
            yield f"the suite `{suite.path}` scored no test"


def _no_baseline(
    policy: Policy, suites: Sequence[SuiteComparison], baseline: BaselineInfo
) -> Iterable[str]:
    if "regressions" not in policy.fail_on or not baseline.wanted:
        return
    if baseline.problem:
        yield f"the base could not be had: {baseline.problem}"
        return
    yield from (
        f"the base of `{suite.path}` could not be had: {suite.problem}"
        for suite in suites
        if suite.problem
    )
    bases = [suite.base for suite in suites if suite.base and suite.base.total]
    if bases and all(base.total == base.errored for base in bases):
        yield "the base could not be had: all its tests ended in errors"
        return
    unknown = sum(_untold(test) for suite in suites if not suite.problem for test in suite.tests)
    if unknown:
        yield f"{_counted(unknown, 'test', 'could not be compared')} with the base and did not pass on head"


def _untold(test: TestComparison) -> bool:
    """An error on base, or nothing to compare by, matters only for a test that is not `pass` on
    head."""
    if test.change not in (Change.BASE_ERROR, Change.NOT_COMPARABLE):
        return False
    return test.head is not None and test.head.verdict in ("fail", "borderline")


def _counted(number: int, noun: str, rest: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'} {rest}"
