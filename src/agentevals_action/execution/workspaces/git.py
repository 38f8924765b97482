"""Git for workspaces: no credentials, no configuration but ours, nothing of a repository's own is
run."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.system import process

#: Seconds for what works on local files, and for what may fetch.
LOCAL_SECONDS, NETWORK_SECONDS = 120.0, 600.0

#: In a file and not in variables: a git that git starts for itself (at the other end of a local
#: clone) sees it too.
_CONFIG = """\
[safe]
\tdirectory = *
[core]
\thooksPath = /dev/null
\tfsmonitor = false
\tfsync = none
[gc]
\tauto = 0
[maintenance]
\tauto = false
[credential]
\thelper =
[protocol]
\tallow = never
[protocol "https"]
\tallow = always
[protocol "http"]
\tallow = always
[protocol "ssh"]
\tallow = always
[protocol "file"]
\tallow = always
[uploadpack]
\tallowAnySHA1InWant = true
[submodule]
\trecurse = false
[init]
\tdefaultBranch = main
"""


class Git:
    """Runs git with the environment of children; `folder` holds the configuration."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._config = folder / "gitconfig"
        self._environment = {
            name: value for name, value in environment.items() if not name.startswith("GIT_")
        }

    async def run(
        self,
        *arguments: str,
        cwd: Path,
        variables: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout: float = LOCAL_SECONDS,
        codes: tuple[int, ...] = (0,),
    ) -> process.Completed:
        """What git does; AttemptError of kind `workspace` when it ends with another code than
        these, or not in time (seconds)."""
        try:
            environment = {**self._surroundings(), **(variables or {})}
            done = await process.run(
                ("git", *arguments), cwd=cwd, environment=environment, timeout=timeout, stdin=stdin
            )
        except OSError as error:
            raise AttemptError(
                "workspace", f"git could not be run: {error}", "install git and put it on the PATH"
            ) from error
        command = next(
            (word for word in arguments if not word.startswith("-") and "=" not in word), "git"
        )
        if done.timed_out:
            raise AttemptError("workspace", f"`git {command}` took longer than {timeout:g} s")
        if done.returncode not in codes:
            raise AttemptError("workspace", f"`git {command}` failed: {_said(done.stderr)}")
        return done

    async def find(self, *arguments: str, cwd: Path) -> str | None:
        """The one line that git answers with, None when it has no answer."""
        with contextlib.suppress(AttemptError):
            return (await self.run(*arguments, cwd=cwd)).stdout.strip() or None
        return None

    def _surroundings(self) -> dict[str, str]:
        if not self._config.exists():
            self._config.parent.mkdir(parents=True, exist_ok=True)
            self._config.write_text(_CONFIG, encoding="utf-8")
        return self._environment | {
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(self._config),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            "GIT_NO_LAZY_FETCH": "1",
        }


def _said(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    return (telling or lines or ["it says nothing"])[-1].removeprefix("fatal: ")[:500]
