"""From the results of a run to the review of it: the comparison of each suite, and the decision.
Pure: it reads nothing but the files of a run."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from agentevals_action.model.comparison import Evidence, Finding, SuiteComparison
from agentevals_action.model.job import run_command
from agentevals_action.model.result import ErrorInfo, Key, TestResult
from agentevals_action.model.review import Review
from agentevals_action.model.run import Level, Run, RunSuite
from agentevals_action.results.run_folder import RunResults
from agentevals_action.review.comparison import gate, waivers
from agentevals_action.review.comparison.decision_rule import (
    ConfirmationPlan,
    FreshSamples,
    Suspect,
    assess,
    compute_priors,
)
from agentevals_action.review.comparison.states import (
    as_head_scores,
    compare_suite,
    find_suspects,
)

_Rows = Mapping[str, Sequence[TestResult]]


def compare(results: RunResults) -> Review:
    """The review of the results of a run."""
    run, (head, base) = results.run, rows_by_suite(results)
    evidence = _find_evidence(run, head, base)
    compared = tuple(
        compare_suite(suite, head[suite.path], base[suite.path], evidence[suite.path])
        for suite in run.suites
    )
    return _decide(run, compared)


def rows_by_suite(results: RunResults) -> tuple[_Rows, _Rows]:
    """The rows of head and of base by the suite's path on head. Each test of head has a row: one
    without a result is an error."""
    on_head: defaultdict[str, dict[str, TestResult]] = defaultdict(dict)
    on_base: defaultdict[str, list[TestResult]] = defaultdict(list)
    for row in results.head:
        on_head[row.eval_path][row.eval_id] = row
    for row in results.base:
        on_base[row.eval_path].append(row)
    head = {
        suite.path: [on_head[suite.path].get(test) or _lost(suite, test) for test in suite.tests]
        for suite in results.run.suites
    }
    return head, {suite.path: on_base[suite.base_path] for suite in results.run.suites}


def _lost(suite: RunSuite, test: str) -> TestResult:
    error = ErrorInfo(kind="shard", message="no shard has a result of it")
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


def _find_evidence(run: Run, head: _Rows, base: _Rows) -> Mapping[str, Mapping[str, Evidence]]:
    """The evidence about the tests that were sampled again because their verdict fell, by suite and
    test id. A suspect without fresh samples is deterministic, or `confirm` is 0: it is certain."""
    found: defaultdict[str, dict[str, Evidence]] = defaultdict(dict)
    sampled: list[tuple[Suspect, FreshSamples]] = []
    for suite in run.suites:
        fresh = _fresh_samples(suite, head, base)
        for suspect in find_suspects(suite.path, head[suite.path], base[suite.path]):
            if of_suspect := fresh.get(suspect.key):
                sampled.append((suspect, of_suspect))
            else:
                found[suite.path][suspect.head.eval_id] = _certain(suspect)
    plan = ConfirmationPlan(run.policy.confirm, run.policy.alpha / max(len(sampled), 1))
    priors = compute_priors({path: list(map(as_head_scores, rows)) for path, rows in base.items()})
    for suspect, of_suspect in sampled:
        evidence = assess(suspect, of_suspect, plan, priors)
        found[suspect.suite][suspect.head.eval_id] = evidence
    return found


def _fresh_samples(suite: RunSuite, head: _Rows, base: _Rows) -> Mapping[Key, FreshSamples]:
    """The samples of the confirmation, of tests that have some or should have some."""
    on_base = {row.eval_id: as_head_scores(row) for row in base[suite.path]}
    found = {}
    for row in head[suite.path]:
        if (before := on_base.get(row.eval_id)) and (row.fresh_samples or row.unconfirmed):
            found[suite.path, row.eval_id] = FreshSamples(
                row.fresh_samples, before.fresh_samples, row.unconfirmed, before.unconfirmed
            )
    return found


def _certain(suspect: Suspect) -> Evidence:
    """The evidence about a suspect that gives the same result each time."""
    base, head = (suspect.requirement.count(side.samples) for side in (suspect.base, suspect.head))
    return Evidence(Finding.REGRESSED, base, head)


def _decide(run: Run, compared: Sequence[SuiteComparison]) -> Review:
    acceptance, notices = run.acceptance, list[str]()
    if acceptance and acceptance.problem:
        if waivers.needs_acceptance(compared):
            notices.append(acceptance.problem)
        acceptance = None
    suites = waivers.apply(compared, run.quarantines, acceptance)
    # Of two files, one may have another suite.
    decision = gate.decide(run, [suite for suite in suites if suite.head])
    if run.claims or decision.conclusion == gate.ACTION_REQUIRED:
        who = "a person with write access who has read the change can"
        if run.claims:
            who = f"the results are claims of a run that the pull request controls: {who}"
        notices.append(f"{who} comment `{run_command(run.head_sha)}` for a run with keys")
    return Review(run.adding(Level.NOTICE, notices), decision, suites)
