"""`demo`: a review of a prepared repository, without a key and without a network."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import click

from agentevals_action import templating
from agentevals_action.cli.commands.review import Form, review_folder
from agentevals_action.cli.options import markdown_option
from agentevals_action.errors import AttemptError, ExitCode, GitError
from agentevals_action.system import process
from agentevals_action.system.program import Program

_TIME_OUT = 60.0  # seconds
#: The inputs in the workflow of the demo.
_INPUTS = {"INPUT_JUDGE-FLOOR": "specificity:0.7"}


@click.command("demo")
@markdown_option
async def command(as_markdown: bool) -> int:
    """Review a prepared pull request, without a key and without a network."""
    folder = Path(tempfile.mkdtemp(prefix="agentevals-demo-")).resolve()
    await _create_repository(folder)
    print("A pull request makes a support agent friendlier. Its review:", file=sys.stderr)
    form: Form = "markdown" if as_markdown else "screen"
    exit_code = await review_folder(folder, "main", _INPUTS, os.environ, form)
    outcome = "blocked" if exit_code else "not blocked"
    print(
        f"The merge is {outcome} (exit code {exit_code}). "
        "Comment: agentevals-action demo --markdown",
        file=sys.stderr,
    )
    return ExitCode.PASSED


async def _create_repository(folder: Path) -> None:
    """Creates a repository whose `main` is the base and whose current branch is the change."""
    steps = templating.packaged_folder("examples") / "demo"
    shutil.copytree(steps / "base", folder, dirs_exist_ok=True)
    await _git(folder, "init", "--quiet", "--initial-branch=main")
    await _commit(folder, "The support agent and its suites")
    await _git(folder, "checkout", "--quiet", "-b", "friendlier-answers")
    await _git(folder, "apply", str(steps / "red.patch"))
    await _commit(folder, "Friendlier answers")


async def _commit(folder: Path, message: str) -> None:
    await _git(folder, "add", "--all")
    await _git(folder, "commit", "--quiet", "--message", message)


async def _git(folder: Path, *arguments: str) -> None:
    """Runs git without the user's configuration, which may sign commits or run hooks."""
    environment = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    environment |= {
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C",
    }
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "demo", f"GIT_{role}_EMAIL": "demo@example.invalid"}
    program = Program(("git", *arguments), folder, environment)
    try:
        await process.run_checked(
            f"`git {arguments[0]}`", program, kind="configuration", timeout=_TIME_OUT
        )
    except AttemptError as error:
        raise GitError(str(error), error.hint or "check the folder that it names") from error
