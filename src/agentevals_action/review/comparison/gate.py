"""The gate: the policy, and every reason for the outcome. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentevals_action.errors import ExitCode
from agentevals_action.formatting import counted, cut_line, first_line, percent, plural
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import (
    NOT_COMPARED,
    Decision,
    Finding,
    Outcome,
    SuiteComparison,
    TestComparison,
    describe_worse,
)
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.run import Level, Policy, Run, is_of_suite
from agentevals_action.model.skill import name_suite
from agentevals_action.results.summary import pass_all
from agentevals_action.review.comparison import waivers

#: GitHub's conclusion of a check run that waits for a person.
ACTION_REQUIRED = "action_required"
#: Digits to which pass rates are compared.
_DIGITS = 9
#: Characters of the error of base's tests that a reason quotes.
_CAUSE = 200
_MORE = {"cost": "costs {} more", "latency": "takes {} longer"}
_ANY_FAILURE = Policy(frozenset({"gates", "regressions", "failures"}))


def decide(run: Run, suites: Sequence[SuiteComparison]) -> Decision:
    """The outcome: invalid before all else, then failed, then inconclusive, else passed. All
    reasons are kept, the worst first. Tests in quarantine and accepted regressions do not count;
    they are listed as waived."""
    policy, counting = run.policy, waivers.without_quarantined(suites)
    tests = [test for suite in counting for test in suite.tests]
    errors = [*run.sentences(Level.REFUSED), *_invalid(run.diagnostics(Level.ERROR))]
    failed = [*_failures(policy, tests), *_pass_rate(policy, counting), *_pass_all(run, tests)]
    of_suites = (_conditions, _increases, _pairs)
    conditions = [reason for find in of_suites for reason in find(suites, Outcome.FAILED)]
    failed += [] if "never" in policy.fail_on else conditions
    # A test that blocks is counted once: it does not make the outcome unknown too.
    others = [
        replace(suite, tests=tuple(test for test in suite.tests if not _blocks(policy, test)))
        for suite in counting
    ]
    unknown = [*_unscored(others), *_unknown_base(policy, others, run.baseline)]
    unknown += [*_unproven(policy, others), *_lost_judges(policy, others)]
    unknown += run.sentences(Level.PROBLEM)
    for find in of_suites:
        unknown += find(suites, Outcome.INCONCLUSIVE)
    if run.suites and not suites:
        unknown.append("no test of head has a result")
    reasons = (*errors, *failed, *unknown)
    if errors:
        decision = Decision(Outcome.INVALID, ExitCode.INVALID, "failure", reasons)
    elif failed:
        decision = Decision(Outcome.FAILED, ExitCode.FAILED, "failure", reasons)
    elif unknown:
        decision = _inconclusive(policy, reasons)
    else:
        reasons = () if suites else (_nothing(run),)
        # `never` is the only value that lets every failure pass: a green check would hide it.
        failures = (*_failures(_ANY_FAILURE, tests), *conditions)
        ignored = "never" in policy.fail_on and bool(failures)
        untouched = not suites and policy.untouched == "neutral"
        conclusion = "neutral" if ignored or untouched else "success"
        decision = Decision(Outcome.PASSED, ExitCode.PASSED, conclusion, reasons)
    return replace(decision, waived=waivers.describe(suites, policy.accept_label))


def _nothing(run: Run) -> str:
    """Why no suite ran."""
    if run.head_sha and run.base_sha == run.head_sha and not run.uncommitted:
        return "nothing was compared, because head is the base and no file differs from it"
    return "the change affects no suite"


def _inconclusive(policy: Policy, reasons: Sequence[str]) -> Decision:
    exit_code, conclusion = {
        "fail": (ExitCode.INCONCLUSIVE, ACTION_REQUIRED if policy.asks_person else "failure"),
        "neutral": (ExitCode.PASSED, "neutral"),
        "pass": (ExitCode.PASSED, "success"),
    }[policy.on_inconclusive]
    return Decision(Outcome.INCONCLUSIVE, exit_code, conclusion, tuple(reasons))


def _invalid(diagnostics: Sequence[Diagnostic]) -> Iterable[str]:
    others = Counter(error.location.path for error in diagnostics if not is_of_suite(error))
    if in_suites := len(diagnostics) - others.total():
        yield counted(in_suites, "error", "in suites that the change affects")
    for path, number in others.items():
        yield counted(number, "error", f"in `{path}`")


def _failures(policy: Policy, tests: Sequence[TestComparison]) -> Iterable[str]:
    """The numbers of tests that block, by reason; each test is in one number."""
    gates, regressions = "gates" in policy.fail_on, "regressions" in policy.fail_on
    worse = describe_worse(tests, gates, regressions)
    yield from worse
    without_failures = replace(policy, fail_on=policy.fail_on - {"failures"})
    blocking = [test for test in tests if _blocks(policy, test)]
    if failures := sum(not _blocks(without_failures, test) for test in blocking):
        yield counted(failures, "more test" if worse else "test", "failed")


def _blocks(policy: Policy, test: TestComparison) -> bool:
    failed = test.head is not None and test.head.verdict == "fail"
    return (
        ("gates" in policy.fail_on and bool(test.failed_gates))
        or ("regressions" in policy.fail_on and test.is_regression)
        or ("failures" in policy.fail_on and failed)
    )


def _conditions(suites: Sequence[SuiteComparison], outcome: Outcome) -> Iterable[str]:
    """The conditions (`must`) of variants with this outcome."""
    for path, comparison in (
        (name_suite(suite.path), comparison) for suite in suites for comparison in suite.variants
    ):
        variant = comparison.run.variant
        if comparison.outcome is not outcome:
            continue
        if outcome is Outcome.FAILED:
            passes = "is not shown to pass more" if variant.must == "help" else "passes less"
            yield f"`{path}` {passes} often than its variant `{variant.name}`"
        else:
            problem = f": {first_line(comparison.problem)}" if comparison.problem else ""
            of_variant = f"`must: {variant.must}` of the variant `{variant.name}` of `{path}`"
            yield f"{of_variant} could not be decided{problem}"


def _increases(suites: Sequence[SuiteComparison], outcome: Outcome) -> Iterable[str]:
    """The conditions on cost and time with this outcome."""
    for suite in suites:
        for increase in suite.increases:
            figure, fresh, name = increase.figure, increase.fresh, name_suite(suite.path)
            of_limit = f"`max-{figure}-increase`"
            if increase.outcome is not outcome:
                continue
            if outcome is Outcome.FAILED and increase.first:
                more = _MORE[figure].format(percent(increase.first.ratio - 1))
                again = f" ({percent(fresh.ratio - 1)} in fresh samples)" if fresh else ""
                over = f"over the {of_limit} of {percent(increase.limit)}"
                yield f"`{name}` {more} than on base{again}, {over}"
            else:
                reason = f": {first_line(increase.reason)}" if increase.reason else ""
                yield f"{of_limit} of `{name}` could not be decided{reason}"


def _pairs(suites: Sequence[SuiteComparison], outcome: Outcome) -> Iterable[str]:
    """The comparisons of answers with this outcome."""
    for name, comparison in (
        (name_suite(suite.path), comparison) for suite in suites for comparison in suite.pairwise
    ):
        if comparison.outcome is not outcome:
            continue
        losses = f"much worse in {comparison.losses} of {counted(comparison.pairs, 'pair')}"
        if outcome is Outcome.FAILED:
            fresh = comparison.fresh
            again = f", and in {fresh.losses} of {fresh.pairs} with fresh answers" if fresh else ""
            wins = f"{losses} and much better in {comparison.wins}"
            yield f"head's answers to `{name}` are worse than base's: {wins}{again}"
        else:
            problem = (comparison.fresh and comparison.fresh.problem) or comparison.problem
            problem = problem or "no fresh answers were taken"
            yield (
                f"whether head's answers to `{name}` are worse than base's could not be decided: "
                f"{first_line(problem)}"
            )


def _pass_rate(policy: Policy, suites: Sequence[SuiteComparison]) -> Iterable[str]:
    summaries = [suite.head for suite in suites if suite.head]
    scored = sum(summary.scored for summary in summaries)
    passed = sum(summary.passed for summary in summaries)
    minimum = policy.min_pass_rate
    if minimum is None or not scored:
        return
    if round(passed / scored, _DIGITS) < round(minimum, _DIGITS):
        yield f"{passed} of {scored} scored tests passed, under the `min-pass-rate` of {minimum:g}"


def _pass_all(run: Run, tests: Sequence[TestComparison]) -> Iterable[str]:
    minimum, samples = run.policy.min_pass_all, run.samples
    share = pass_all((test.head for test in tests if test.head), samples)
    if minimum is None or share is None:
        return
    if round(share, _DIGITS) < round(minimum, _DIGITS):
        passed = f"{percent(share)} of the scored tests passed in all {samples} samples"
        yield f"{passed}, under the `min-pass-all` of {minimum:g}"


def _unscored(suites: Sequence[SuiteComparison]) -> Iterable[str]:
    tests = [test for suite in suites for test in suite.tests]
    ended = [
        test for test in tests if test.head and test.head.state == "error" and not test.accepted_by
    ]
    if errors := len(ended):
        yield counted(errors, "test", "ended in an error")
    unconfirmed = sum(
        test.evidence is not None and test.evidence.finding is Finding.ERROR for test in tests
    )
    if unconfirmed:
        worse = counted(unconfirmed, "test", "got worse")
        yield f"{worse}, and an error prevented the confirmation"
    for suite in suites:
        if suite.head is None or not suite.head.scored:
            yield f"the suite `{name_suite(suite.path)}` scored no test"


def _unproven(policy: Policy, suites: Sequence[SuiteComparison]) -> Iterable[str]:
    tests = [test for suite in suites for test in suite.tests]
    number = sum(test.is_unproven and not test.accepted_by for test in tests)
    if "regressions" in policy.fail_on and number:
        failed = counted(number, "test", "failed in all fresh samples")
        yield (
            f"{failed}; `confirm: {policy.confirm}` is too small to prove so many regressions at "
            f"`alpha: {policy.alpha:g}`: raise `confirm`"
        )


def _lost_judges(policy: Policy, suites: Sequence[SuiteComparison]) -> Iterable[str]:
    """A change cannot switch a judge off by an edit of its prompt."""
    number = sum(test.has_lost_judge for suite in suites for test in suite.tests)
    if "regressions" in policy.fail_on and number:
        worse = counted(number, "test", "got worse")
        yield (
            f"{worse} by a judge of base that the change makes advisory: change the judge in a "
            f"pull request of its own, or accept it with the label `{policy.accept_label}`"
        )


def _unknown_base(
    policy: Policy, suites: Sequence[SuiteComparison], baseline: BaselineInfo
) -> Iterable[str]:
    if "regressions" not in policy.fail_on or not baseline.wanted:
        return
    # What passes on head cannot have regressed.
    needing = [suite for suite in suites if any(map(_needs_base, suite.tests))]
    if baseline.problem and (needing or not baseline.is_obtained):
        yield f"the base could not be obtained: {first_line(baseline.problem)}"
        return
    for suite in needing:
        if suite.run.base.problem:
            problem = first_line(suite.run.base.problem)
            yield f"the base of `{name_suite(suite.path)}` could not be obtained: {problem}"
    tests = [test for suite in needing for test in suite.tests]
    bases = [suite.base for suite in suites if suite.base and suite.base.total]
    if needing and bases and not any(base.scored for base in bases):
        causes = [error.message for test in tests if test.base and (error := test.base.error)]
        cause = f": {cut_line(Counter(causes).most_common(1)[0][0], _CAUSE)}" if causes else ""
        yield f"no test could run on base{cause}"
        return
    known_suites = [suite for suite in needing if not suite.run.base.problem]
    if unknown := [test for suite in known_suites for test in suite.tests if _is_unknown(test)]:
        failed = all(test.head and test.head.verdict == "fail" for test in unknown)
        has = plural(len(unknown), "has", "have")
        not_passed = counted(len(unknown), "test", "failed" if failed else "did not pass")
        yield f"{not_passed} and {has} no result on base"


def _needs_base(test: TestComparison) -> bool:
    """Whether base could show that a test regressed: it does not pass on head, and counts."""
    head = test.head
    return bool(head and not head.is_advisory and head.verdict != "pass" and not test.accepted_by)


def _is_unknown(test: TestComparison) -> bool:
    """Whether a test has a verdict under `pass`, and nothing to compare it with."""
    is_scored = test.head is not None and test.head.verdict is not None
    return test.change in NOT_COMPARED and is_scored and _needs_base(test)
