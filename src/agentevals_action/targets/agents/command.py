"""A command that is an agent: which variables it sees, where it runs, and what is said of it when
it fails."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agentevals_action.errors import AttemptError
from agentevals_action.model.file_model import ListOf
from agentevals_action.model.runner_variables import is_never_passed
from agentevals_action.system import process
from agentevals_action.system.paths import Folder
from agentevals_action.targets.agents import placeholders
from agentevals_action.targets.base import ProviderContext, Request

#: What tells an agent the folder that it is to work in; the second is AgentV's.
WORKSPACE_VARIABLES = ("WORKSPACE_PATH", "AGENTV_WORKSPACE_PATH")

#: The fields of a target that say where its command runs and which variables it sees.
Place = Annotated[
    str | None,
    Field(
        description="Folder to run in, relative to the suite's; a leading / is the repository's root. By default the test's workspace, "
        "else the suite's folder."
    ),
]
Names = Annotated[
    ListOf[str] | None,
    Field(
        description="Names of the variables to pass on, of those that the workflow's input `env` lets through; by default all."
    ),
]

_LAST_LINES, _LAST_CHARACTERS = 10, 2000


class Runner:
    """Runs the commands of one target. `env` are the names of the variables that it is given of
    those that the workflow lets through, all of them when None; AttemptError when one is not let
    through."""

    def __init__(self, env: Sequence[str] | None, surroundings: ProviderContext) -> None:
        self._environment = environment(env, surroundings)
        self._withheld = surroundings.withheld
        self.scratch = surroundings.scratch

    async def run(
        self,
        words: Sequence[str],
        request: Request,
        place: Path,
        timeout: float,
        *,
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
        limit: int = process.OUTPUT_LIMIT,
    ) -> process.Completed:
        """Runs a command in a folder, `timeout` in seconds; OSError when it cannot be started."""
        workspace = (
            dict.fromkeys(WORKSPACE_VARIABLES, str(request.workspace)) if request.workspace else {}
        )
        seen = {**self._environment, **workspace, **(variables or {})}
        return await process.run(
            words, cwd=place, environment=seen, timeout=timeout, stdin=stdin, limit=limit
        )

    def finds(self, program: str, place: Path) -> bool:
        """Whether a program is there to be run, on the agent's own PATH or as a path seen from a
        folder."""
        name = str(place / program) if "/" in program else program
        return shutil.which(name, path=self._environment.get("PATH", os.defpath)) is not None

    def failed(self, message: str, said: str, kind: str = "target") -> AttemptError:
        """The error of a command, with the last lines that it wrote and what may have been
        missing."""
        return AttemptError(kind, told(message, said), self.hint())

    def hint(self) -> str:
        """What a command that failed may have lacked; empty when nothing was withheld."""
        if not self._withheld:
            return ""
        return f"variables withheld from it: {', '.join(self._withheld)} (the workflow's input `env` lets them through)"


def told(message: str, said: str) -> str:
    """A sentence with the last lines that a command wrote under it."""
    lines = said.strip()[-_LAST_CHARACTERS:].splitlines()[-_LAST_LINES:]
    return "\n".join([f"{message}:", *lines]) if lines else message


def ended(returncode: int) -> str:
    """How a command ended, in words."""
    return (
        f"ended with exit code {returncode}"
        if returncode >= 0
        else f"was ended by signal {-returncode}"
    )


def environment(names: Sequence[str] | None, surroundings: ProviderContext) -> Mapping[str, str]:
    """The child's variables: all that the workflow lets through, or of those the ones that the
    target names."""
    allowed = {
        name: value for name, value in surroundings.allowed.items() if not is_never_passed(name)
    }
    if names is None:
        return {**surroundings.environment, **allowed}
    common = {
        name: value for name, value in surroundings.environment.items() if name not in allowed
    }
    if refused := [name for name in names if name not in allowed and name not in common]:
        raise AttemptError(
            "configuration",
            f"the target's `env` names {', '.join(refused)}, which the workflow does not let through",
            "name it in the workflow's input `env`, and set it in its `env:`",
        )
    return {**common, **{name: allowed[name] for name in names if name in allowed}}


def home(request: Request, cwd: str | None) -> Path:
    """The folder that a target's words are written for: its `cwd`, else the suite's; AttemptError
    when there is no such folder."""
    try:
        folder = (
            Folder(request.root, request.suite_folder).resolve(cwd) if cwd else request.suite_folder
        )
    except ValueError as error:
        raise AttemptError("configuration", f"`cwd`: {error}") from None
    if not folder.is_dir():
        raise AttemptError("configuration", f"`cwd`: there is no folder {cwd!r}")
    return folder


def place(request: Request, cwd: str | None) -> Path:
    """The folder that an agent runs in: its `cwd`, else the test's workspace, else the suite's
    folder."""
    return request.workspace if request.workspace and not cwd else home(request, cwd)


def files(command: Sequence[str], place: Path, root: Path) -> tuple[str, ...]:
    """Words of a command, or what they say after `=`, that are files of the repository: relative to
    it, as seen from a folder."""
    named = (
        _file(place, word, root) for word in command for word in (word, word.rpartition("=")[2])
    )
    return tuple(dict.fromkeys(path for path in named if path))


def _file(place: Path, word: str, root: Path) -> str | None:
    try:
        path = (place / word).resolve()
        return (
            path.relative_to(root).as_posix()
            if path.is_relative_to(root) and path.is_file()
            else None
        )
    except (OSError, RuntimeError, ValueError):  # a word that is no path: a script, a long text
        return None


def at(
    command: str | Sequence[str], request: Request, cwd: str | None
) -> tuple[Path, str | Sequence[str]]:
    """Where a command runs, and the command as it is there: the files that it names are made
    absolute when it runs in a workspace, but for those that the workspace has itself."""
    folder, written_for = place(request, cwd), home(request, cwd)
    if folder == written_for:
        return folder, command

    def anchored(name: str) -> str:
        try:
            elsewhere = not (folder / name).exists() and (written_for / name).is_file()
        except (OSError, ValueError):  # a word that is no path
            return name
        return str(written_for / name) if elsewhere else name

    return folder, placeholders.rename_files(command, anchored)
