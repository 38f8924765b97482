"""`demo`: the whole job on a made repository, without a key and without a network."""

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agentevals_action import resources
from agentevals_action.cli import review
from agentevals_action.errors import ExitCode, GitError
from agentevals_action.system import process

_SECONDS = 60.0


def main(environ: Mapping[str, str]) -> int:
    """Makes a repository with a base and a head, reviews it, and says where everything is."""
    folder = Path(tempfile.mkdtemp(prefix="agentevals-demo-")).resolve()
    _make(folder, environ)
    print(
        f"A support agent, and a pull request to it, in {folder}\nThe comment that its reviewer would see:\n",
        file=sys.stderr,
        flush=True,
    )
    exit_code = review.main(environ, {}, folder, "main")
    print(
        f"\nThe merge is {'blocked' if exit_code else 'not blocked'}: as an action this would end with exit code {exit_code}.\n"
        f"The report is in {folder / 'agentevals-report'}. To see it again:\n"
        f"  cd {folder} && agentevals-action review --base main",
        file=sys.stderr,
    )
    return ExitCode.PASSED


def _make(folder: Path, environ: Mapping[str, str]) -> None:
    """A repository whose `main` is the demo's base and whose checked-out branch is its pull
    request."""
    steps = resources.folder("examples") / "demo"
    shutil.copytree(steps / "base", folder, dirs_exist_ok=True)
    (folder / ".gitignore").write_text("/agentevals-report/\n__pycache__/\n", encoding="utf-8")
    _git(folder, environ, "init", "--quiet", "--initial-branch=main")
    _commit(folder, environ, "The support agent and its suites")
    _git(folder, environ, "checkout", "--quiet", "-b", "friendlier-answers")
    shutil.copytree(steps / "head", folder, dirs_exist_ok=True)
    _commit(folder, environ, "Friendlier answers")


def _commit(folder: Path, environ: Mapping[str, str], message: str) -> None:
    _git(folder, environ, "add", "--all")
    _git(folder, environ, "commit", "--quiet", "--message", message)


def _git(folder: Path, environ: Mapping[str, str], *arguments: str) -> None:
    """Git with nobody's configuration: neither a signing key nor a hook of the user's has a part in
    a demo."""
    environment = {name: environ[name] for name in ("PATH", "TMPDIR") if name in environ}
    environment |= {
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "LC_ALL": "C",
    }
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": "demo", f"GIT_{who}_EMAIL": "demo@example.invalid"}
    try:
        done = process.call(
            ("git", *arguments), cwd=folder, environment=environment, timeout=_SECONDS
        )
    except OSError as error:
        raise GitError(
            f"`git {arguments[0]}` could not be run: {error}", "install git and put it on the PATH"
        ) from error
    if done.returncode:
        raise GitError(
            f"`git {arguments[0]}` failed: {done.stderr.decode('utf-8', 'replace').strip()}",
            "look at the folder it names",
        )
