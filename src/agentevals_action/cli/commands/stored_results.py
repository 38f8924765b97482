"""`compare`, `report` and `history`: results that are in files or on the data branch."""

import os
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

import click

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.baselines.trends import SuiteTrend, compute_trends
from agentevals_action.cli import output
from agentevals_action.cli.options import as_environment, input_options, page_option
from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.formatting import counted, plural
from agentevals_action.judges.calibration_file import parse_calibration, read_calibration
from agentevals_action.model.judge import CALIBRATION_FILE
from agentevals_action.model.run import Policy
from agentevals_action.reports.page import history_page, report_page
from agentevals_action.reports.terminal import console
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.confirmation import change_word
from agentevals_action.results.run_folder import read_files
from agentevals_action.review.comparison.compare import compare
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository


@click.command("compare")
@click.argument("base", metavar="BASE.jsonl", type=Path, help="The results of the base.")
@click.argument("head", metavar="HEAD.jsonl", type=Path, help="The results of the head.")
@input_options("fail-on")
def compare_command(base: Path, head: Path, **inputs: str | None) -> int:
    """Compare two files of results, test by test. By default, failed gates and regressions end with
    exit code 1."""
    conditions = Settings.from_environ(as_environment(inputs)).fail_on
    policy = Policy(conditions or frozenset({"gates", "regressions"}))
    review = compare(read_files(head, base, policy))
    view = build_view(review)
    console.print_tests(view, console.changed(view), sys.stdout)
    console.print_suites(view, sys.stdout)
    if number := len(view.groups["removed"]):
        print(f"{counted(number, 'test')} of the base {plural(number, 'is', 'are')} not in {head}")
    changes = Counter(change_word(test.comparison.change) for test in view.tests)
    counts = ", ".join(f"{number} {word}" for word, number in changes.most_common())
    print(f"{counted(len(view.tests), 'test')}: {counts}")
    print(console.outcome_line(review.decision))
    return review.decision.exit_code


@click.command("report")
@click.argument("results", metavar="RESULTS.jsonl", type=Path, help="The results of the head.")
@click.option("--base", metavar="BASE.jsonl", type=Path, help="The results of the base.")
@page_option(report_page.PAGE)
def report_command(results: Path, base: Path | None, path: Path) -> int:
    """Write the report page of stored results, compared with a base if there is one."""
    fail_on = {"gates", "regressions"} if base else {"failures"}
    review = compare(read_files(results, base, Policy(frozenset(fail_on))))
    output.write_page("report", report_page.report_page(build_view(review)), path)
    return ExitCode.PASSED


@click.command("history")
@page_option(history_page.PAGE)
@input_options("baseline-branch")
async def history_command(path: Path, **inputs: str | None) -> int:
    """Write the page of the stored runs: pass rate, cost and flaky tests over the commits of the
    default branch.

    The results are those of the data branch of `origin`."""
    branch = Settings.from_environ(as_environment(inputs)).baseline_branch
    calibration = parse_calibration(read_calibration(Path.cwd() / CALIBRATION_FILE))
    output.print_warnings(map(str, calibration.errors))
    judges = calibration.calibration.judges if calibration.calibration else ()
    trends = await read_trends(branch, judges)
    if trends is None:
        raise InvalidInput(
            f"there is no branch `{branch}`",
            "run the action on pushes to the default branch with `contents: write`, which writes "
            "it, or name another branch in `--baseline-branch`",
        )
    if not trends:
        raise InvalidInput(
            f"`{branch}` has no results of a suite", "name another branch in `--baseline-branch`"
        )
    output.write_page("history", history_page.history_page(trends), path)
    return ExitCode.PASSED


async def read_trends(
    branch: str, calibrated: Collection[str] | None = None
) -> Sequence[SuiteTrend] | None:
    """The trends of the stored runs of a data branch of `origin`, after warnings about what cannot
    be read; None without such a branch. `calibrated` are the keys of calibrated judges."""
    open_repository = partial(GitRepository.open, Path.cwd(), environ=os.environ)
    files = await DataBranch(open_repository, branch).read()
    if files is None:
        return None
    problems: list[str] = []
    runs = [run for _, run in files.runs(problems)]
    output.print_warnings(problems)
    return compute_trends(reversed(runs), calibrated)
