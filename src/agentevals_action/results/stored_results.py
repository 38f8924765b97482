"""Files of results as a run: two files that are compared test by test, or one alone."""

from collections.abc import Mapping
from pathlib import Path

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import joined
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.result import Key, TestResult
from agentevals_action.model.run import Policy, Run, RunSuite, Selection
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.run_folder import RunResults

_ALONE = BaselineInfo("none", wanted=False, reason="no results of a base were given")
_COMPARED = BaselineInfo("file", wanted=True)


def read_files(head: Path, base: Path | None, policy: Policy) -> RunResults:
    """The results of head and of base as one run. Raises InvalidInput for a file without results or
    with a test twice, and for files without a common test."""
    on_base = _rows(base) if base else {}
    on_head = _rows(head)
    if base and not on_head.keys() & on_base.keys():
        raise InvalidInput(
            f"{base} and {head} have no test in common", "name results of the same suites"
        )
    suites: dict[str, str] = {}
    tests: dict[str, list[str]] = {}
    for (path, _), row in {**on_base, **on_head}.items():
        suites[path] = row.dataset
    for path, name in on_head:
        tests.setdefault(path, []).append(name)
    run = Run(
        head_sha="",
        policy=policy,
        suites=tuple(
            RunSuite(Selection(path, ()), suites[path], tuple(tests.get(path, ())))
            for path in dict.fromkeys([*tests, *suites])
        ),
        baseline=_COMPARED if base else _ALONE,
    )
    return RunResults(run, tuple(on_head.values()), tuple(on_base.values()))


def _rows(path: Path) -> Mapping[Key, TestResult]:
    found: dict[Key, TestResult] = {}
    for result in read_results(path, is_complete=True):
        key = result.key
        if other := found.get(key):
            targets = joined(
                [f"`{target}`" for target in dict.fromkeys((other.target, result.target))]
            )
            test = f"the test `{result.eval_id}` of `{result.eval_path}`"
            raise InvalidInput(
                f"{path} contains {test} twice (target {targets})",
                "compare the results of one run against one target",
            )
        found[key] = result
    if not found:
        raise InvalidInput(
            f"{path} contains no result", "name the results file of a run that finished tests"
        )
    return found
