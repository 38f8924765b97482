"""From what was run to what became of each suite: verdicts that fell are confirmed, then all is
compared."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from agentevals_action.model.comparison import BaseRun, Evidence, Selection, SuiteComparison
from agentevals_action.model.result import SampleResult, SuiteRun, TestResult
from agentevals_action.results.build import extended
from agentevals_action.results.summary import summarise
from agentevals_action.review.comparison import compare
from agentevals_action.review.comparison.confirmation import (
    Evidences,
    Sampler,
    Suspect,
    confirm,
    to_sample,
)


@dataclass(frozen=True)
class Runs:
    """What was run: head's suites, the base's, the tests whose base was graded again, by suite, and
    what became of verdicts that fell."""

    head: Mapping[str, SuiteRun]
    base: BaseRun
    regraded: Mapping[str, Mapping[str, TestResult]] = field(default_factory=dict)
    evidence: Evidences = field(default_factory=dict)

    def evidence_of(self, path: str) -> Mapping[str, Evidence]:
        """What became of one suite's verdicts that fell, by test id."""
        return {
            test: evidence for (suite, test), evidence in self.evidence.items() if suite == path
        }


@dataclass(frozen=True)
class Caution:
    """How a fall is confirmed: `confirm` fresh samples of head at most for each suspect, `alpha`
    the chance (0-1) of one false regression in the whole review."""

    confirm: int = 6
    alpha: float = 0.05


async def confirmed(
    runs: Runs,
    selections: Sequence[Selection],
    caution: Caution,
    certain: Callable[[str], Set[str]],
    sampler: Callable[[frozenset[tuple[str, str]]], Sampler],
) -> Runs:
    """The runs with what fresh samples say of each verdict that fell, on both sides. `certain`
    gives the tests of a suite of which one sample tells all; `sampler` gives what runs these tests
    again."""
    suspects = []
    for selection in selections:
        path = selection.path
        if falls := compare.falls(runs.head[path], _side(runs, selection), _knowledge(runs, path)):
            sure = certain(path)
            suspects += [
                Suspect(path, fall.head, fall.base, fall.held, fall.head.eval_id in sure)
                for fall in falls
            ]
    if not suspects:
        return runs
    bases = {path: _graded_as_head(runs, path) for path in runs.base.suites}
    keys = frozenset(suspect.key for suspect in to_sample(suspects, caution.confirm))
    evidence = await confirm(suspects, bases, caution.confirm, caution.alpha, sampler(keys))
    fresh_head = {key: found.head_samples for key, found in evidence.items()}
    fresh_base = {key: found.base_samples for key, found in evidence.items()}
    regraded = {
        path: {
            name: extended(result, fresh_base.get((path, name), ()))
            for name, result in results.items()
        }
        for path, results in runs.regraded.items()
    }
    # Fresh samples are graded as head grades: beside those of a test that base graded otherwise
    # they would be taken for base's own.
    own_base = {
        (path, name): samples
        for (path, name), samples in fresh_base.items()
        if name not in runs.regraded.get(path, {})
    }
    return Runs(
        head={path: _extended_run(path, run, fresh_head) for path, run in runs.head.items()},
        base=replace(
            runs.base,
            suites={
                path: _extended_run(path, run, own_base) for path, run in runs.base.suites.items()
            },
        ),
        regraded=regraded,
        evidence=evidence,
    )


def compared(
    runs: Runs,
    selections: Sequence[Selection],
    names: Mapping[str, str],
    question_files: Callable[[str], Mapping[str, Sequence[str]]],
) -> tuple[SuiteComparison, ...]:
    """Every selected suite, head against base. `names` are the suites' by path, `question_files`
    gives the changed files that a suite's questions hold, by test id."""
    return tuple(
        compare.compare_suite(
            selection.path,
            names[selection.path],
            runs.head[selection.path],
            _side(runs, selection),
            _knowledge(runs, selection.path, question_files(selection.path)),
        )
        for selection in selections
    )


def _side(runs: Runs, selection: Selection) -> compare.Side:
    path, info = selection.path, runs.base.info
    run = runs.base.suites.get(path)
    if run and runs.regraded.get(path):  # the totals are those that are compared
        run = replace(run, summary=summarise(run.path, run.name, _graded_as_head(runs, path)))
    problem = runs.base.problems.get(path) or (info.problem if info.wanted else "")
    return compare.Side(
        run,
        selection.base_path,
        problem,
        runs.base.missing.get(path, ""),
        runs.base.origins.get(path),
    )


def _knowledge(
    runs: Runs, path: str, question_files: Mapping[str, Sequence[str]] | None = None
) -> compare.Knowledge:
    return compare.Knowledge(
        runs.regraded.get(path, {}), question_files or {}, runs.evidence_of(path)
    )


def _graded_as_head(runs: Runs, path: str) -> tuple[TestResult, ...]:
    again = runs.regraded.get(path, {})
    return tuple(again.get(result.eval_id, result) for result in runs.base.suites[path].results)


def _extended_run(
    path: str, run: SuiteRun, fresh: Mapping[tuple[str, str], Sequence[SampleResult]]
) -> SuiteRun:
    if not any(samples for (suite, _), samples in fresh.items() if suite == path):
        return run
    results = tuple(
        extended(result, fresh.get((path, result.eval_id), ())) for result in run.results
    )
    return replace(run, results=results, summary=summarise(run.path, run.name, results))
