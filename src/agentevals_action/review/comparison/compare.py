"""From the results of a run to the review of it: the comparison of each suite, and the decision.
Pure: it reads nothing but the files of a run."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agentevals_action.model.comparison import Evidence, Finding, Review, SuiteComparison
from agentevals_action.model.job import run_command
from agentevals_action.model.result import ErrorInfo, TestResult
from agentevals_action.model.run import Level, Policy, Run, RunSuite
from agentevals_action.results.run_folder import RunResults
from agentevals_action.review.comparison import gate, waivers
from agentevals_action.review.comparison.decision_rule import (
    ConfirmationPlan,
    FreshSamples,
    RowsBySuite,
    Suspect,
    as_head_scores,
    assess,
    compute_priors,
)
from agentevals_action.review.comparison.increases import with_increases
from agentevals_action.review.comparison.pairwise import with_pairwise
from agentevals_action.review.comparison.power import find_drop
from agentevals_action.review.comparison.states import compare_suite, find_suspects
from agentevals_action.review.comparison.variants import with_variants


def compare(results: RunResults) -> Review:
    """The review of the results of a run."""
    run, head, base = results.run, _by_path(results.head), _by_path(results.base)
    on_base = {suite.path: base[suite.base_path] for suite in run.suites}
    on_head = {
        suite.path: {
            test: head[suite.path].get(test) or _missing_row(suite, test) for test in suite.tests
        }
        for suite in run.suites
    }
    evidence = _find_evidence(run.policy, on_head, on_base)
    compared = [
        replace(
            compare_suite(
                suite,
                tuple(on_head[suite.path].values()),
                tuple(on_base[suite.path].values()),
                evidence[suite.path],
                run.samples,
            ),
            drop=find_drop(run, suite, on_base[suite.path].values()),
        )
        for suite in run.suites
    ]
    return _decide(run, compared, results.variants)


def _by_path(rows: Iterable[TestResult]) -> defaultdict[str, dict[str, TestResult]]:
    """The rows of a side by the suite's path there, and then by the test's id."""
    rows_by_path: defaultdict[str, dict[str, TestResult]] = defaultdict(dict)
    for row in rows:
        rows_by_path[row.eval_path][row.eval_id] = row
    return rows_by_path


def _missing_row(suite: RunSuite, test: str) -> TestResult:
    error = ErrorInfo(kind="shard", message="no shard reported this test")
    return TestResult(
        timestamp="",
        eval_id=test,
        dataset=suite.name,
        score=None,
        verdict=None,
        eval_path=suite.path,
        path=suite.path,
        error=error,
    )


def _find_evidence(
    policy: Policy, head: RowsBySuite, base: RowsBySuite
) -> Mapping[str, Mapping[str, Evidence]]:
    """The evidence about the suspects, by suite and test id. Evidence without fresh samples is
    certain: the suspect is deterministic, or `confirm` is 0."""
    by_suite: defaultdict[str, dict[str, Evidence]] = defaultdict(dict)
    suspects = find_suspects(head, base)
    fresh = {
        suspect.key: samples
        for suspect in suspects
        for samples in [_fresh_samples(suspect, head, base)]
        if samples.head or samples.problem
    }
    plan = ConfirmationPlan(policy.confirm, policy.level / max(len(fresh), 1))
    priors = compute_priors(base)
    for suspect in suspects:
        samples = fresh.get(suspect.key)
        evidence = assess(suspect, samples, plan, priors) if samples else _certain_evidence(suspect)
        by_suite[suspect.suite][suspect.head.eval_id] = evidence
    return by_suite


def _fresh_samples(suspect: Suspect, head: RowsBySuite, base: RowsBySuite) -> FreshSamples:
    """The samples of the confirmation, and why some are missing."""
    path, test = suspect.key
    on_head, on_base = head[path][test], as_head_scores(base[path][test])
    return FreshSamples(
        on_head.fresh_samples, on_base.fresh_samples, on_head.unconfirmed, on_base.unconfirmed
    )


def _certain_evidence(suspect: Suspect) -> Evidence:
    """The evidence about a suspect that gives the same result each time."""
    base, head = (suspect.requirement.count(side.samples) for side in (suspect.base, suspect.head))
    return Evidence(Finding.REGRESSED, base, head)


def _decide(
    run: Run, compared: Sequence[SuiteComparison], variants: Sequence[TestResult]
) -> Review:
    acceptance, notices = run.acceptance, list[str]()
    if acceptance and acceptance.problem:
        if waivers.needs_acceptance(compared):
            notices.append(acceptance.problem)
        acceptance = None
    suites = waivers.apply(compared, run.quarantines, acceptance)
    suites = with_variants(suites, variants, run.policy)
    suites = with_pairwise(suites, run.policy)
    suites = with_increases(suites, run.policy)
    # If two results files are compared, a suite may be in the file of base alone.
    decision = gate.decide(run, [suite for suite in suites if suite.head])
    if run.claims or decision.conclusion == gate.ACTION_REQUIRED:
        who = "a person with write access who has read the change can"
        if run.claims:
            who = f"the results are claims of a run that the pull request controls: {who}"
        notices.append(f"{who} comment `{run_command(run.head_sha)}` for a run with keys")
    return Review(run.with_notes(Level.NOTICE, notices), decision, suites)
