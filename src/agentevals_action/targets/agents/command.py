"""The command of an agent: its variables, its working folder, its files and its error messages."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import last_lines
from agentevals_action.model.runner_variables import is_never_passed
from agentevals_action.model.validation.file_model import ListOf
from agentevals_action.system import process
from agentevals_action.system.child_environment import CHECKOUT_VARIABLE
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.isolation import ChildUser
from agentevals_action.system.workers import Program
from agentevals_action.targets.agents import placeholders
from agentevals_action.targets.base import ProviderContext, Request

#: The variables that name the folder that an agent works in; the second is AgentV's.
WORKSPACE_VARIABLES = ("WORKSPACE_PATH", "AGENTV_WORKSPACE_PATH")

#: The variable that names the suite's folder for a command that runs in a workspace.
SUITE_FOLDER = "AGENTEVALS_SUITE_DIR"

#: Fields of a target: the folder in which its command runs, and the variables that it sees.
WorkingFolder = Annotated[
    str | None,
    Field(
        description="Folder to run in, relative to the suite's; a leading / is the repository's "
        "root. By default the test's workspace, else the suite's folder."
    ),
]
VariableNames = Annotated[
    ListOf[str] | None,
    Field(
        description="Names of the variables to pass on, of those that the workflow's input `env` "
        "lets through; by default all."
    ),
]

_LAST_LINES, _LAST_CHARACTERS = 10, 2000


class CommandRunner:
    """Runs the commands of one target. `env` selects from the variables that the workflow passes
    on (None: all); AttemptError if it names another one."""

    def __init__(self, env: Sequence[str] | None, context: ProviderContext) -> None:
        self._environment = _select_variables(env, context)
        self.scratch, self._isolation = context.scratch, context.isolation
        self._judge_path = context.judge_path
        #: The variables that a failed command may need; empty if none were withheld.
        self.hint = ""
        if context.withheld:
            self.hint = (
                f"variables withheld from it: {', '.join(context.withheld)} (the workflow's input "
                "`env` lets them through)"
            )

    def locate(
        self, command: placeholders.Command, request: Request, cwd: str | None
    ) -> tuple[Path, placeholders.Command]:
        """The folder in which a command runs (its `cwd`, else the test's workspace, else the
        suite's folder), and the command for it. In a workspace, words of a list that are files of
        the suite's folder become absolute, unless the workspace contains the file; a script finds
        the suite's folder in a variable. A target that judges runs in the judges' tree."""
        declared = declared_folder(request, cwd)
        if request.is_judge:
            return self.judge_path(declared, request), command
        folder = request.workspace if request.workspace and not cwd else declared
        if folder == declared or isinstance(command, str):
            return folder, command

        def make_absolute(name: str) -> str:
            try:
                outside = not (folder / name).exists() and (declared / name).is_file()
            except (OSError, ValueError):  # not a path
                return name
            return str(declared / name) if outside else name

        # The program is on the PATH unless it has a slash.
        program, words = command[0], command[1:]
        program = make_absolute(program) if "/" in program else program
        return folder, (program, *map(make_absolute, words))

    def judge_path(self, path: Path, request: Request) -> Path:
        """A path in the tree of a request as it is for a target that judges."""
        return self._judge_path(path) if request.is_judge else path

    async def run(
        self,
        words: Sequence[str],
        request: Request,
        folder: Path,
        timeout: float,
        *,
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
        limit: int = process.OUTPUT_LIMIT,
        on_output: process.OnOutput | None = None,
    ) -> process.Completed:
        """Runs a command in a folder, `timeout` in seconds; OSError if it cannot be started."""
        return await process.run(
            words,
            cwd=folder,
            environment={**self._variables(request, request.workspace), **(variables or {})},
            timeout=timeout,
            stdin=stdin,
            limit=limit,
            on_output=on_output,
            user=self.user_of(request),
        )

    def program(
        self, words: Sequence[str], request: Request, folder: Path, workspace: Path | None
    ) -> Program:
        """The same command as a worker that answers requests; one with a `workspace` answers only
        those in it."""
        return Program(
            tuple(words),
            folder,
            tuple(sorted(self._variables(request, workspace).items())),
            self.user_of(request),
        )

    def user_of(self, request: Request) -> ChildUser | None:
        """The user that the command runs as for a request."""
        of_tree = self._isolation.judge_of if request.is_judge else self._isolation.user_of
        return of_tree(request.root)

    def _variables(self, request: Request, workspace: Path | None) -> dict[str, str]:
        own: dict[str, str] = {}
        if workspace is not None:
            own = dict.fromkeys(WORKSPACE_VARIABLES, str(workspace))
            own[SUITE_FOLDER] = str(request.suite_folder)
        if request.is_judge:
            own[CHECKOUT_VARIABLE] = str(request.root)
        return {**self._environment, **own}

    def has(self, variable: str) -> bool:
        """Whether the command sees a variable."""
        return variable in self._environment

    def finds(self, program: str, folder: Path) -> bool:
        """Whether a program exists, on the agent's PATH or as a path relative to a folder."""
        name = str(folder / program) if "/" in program else program
        return shutil.which(name, path=self._environment.get("PATH", os.defpath)) is not None

    def error(self, message: str, output: str, kind: str = "target") -> AttemptError:
        """The error of a command, with the last lines of its output and the variables that it may
        need."""
        lines = last_lines(output, _LAST_LINES, _LAST_CHARACTERS)
        return AttemptError(
            kind, "\n".join([f"{message}:", *lines]) if lines else message, self.hint
        )


def describe_end(returncode: int) -> str:
    """The end of a command in words."""
    if returncode < 0:
        return f"was ended by signal {-returncode}"
    return f"ended with exit code {returncode}"


def _select_variables(names: Sequence[str] | None, context: ProviderContext) -> Mapping[str, str]:
    allowed = {name: value for name, value in context.allowed.items() if not is_never_passed(name)}
    if names is None:
        return {**context.environment, **allowed}
    common = {name: value for name, value in context.environment.items() if name not in allowed}
    if refused := [name for name in names if name not in allowed and name not in common]:
        raise AttemptError(
            "configuration",
            f"the target's `env` names {', '.join(refused)}, which the workflow does not let "
            "through",
            "name it in the workflow's input `env`, and set it in its `env:`",
        )
    return {**common, **{name: allowed[name] for name in names if name in allowed}}


def declared_folder(request: Request, cwd: str | None) -> Path:
    """The folder to which the paths in a target refer: its `cwd`, else the suite's; AttemptError if
    it does not exist."""
    folder = request.suite_folder
    if cwd:
        try:
            folder = Folder(request.root, request.suite_folder).resolve(cwd)
        except ValueError as error:
            raise AttemptError("configuration", f"`cwd`: {error}") from None
    if not folder.is_dir():
        raise AttemptError("configuration", f"`cwd`: there is no folder {cwd!r}")
    return folder


def named_files(words: Sequence[str], cwd: str | None, folder: Folder) -> tuple[str, ...]:
    """The words of a command, or their parts after `=`, that are files of the repository: relative
    to its root. ValueError if `cwd` is not a folder of the repository."""
    start = folder.resolve(cwd) if cwd else folder.path
    found = []
    for name in (name for word in words for name in (word, word.rpartition("=")[2])):
        try:
            path = (start / name).resolve()
            if path.is_relative_to(folder.root) and path.is_file():
                found.append(path.relative_to(folder.root).as_posix())
        except (OSError, RuntimeError, ValueError):  # not a path: a script, a long text
            continue
    return tuple(dict.fromkeys(found))
