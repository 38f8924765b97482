"""`compare`: two files of results, test by test."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from agentevals_action import console, gate
from agentevals_action.compare import Side, compare_suite, count, removed
from agentevals_action.errors import InvalidInput
from agentevals_action.model.comparison import BaselineInfo, Change, SuiteComparison
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.reports.jsonl import read_results
from agentevals_action.summary import summarise

CONDITIONS = ("gates", "regressions", "failures", "never")


def main(base: Path, head: Path, fail_on: str) -> int:
    """Prints what became of every test; the exit code is the gate's."""
    conditions = frozenset(word.strip() for word in fail_on.split(",") if word.strip())
    if unknown := conditions - set(CONDITIONS):
        raise InvalidInput(f"--fail-on does not know {', '.join(sorted(unknown))}", f"write any of {', '.join(CONDITIONS)}")
    there, here = _runs(base), _runs(head)
    for path, runs in ((base, there), (head, here)):
        if not runs:
            raise InvalidInput(f"{path} holds no result", "name the results file of a run that finished tests")
    if not _ids(here) & _ids(there):
        raise InvalidInput(f"{base} and {head} have no test in common", "name results of the same suites")
    suites = tuple(_compare(path, here.get(path), there.get(path)) for path in dict.fromkeys([*here, *there]))
    console.comparison_lines(suites, sys.stdout)
    console.suite_table([suite.head for suite in suites if suite.head], sys.stdout)
    decision = gate.decide(gate.Policy(conditions), [suite for suite in suites if suite.head], BaselineInfo("file", wanted=bool(there)))
    gone = count(suites, Change.REMOVED)
    if gone:
        print(f"{gone} test{'' if gone == 1 else 's'} of the base {'is' if gone == 1 else 'are'} not in {head}")
    print(f"{decision.outcome}{': ' if decision.reasons else ''}{'; '.join(decision.reasons)}")
    return decision.exit_code


def _runs(path: Path) -> dict[str, SuiteRun]:
    by_suite: dict[str, list[TestResult]] = {}
    for result in read_results(path, whole=True):
        by_suite.setdefault(result.eval_path, []).append(result)
    return {suite: _run(suite, results) for suite, results in by_suite.items()}


def _ids(runs: Mapping[str, SuiteRun]) -> set[tuple[str, str]]:
    return {(path, result.eval_id) for path, run in runs.items() for result in run.results}


def _run(path: str, results: Iterable[TestResult]) -> SuiteRun:
    kept = tuple(results)
    return SuiteRun(path, kept[0].dataset, kept, summarise(path, kept[0].dataset, kept))


def _compare(path: str, head: SuiteRun | None, base: SuiteRun | None) -> SuiteComparison:
    if head is not None:
        return compare_suite(path, head.name, head, Side(base))
    if base is None:
        raise ValueError(f"{path} stands on neither side")
    return SuiteComparison(path, base.name, tuple(removed(result) for result in base.results), None, base.summary)
