"""`history`: the page of the stored runs of the default branch."""

import asyncio
import os
import sys
from pathlib import Path

import click

from agentevals_action.baselines import history_branch
from agentevals_action.cli.options import as_environment, input_options
from agentevals_action.cli.page_file import page_options, write_page
from agentevals_action.errors import GitError, InvalidInput
from agentevals_action.escaping import printable
from agentevals_action.reports.html.history_page import PAGE, history_page
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository


@click.command("history")
@page_options(PAGE)
@input_options("baseline-branch")
async def command(output: Path, opens: bool, **inputs: str | None) -> int:
    """Write the page of the stored runs: pass rate, score, cost, time and flaky tests over the
    commits of the default branch.

    The results are those of the data branch of `origin`, or of the clone if there is none."""
    branch = Settings.from_environ(as_environment(inputs)).baseline_branch
    repository = await GitRepository.open(Path.cwd(), environ=os.environ)
    commit = await _commit(repository, branch)
    loop = asyncio.get_running_loop()

    def read(name: str) -> str:
        content = asyncio.run_coroutine_threadsafe(repository.show(commit, name), loop).result()
        return (content or b"").decode("utf-8", "replace")

    files = await repository.files(commit)
    trends = await asyncio.to_thread(history_branch.all_trends, files, read)
    if not trends:
        raise InvalidInput(
            f"`{branch}` has no results of a suite", "name another branch in `--baseline-branch`"
        )
    return write_page("history", history_page(trends), output, opens)


async def _commit(repository: GitRepository, branch: str) -> str:
    """The last commit of the data branch: that of `origin`, else that of the clone."""
    try:
        found = await repository.fetch_branch(branch)
    except GitError as error:
        found = None
        problem = printable(str(error), 500)
        print(f"notice: the branch of the clone is used: {problem}", file=sys.stderr)
    names = (f"refs/remotes/origin/{branch}", f"refs/heads/{branch}")
    commits = [found, *[await repository.resolve(name) for name in names]]
    if commit := next(filter(None, commits), None):
        return commit
    raise InvalidInput(
        f"there is no branch `{branch}`",
        "run the action on pushes to the default branch with `contents: write`, which writes it, "
        "or name another branch in `--baseline-branch`",
    )
