"""`selftest`: suites that run many times on one commit: how often two runs of it would differ."""

import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import click

from agentevals_action.cli import output
from agentevals_action.cli.commands.run import local_request, open_folder
from agentevals_action.cli.commands.stored_results import read_trends
from agentevals_action.cli.loaded_suites import load_suites, paths_argument
from agentevals_action.cli.options import RUN_INPUTS, as_environment, input_options
from agentevals_action.cli.tables import print_table
from agentevals_action.errors import ExitCode, GitError
from agentevals_action.formatting import UNKNOWN, counted, joined
from agentevals_action.judges.standing import NOT_CALIBRATED, Standings
from agentevals_action.model.comparison import SmallestDrop
from agentevals_action.model.run import Level
from agentevals_action.model.suite import Suite, Test
from agentevals_action.reports.terminal import console
from agentevals_action.reports.view.history import list_idle
from agentevals_action.reports.view.suite_table import describe_drop
from agentevals_action.results.run_folder import HEAD_RESULTS
from agentevals_action.review import pipeline
from agentevals_action.review.comparison import selftest
from agentevals_action.review.comparison.power import with_head
from agentevals_action.review.comparison.selftest import Flakiness
from agentevals_action.review.inputs.request import LocalRun
from agentevals_action.runners.suites import LoadedSuites
from agentevals_action.settings import Settings

_INPUTS = tuple(name for name in RUN_INPUTS if name != "setup")
_TITLES = ("test", "passed", "not scored", "flake rate", "pairs blocked")
_LEGEND = (
    "flake rate: samples that differ from the most frequent result of their test",
    "pairs blocked: pairs of single runs of this commit in which the second is worse",
)


@click.command("selftest")
@paths_argument
@click.option(
    "--samples",
    type=click.IntRange(2, 100),
    default=10,
    show_default=True,
    help="Samples per test.",
)
@input_options(*_INPUTS, "confirm", "alpha", "baseline-branch")
async def command(paths: tuple[Path, ...], samples: int, **inputs: str | None) -> int:
    """Run suites many times on this commit and report how often two runs of it would differ,
    which tests cause that, the smallest drop that a suite can find, the judges without a
    calibration, and the gates and tests that never showed anything in the stored runs."""
    given = Settings.from_environ(as_environment({**inputs, "samples": str(samples)}))
    folder = f"{given.report_dir}/selftest"  # the results of other runs stay
    settings = given.model_copy(update={"confirm": 0, "report_dir": folder})
    workspace, repository = await open_folder(settings)
    counts: dict[str, int] = {}

    def select(suites: Sequence[Suite]) -> Sequence[Suite]:
        varying = [suite.with_tests(_varying(suite)) for suite in suites]
        counts["all"] = sum(len(suite.tests) for suite in suites)
        counts["run"] = sum(len(suite.tests) for suite in varying)
        tests = [counted(counts["run"], "test")] if counts["run"] else []
        tests += [f"the tests of {suite.path}" for suite in varying if suite.program]
        print(f"{joined(tests)}: {samples} samples each", file=sys.stderr)
        return [suite for suite in varying if suite.tests or suite.program]

    path = workspace.report / HEAD_RESULTS
    run = LocalRun(paths, (), select, lambda _suites, _fingerprint, _rule: {}, path)
    results = await pipeline.run(await local_request(workspace, repository, run))
    facts = results.run
    output.print_warnings((*facts.sentences(Level.WARNING), *facts.sentences(Level.PROBLEM)))
    console.print_sentences(facts.sentences(Level.NOTICE), sys.stderr)
    print(f"samples: {path}", file=sys.stderr)
    measured = sorted(
        map(selftest.measure, results.head),
        key=lambda test: (-(test.blocked or 0.0), -(test.flake_rate or 0.0)),
    )
    _print(measured, counts["all"] - counts["run"])
    output.print_lines(_describe_drops(measured, given))
    loaded = await load_suites(inputs, paths)
    output.print_lines(_list_uncalibrated(loaded))
    if repository:
        await _print_idle(given.baseline_branch, {suite.path for suite in facts.suites})
    is_incomplete = bool(facts.sentences(Level.PROBLEM)) or any(
        test.flake_rate is None for test in measured
    )
    return ExitCode.INCONCLUSIVE if is_incomplete else ExitCode.PASSED


def _varying(suite: Suite) -> tuple[Test, ...]:
    """The tests whose result may differ from run to run."""
    return tuple(test for test in suite.tests if not suite.is_deterministic(test))


def _print(measured: Sequence[Flakiness], steady: int) -> None:
    if steady:
        print(f"{counted(steady, 'test')} did not run: the result is always the same.")
    if measured:
        rows = [_row(f"{test.suite} {test.test}", [test]) for test in measured]
        if len(measured) > 1:
            rows.append(_row("all together", measured))
        print_table(_TITLES, rows)
        output.print_lines(_LEGEND)
    output.print_lines(
        f"{test.suite} {test.test}: {test.errors} of {test.scored + test.errors} samples could "
        f"not be scored: {' '.join(test.message.split())}"
        for test in measured
        if test.errors
    )


def _describe_drops(measured: Sequence[Flakiness], settings: Settings) -> Iterator[str]:
    """What each suite can find in a review with one sample. Tests that never passed cannot fall."""
    by_suite: defaultdict[str, list[Flakiness]] = defaultdict(list)
    for test in measured:
        if test.passed:
            by_suite[test.suite].append(test)
    for path, tests in by_suite.items():
        rate = sum(test.passed for test in tests) / sum(test.scored for test in tests)
        drop = SmallestDrop(len(tests), 1, settings.confirm, settings.alpha, rate)
        yield f"{path} can find: {describe_drop(with_head(drop))}"


def _list_uncalibrated(loaded: LoadedSuites) -> Iterator[str]:
    """The judges of the suites without a calibration, after a line about what to do."""
    standings = Standings(loaded.checkout)
    judges = {
        f"  {suite.path}: {judge}": None
        for suite in loaded.valid
        for test in suite.tests
        for judge, standing in standings.of(suite, test).items()
        if standing == NOT_CALIBRATED
    }
    if judges:
        yield "Judges without a calibration. Label answers (`judge label`), then `judge calibrate`."
    yield from judges


async def _print_idle(branch: str, paths: Collection[str]) -> None:
    """The gates and tests of these suites that never show anything in the stored runs."""
    try:
        trends = await read_trends(branch)
    except GitError as error:
        output.print_warnings([f"the stored runs are not read: {error.sentence}"])
        return
    for title, advice, lines in list_idle([trend for trend in trends or () if trend.path in paths]):
        output.print_lines(
            [f"{title} in the last 50 runs. {advice}", *(f"  {line}" for line in lines)]
        )


def _row(name: str, tests: Sequence[Flakiness]) -> Sequence[str]:
    rates = [test.flake_rate for test in tests if test.flake_rate is not None]
    scored = sum(test.scored for test in tests)
    return (
        name,
        f"{sum(test.passed for test in tests)}/{scored}",
        str(sum(test.errors for test in tests)),
        f"{sum(rates) / len(rates):.0%}" if rates else UNKNOWN,
        f"{selftest.blocked_together(tests):.0%}" if rates else UNKNOWN,
    )
