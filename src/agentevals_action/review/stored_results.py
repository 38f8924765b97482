"""Stored results as suites of a review: two files compared test by test, or one alone."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import joined
from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.summary import suite_run
from agentevals_action.review.comparison.compare import Side, compare_suite, removed


def read_suites(path: Path) -> tuple[SuiteComparison, ...]:
    """The suites of a file of results, compared with nothing. InvalidInput for a file without
    results or with a test twice."""
    return tuple(_compare(run, None) for run in _runs(path).values())


def compare_files(base: Path, head: Path) -> tuple[SuiteComparison, ...]:
    """The suites of two files of results, compared. InvalidInput for a file without results or with
    a test twice, and for files without a common test."""
    there, here = _runs(base), _runs(head)
    if not any(_ids(one) & _ids(other) for one, other in _pairs(here, there)):
        raise InvalidInput(
            f"{base} and {head} have no test in common", "name results of the same suites"
        )
    return compare_runs(there, here)


def compare_runs(
    base: Mapping[str, SuiteRun], head: Mapping[str, SuiteRun]
) -> tuple[SuiteComparison, ...]:
    """The suites of two sets of results by their paths, compared."""
    return tuple(_compare(one, other) for one, other in _pairs(head, base))


def _runs(path: Path) -> dict[str, SuiteRun]:
    by_suite: dict[str, dict[str, TestResult]] = {}
    for result in read_results(path, is_complete=True):
        known = by_suite.setdefault(result.eval_path, {})
        if other := known.get(result.eval_id):
            targets = joined([f"`{one}`" for one in dict.fromkeys((other.target, result.target))])
            test = f"the test `{result.eval_id}` of `{result.eval_path}`"
            raise InvalidInput(
                f"{path} contains {test} twice (target {targets})",
                "compare the results of one run against one target",
            )
        known[result.eval_id] = result
    if not by_suite:
        raise InvalidInput(
            f"{path} contains no result", "name the results file of a run that finished tests"
        )
    return {
        suite: suite_run(suite, next(iter(found.values())).dataset, found.values())
        for suite, found in by_suite.items()
    }


def _pairs(
    here: Mapping[str, SuiteRun], there: Mapping[str, SuiteRun]
) -> Iterator[tuple[SuiteRun | None, SuiteRun | None]]:
    """Pairs head's suites with base's by path. The suites that only base has follow."""
    yield from ((run, there.get(path)) for path, run in here.items())
    yield from ((None, run) for path, run in there.items() if path not in here)


def _ids(run: SuiteRun | None) -> set[str]:
    return {result.eval_id for result in run.results} if run else set()


def _compare(head: SuiteRun | None, base: SuiteRun | None) -> SuiteComparison:
    if head is not None:
        side = Side(base, path=base.path if base else None)
        return compare_suite(head.path, head.name, head, side)
    if base is None:
        raise ValueError("neither side has the suite")
    tests = tuple(removed(result) for result in base.results)
    return SuiteComparison(base.path, base.name, tests, None, base.summary)
