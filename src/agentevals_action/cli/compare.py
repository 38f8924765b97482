"""`compare`: two files of results, test by test; each ours or AgentV's."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agentevals_action.errors import InvalidInput
from agentevals_action.model.comparison import BaselineInfo, Change, SuiteComparison
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.reports import console
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.summary import summarise
from agentevals_action.review import gate
from agentevals_action.review.comparison.compare import Side, compare_suite, count, removed

CONDITIONS = ("gates", "regressions", "failures", "never")


def main(base: Path, head: Path, fail_on: str) -> int:
    """Prints what became of every test; the exit code is the gate's."""
    conditions = frozenset(word.strip() for word in fail_on.split(",") if word.strip())
    if unknown := conditions - set(CONDITIONS):
        raise InvalidInput(
            f"--fail-on does not know {', '.join(sorted(unknown))}",
            f"write any of {', '.join(CONDITIONS)}",
        )
    there, here = _runs(base), _runs(head)
    for path, runs in ((base, there), (head, here)):
        if not runs:
            raise InvalidInput(
                f"{path} holds no result", "name the results file of a run that finished tests"
            )
    pairs = tuple(_paired(here, there))
    if not any(_ids(one) & _ids(other) for one, other in pairs):
        raise InvalidInput(
            f"{base} and {head} have no test in common", "name results of the same suites"
        )
    suites = tuple(_compare(one, other) for one, other in pairs)
    console.comparison_lines(suites, sys.stdout)
    console.suite_table(suites, sys.stdout)
    decision = gate.decide(
        gate.Policy(conditions),
        [suite for suite in suites if suite.head],
        BaselineInfo("file", wanted=bool(there)),
    )
    gone = count(suites, Change.REMOVED)
    if gone:
        print(
            f"{gone} test{'' if gone == 1 else 's'} of the base {'is' if gone == 1 else 'are'} not in {head}"
        )
    print(f"{decision.outcome}{': ' if decision.reasons else ''}{'; '.join(decision.reasons)}")
    return decision.exit_code


def _runs(path: Path) -> dict[str, SuiteRun]:
    by_suite: dict[str, dict[str, TestResult]] = {}
    for result in read_results(path, whole=True):
        known = by_suite.setdefault(result.eval_path, {})
        if taken := known.get(result.eval_id):
            told = " and ".join(dict.fromkeys(f"`{one.target}`" for one in (taken, result)))
            problem = f"{path} holds the test `{result.eval_id}` of `{result.eval_path}` twice (target {told})"
            raise InvalidInput(problem, "compare the results of one run against one target")
        known[result.eval_id] = result
    return {suite: _run(suite, results.values()) for suite, results in by_suite.items()}


def _paired(
    here: Mapping[str, SuiteRun], there: Mapping[str, SuiteRun]
) -> Iterator[tuple[SuiteRun | None, SuiteRun | None]]:
    """Head's suites with the base's: those of the same path, else of the same name, as AgentV's
    rows may name no file; then base's own."""
    left = {path: run for path, run in there.items() if path not in here}
    for path, run in here.items():
        found = there.get(path)
        if found is None:
            alike = [other for other in left.values() if other.name == run.name]
            rivals = [other for other in here.values() if other.name == run.name]
            found = left.pop(alike[0].path) if len(alike) == len(rivals) == 1 else None
        yield run, found
    yield from ((None, run) for run in left.values())


def _ids(run: SuiteRun | None) -> set[str]:
    return {result.eval_id for result in run.results} if run else set()


def _run(path: str, results: Iterable[TestResult]) -> SuiteRun:
    kept = tuple(results)
    return SuiteRun(path, kept[0].dataset, kept, summarise(path, kept[0].dataset, kept))


def _compare(head: SuiteRun | None, base: SuiteRun | None) -> SuiteComparison:
    if head is not None:
        return compare_suite(
            head.path, head.name, head, Side(base, path=base.path if base else None)
        )
    if base is None:
        raise ValueError("a suite stands on one side at least")
    return SuiteComparison(
        base.path, base.name, tuple(removed(result) for result in base.results), None, base.summary
    )
