"""Git for workspaces: without credentials, with our configuration only, and without hooks or
programs of a repository."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.system import process
from agentevals_action.system.isolation import ChildUser
from agentevals_action.system.program import Program

#: Time limits in seconds: for commands on local files, and for commands that may fetch.
LOCAL_SECONDS, NETWORK_SECONDS = 120.0, 600.0

#: A file, because the git that git starts at the other end of a local clone ignores variables.
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
    """Runs git with the environment of child processes, as their `user`: an agent may have filled
    the repositories that it reads. `folder` holds the configuration."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], user: ChildUser | None = None
    ) -> None:
        self._config, self.user = folder / "gitconfig", user
        kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
        self._environment = kept | {
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(self._config),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            "GIT_NO_LAZY_FETCH": "1",
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
        """Runs git. Raises AttemptError of kind `workspace` for an exit code that is not in `codes`
        and after `timeout` seconds."""
        if not self._config.exists():
            self._config.parent.mkdir(parents=True, exist_ok=True)
            self._config.write_text(_CONFIG, encoding="utf-8")
        words = (word for word in arguments if not word.startswith("-") and "=" not in word)
        return await process.run_checked(
            f"`git {next(words, '')}`",
            Program(("git", *arguments), cwd, self._environment | dict(variables or {}), self.user),
            kind="workspace",
            timeout=timeout,
            codes=codes,
            stdin=stdin,
            complete=False,
        )

    async def find(self, *arguments: str, cwd: Path) -> str | None:
        """The one line of git's answer, None without an answer."""
        with contextlib.suppress(AttemptError):
            return (await self.run(*arguments, cwd=cwd)).stdout.strip() or None
        return None
