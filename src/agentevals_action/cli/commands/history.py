"""`history`: the page of the stored runs of the default branch."""

import os
from functools import partial
from pathlib import Path

import click

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.baselines.trends import compute_trends
from agentevals_action.cli import output
from agentevals_action.cli.options import as_environment, input_options, page_option
from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.reports.page.history_page import PAGE, history_page
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository


@click.command("history")
@page_option(PAGE)
@input_options("baseline-branch")
async def command(path: Path, **inputs: str | None) -> int:
    """Write the page of the stored runs: pass rate, cost and flaky tests over the commits of the
    default branch.

    The results are those of the data branch of `origin`."""
    branch = Settings.from_environ(as_environment(inputs)).baseline_branch
    open_repository = partial(GitRepository.open, Path.cwd(), environ=os.environ)
    files = await DataBranch(open_repository, branch).read()
    if files is None:
        raise InvalidInput(
            f"there is no branch `{branch}`",
            "run the action on pushes to the default branch with `contents: write`, which writes "
            "it, or name another branch in `--baseline-branch`",
        )
    problems: list[str] = []
    runs = [run for _, run in files.runs(problems)]
    output.print_warnings(problems)
    if not runs:
        raise InvalidInput(
            f"`{branch}` has no results of a suite", "name another branch in `--baseline-branch`"
        )
    output.write_page("history", history_page(compute_trends(reversed(runs))), path)
    return ExitCode.PASSED
