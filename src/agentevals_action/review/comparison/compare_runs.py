"""From the runs of head and base to the comparison of each suite. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentevals_action.model.baseline import BaseRun
from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.edits import SuiteEdits
from agentevals_action.model.result import SampleResult, SuiteRun, TestResult
from agentevals_action.model.review import Selection
from agentevals_action.results.build import extended
from agentevals_action.results.scoring import MIN_MAJORITY
from agentevals_action.results.summary import suite_run, summarise
from agentevals_action.review.comparison import compare
from agentevals_action.review.comparison.decision_rule import Evidences, Key, Suspect


@dataclass(frozen=True)
class Runs:
    """The suites of head, those of base, and by suite and test id the results of base that head's
    evaluators scored, and those of head that base's scored (`by_base`). `evidence` is about the
    verdicts that fell."""

    head: Mapping[str, SuiteRun]
    base: BaseRun
    regraded: Mapping[str, Mapping[str, TestResult]] = field(default_factory=dict)
    evidence: Evidences = field(default_factory=dict)
    by_base: Mapping[str, Mapping[str, TestResult]] = field(default_factory=dict)


def tests_to_regrade(runs: Runs) -> dict[str, dict[str, TestResult]]:
    """The results of base that head's evaluators must score, by suite and test id."""
    found: dict[str, dict[str, TestResult]] = {}
    for path, run in runs.base.suites.items():
        base = {result.eval_id: result for result in run.results}
        for result in runs.head[path].results:
            before = base.get(result.eval_id)
            if before and compare.needs_regrading(result, before):
                found.setdefault(path, {})[result.eval_id] = before
    return found


def tests_to_score_by_base(
    runs: Runs, edits: Mapping[str, SuiteEdits]
) -> dict[str, dict[str, TestResult]]:
    """The results of head that base's evaluators must score, by suite and test id."""
    found = {
        path: {
            result.eval_id: result
            for result in runs.head[path].results
            if result.eval_id in of_suite.rescored and result.verdict is not None
        }
        for path, of_suite in edits.items()
    }
    return {path: results for path, results in found.items() if results}


def find_falls(runs: Runs, selections: Sequence[Selection]) -> list[Suspect]:
    """The tests whose verdict fell."""
    return [
        suspect
        for selection in selections
        for suspect in compare.find_falls(
            runs.head[selection.path],
            _side(runs, selection),
            compare.Knowledge(runs.regraded.get(selection.path, {})),
        )
    ]


def failing_tests(runs: Runs, fail_on: Collection[str]) -> list[Key]:
    """The tests of head that block by themselves under `fail_on` (`gates`, `failures`) after fewer
    samples than a majority needs."""
    return [
        (path, result.eval_id)
        for path, run in runs.head.items()
        for result in run.results
        if len(result.main_samples) < MIN_MAJORITY
        and (
            ("gates" in fail_on and result.gates_failed)
            or ("failures" in fail_on and result.verdict == "fail")
        )
    ]


def base_results(runs: Runs) -> dict[str, tuple[TestResult, ...]]:
    """The results of base by suite, as head's evaluators score them."""
    return {path: _as_head_scores(runs, path) for path in runs.base.suites}


def with_evidence(
    runs: Runs, evidence: Evidences, of_failing: Mapping[Key, Sequence[SampleResult]]
) -> Runs:
    """The runs with the fresh samples of the confirmation: those of the suspects, and those of
    tests that fail without a fall."""
    fresh_head = {key: found.head_samples for key, found in evidence.items()} | dict(of_failing)
    fresh_base = {key: found.base_samples for key, found in evidence.items()}
    regraded = {
        path: {
            name: extended(result, fresh_base.get((path, name), ()))
            for name, result in results.items()
        }
        for path, results in runs.regraded.items()
    }
    # Fresh samples are scored as on head, so they do not belong to a result that base scored
    # differently.
    own_base = {
        (path, name): samples
        for (path, name), samples in fresh_base.items()
        if name not in runs.regraded.get(path, {})
    }
    base = {path: _extended_run(path, run, own_base) for path, run in runs.base.suites.items()}
    return replace(
        runs,
        head={path: _extended_run(path, run, fresh_head) for path, run in runs.head.items()},
        base=replace(runs.base, suites=base),
        regraded=regraded,
        evidence=evidence,
    )


def compare_suites(
    runs: Runs,
    selections: Sequence[Selection],
    question_files: Mapping[str, Mapping[str, Sequence[str]]],
    edits: Mapping[str, SuiteEdits],
) -> tuple[SuiteComparison, ...]:
    """The comparison of every selected suite. `question_files` are the changed files that a
    question contains, by suite and test id; `edits` are by suite."""
    return tuple(
        compare.compare_suite(
            path,
            runs.head[path].name,
            runs.head[path],
            _side(runs, selection),
            compare.Knowledge(
                runs.regraded.get(path, {}),
                question_files.get(path, {}),
                {test: found for (suite, test), found in runs.evidence.items() if suite == path},
                runs.by_base.get(path, {}),
                edits.get(path, SuiteEdits()).edits,
            ),
        )
        for selection in selections
        for path in (selection.path,)
    )


def _side(runs: Runs, selection: Selection) -> compare.Side:
    path, base = selection.path, runs.base
    run = base.suites.get(path)
    if run and runs.regraded.get(path):  # the totals are those of what is compared
        summary = summarise(run.path, run.name, _as_head_scores(runs, path))
        run = replace(run, summary=summary)
    return compare.Side(
        run,
        selection.base_path,
        base.problems.get(path) or (base.info.problem if base.info.wanted else ""),
        base.missing.get(path, ""),
        base.origins.get(path),
    )


def _as_head_scores(runs: Runs, path: str) -> tuple[TestResult, ...]:
    regraded = runs.regraded.get(path, {})
    return tuple(regraded.get(result.eval_id, result) for result in runs.base.suites[path].results)


def _extended_run(
    path: str, run: SuiteRun, fresh: Mapping[Key, Sequence[SampleResult]]
) -> SuiteRun:
    if not any(samples for (suite, _), samples in fresh.items() if suite == path):
        return run
    results = (extended(result, fresh.get((path, result.eval_id), ())) for result in run.results)
    return suite_run(run.path, run.name, results)
