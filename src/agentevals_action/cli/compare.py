"""`compare`: two files of results, test by test; each is ours or AgentV's."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted, joined, plural
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import Change, SuiteComparison
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.review import Review
from agentevals_action.reports import console
from agentevals_action.reports.view import confirmation
from agentevals_action.reports.view.build import build_view
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.summary import summarise
from agentevals_action.review import gate
from agentevals_action.review.comparison.compare import Side, compare_suite, removed

_CONDITIONS = ("gates", "regressions", "failures", "never")


@click.command("compare")
@click.argument("base", metavar="BASE.jsonl", type=Path, help="The results of the base.")
@click.argument("head", metavar="HEAD.jsonl", type=Path, help="The results of the head.")
@click.option(
    "--fail-on",
    default="gates,regressions",
    show_default=True,
    help="The conditions that end with exit code 1: gates, regressions, failures, never.",
)
def command(base: Path, head: Path, fail_on: str) -> int:
    """Compare two files of results, test by test."""
    conditions = frozenset(word.strip() for word in fail_on.split(",") if word.strip())
    if unknown := conditions - set(_CONDITIONS):
        raise InvalidInput(
            f"--fail-on does not know {joined(sorted(unknown))}",
            f"write any of {joined(_CONDITIONS, 'or')}",
        )
    suites = _compare_files(base, head)
    baseline = BaselineInfo("file", wanted=True)
    with_head = [suite for suite in suites if suite.head]
    decision = gate.decide(gate.Policy(conditions), with_head, baseline)
    view = build_view(Review("", None, decision, suites=suites, baseline=baseline))
    console.print_changes(view, sys.stdout)
    console.print_suites(view, sys.stdout)
    if number := sum(one.comparison.change is Change.REMOVED for one in view.tests):
        print(f"{counted(number, 'test')} of the base {plural(number, 'is', 'are')} not in {head}")
    changes = Counter(confirmation.change_word(one.comparison.change) for one in view.tests)
    counts = ", ".join(f"{number} {word}" for word, number in changes.most_common())
    print(f"{counted(len(view.tests), 'test')}: {counts}")
    print(console.outcome_line(decision))
    return decision.exit_code


def _compare_files(base: Path, head: Path) -> tuple[SuiteComparison, ...]:
    there, here = _runs(base), _runs(head)
    for path, runs in ((base, there), (head, here)):
        if not runs:
            raise InvalidInput(
                f"{path} contains no result", "name the results file of a run that finished tests"
            )
    pairs = tuple(_pairs(here, there))
    if not any(_ids(one) & _ids(other) for one, other in pairs):
        raise InvalidInput(
            f"{base} and {head} have no test in common", "name results of the same suites"
        )
    return tuple(_compare(one, other) for one, other in pairs)


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
    runs = {}
    for suite, found in by_suite.items():
        results = tuple(found.values())
        name = results[0].dataset
        runs[suite] = SuiteRun(suite, name, results, summarise(suite, name, results))
    return runs


def _pairs(
    here: Mapping[str, SuiteRun], there: Mapping[str, SuiteRun]
) -> Iterator[tuple[SuiteRun | None, SuiteRun | None]]:
    """Pairs head's suites with base's by path, or else by name, because rows of AgentV may have no
    path. The suites that only base has follow."""
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


def _compare(head: SuiteRun | None, base: SuiteRun | None) -> SuiteComparison:
    if head is not None:
        side = Side(base, path=base.path if base else None)
        return compare_suite(head.path, head.name, head, side)
    if base is None:
        raise ValueError("neither side has the suite")
    tests = tuple(removed(result) for result in base.results)
    return SuiteComparison(base.path, base.name, tests, None, base.summary)
