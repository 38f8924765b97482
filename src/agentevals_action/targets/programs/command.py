"""Targets that are programs: their variables, their working folder, and how they are run."""

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from agentevals_action.errors import AttemptError
from agentevals_action.model.diagnostic import NamedFile, files_of_program
from agentevals_action.model.target import ProviderContext, Request, Target
from agentevals_action.system.child_environment import (
    CHECKOUT_VARIABLE,
    ChildContext,
    is_never_passed,
)
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.isolation import ChildUser
from agentevals_action.system.program import Program, all_words, child_error, missing_script
from agentevals_action.validation.file_model import ListOf

#: The variables that name the folder that an agent works in; the second is AgentV's.
WORKSPACE_VARIABLES = ("WORKSPACE_PATH", "AGENTV_WORKSPACE_PATH")
#: Where a program that finds skills may look for them.
SKILL_FOLDERS = (".claude/skills", ".agents/skills")
#: The variable that names the suite's folder for a command that runs in a workspace.
SUITE_FOLDER = "AGENTEVALS_SUITE_DIR"
_SHELL_OPERATOR = re.compile(r"[;&|$`\n]")


class CommandTarget(Target):
    """The common fields of targets that are programs."""

    runs_programs: ClassVar[bool] = True
    takes_tools: ClassVar[bool] = True

    cwd: str | None = Field(
        None,
        description="Folder to run in, relative to the suite's; a leading / is the repository's "
        "root. By default the test's workspace, else the suite's folder.",
    )
    env: ListOf[str] | None = Field(
        None,
        description="Names of the variables to pass on, of those that the workflow's input `env` "
        "lets through; by default all.",
    )

    def other_variables(self) -> Sequence[str]:
        """The names of `env`: the agent expects them."""
        return self.env or ()

    def files_among(self, command: str | Sequence[str], folder: Folder) -> tuple[NamedFile, ...]:
        """The words of a command, or their parts after `=`, that are files of the repository, and
        what these import."""
        words, start = self._words_and_folder(command, folder)
        words = all_words(words)
        files = folder.files_among(words, start)
        return files_of_program(files, "command", words, start, folder)

    def script_missing_in(self, command: str | Sequence[str], folder: Folder) -> Path | None:
        """The file that a command runs, if there is no such file; None for a script of `sh` that is
        more than one command."""
        if isinstance(command, str) and _SHELL_OPERATOR.search(command):
            return None
        words, start = self._words_and_folder(command, folder)
        return missing_script(words, start) if words else None

    def _words_and_folder(
        self, command: str | Sequence[str], folder: Folder
    ) -> tuple[Sequence[str], Path]:
        """The words of a command and the folder that their paths start from; no word if they are
        not known."""
        try:
            words = shlex.split(command, comments=True) if isinstance(command, str) else command
            return words, folder.resolve(self.cwd) if self.cwd else folder.path
        except ValueError:  # a folder with `${{ }}` in it, or quotes that only a shell understands
            return (), folder.path


class CommandLauncher:
    """Runs the programs of one target. AttemptError if its `env` names a variable that the workflow
    does not pass on."""

    def __init__(self, target: CommandTarget, context: ProviderContext) -> None:
        self._cwd, self._children = target.cwd, context.children
        self._judge_path = context.judge_path
        self.environment = _select_variables(target.env, context.children)
        self._scratch, self.hint = context.scratch, context.children.hint

    @contextmanager
    def call_folder(self) -> Iterator[Path]:
        """A folder for the files of one call, outside of the workspace."""
        with tempfile.TemporaryDirectory(
            prefix="agentevals-", dir=self._scratch, ignore_cleanup_errors=True
        ) as name:
            yield Path(name).resolve()

    def declared_folder(self, request: Request, cwd: str | None = None) -> Path:
        """The folder to which the paths in a target refer: `cwd`, else the target's own `cwd`, else
        the suite's folder; AttemptError if it does not exist."""
        name, folder = cwd or self._cwd, request.suite_folder
        if name:
            try:
                folder = Folder(request.root, request.suite_folder).resolve(name)
            except ValueError as error:
                raise AttemptError("configuration", f"`cwd`: {error}") from None
        if not folder.is_dir():
            root = "/ is the repository's root" if name and name.startswith("/") else ""
            raise AttemptError("configuration", f"`cwd`: there is no folder {name!r}", root)
        return folder

    def working_folder(self, request: Request) -> Path:
        """The folder in which the program runs: its `cwd`, else the test's workspace, else the
        suite's folder. A target that judges runs in the judges' tree."""
        declared = self.declared_folder(request)
        if request.is_judge:
            return self._judge_path(declared)
        return request.workspace if request.workspace and not self._cwd else declared

    def located(self, words: Sequence[str], request: Request) -> tuple[str, ...]:
        """A command for its working folder: in a workspace, words that are files of the suite's
        folder become absolute, unless the workspace has such a file."""
        declared, folder = self.declared_folder(request), self.working_folder(request)
        if folder == declared or request.is_judge:
            return tuple(words)

        def locate(name: str) -> str:
            try:
                outside = not (folder / name).exists() and (declared / name).is_file()
            except (OSError, ValueError):  # not a path
                return name
            return str(declared / name) if outside else name

        # The program is on the PATH unless it has a slash.
        program, *others = words
        return (locate(program) if "/" in program else program, *map(locate, others))

    def tree(self, request: Request) -> Path:
        """The checkout of a request, or that of the judges for a target that judges."""
        return self._judge_path(request.root) if request.is_judge else request.root

    def tool_variables(self, request: Request, folder: Path) -> dict[str, str]:
        """The variables by which the program of a call finds the tools and commands of its test.
        Writes the stubs of the commands into the folder for the files of the call, which is not yet
        given to the program's user."""
        access = request.access
        if access is None:
            return {}
        variables = access.variables
        if access.stubs:
            stubs = folder / "bin"
            stubs.mkdir()
            for name, text in access.stubs.items():
                (stubs / name).write_text(text, "utf-8")
                (stubs / name).chmod(0o700)
            path = self.environment.get("PATH", os.defpath)
            variables["PATH"] = f"{stubs}{os.pathsep}{path}"
        return variables

    def program(
        self,
        words: Sequence[str],
        request: Request,
        variables: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> Program:
        """A command in its working folder, or in another one, with more `variables`. It sees the
        workspace of the request; a worker of a request without one answers all requests."""
        own_variables = self._children.workspace(self.tree(request))
        if request.workspace is not None:
            own_variables |= dict.fromkeys(WORKSPACE_VARIABLES, str(request.workspace))
            own_variables[SUITE_FOLDER] = str(request.suite_folder)
        start = self.declared_folder(request)
        if request.is_judge:
            own_variables[CHECKOUT_VARIABLE] = str(request.root)
            start = self._judge_path(start)
        environment = {**self.environment, **own_variables, **(variables or {})}
        folder = folder or self.working_folder(request)
        program = Program(tuple(words), folder, environment, self.choose_user(request), self.hint)
        return self._children.with_packages(program, request.root, self.tree(request), start)

    def choose_user(self, request: Request) -> ChildUser | None:
        """The user that the command runs as for a request."""
        isolation = self._children.isolation
        of_tree = isolation.choose_judge_user if request.is_judge else isolation.choose_user
        return of_tree(request.root)

    def finds(self, program: str, folder: Path) -> bool:
        """Whether a program exists, on the agent's PATH or as a path relative to a folder."""
        name = str(folder / program) if "/" in program else program
        return shutil.which(name, path=self.environment.get("PATH", os.defpath)) is not None

    def error(self, problem: str, output: str, kind: str = "target") -> AttemptError:
        """The error of a command, with the first and the last lines of its output and the
        variables that it may need."""
        return child_error(kind, problem, output, self.hint)


def _select_variables(names: Sequence[str] | None, children: ChildContext) -> Mapping[str, str]:
    allowed = {name: value for name, value in children.allowed.items() if not is_never_passed(name)}
    if names is None:
        return {**children.environment, **allowed}
    common = {name: value for name, value in children.environment.items() if name not in allowed}
    if unset := [name for name in names if name in children.unset]:
        raise AttemptError(
            "configuration",
            f"the target's `env` names {', '.join(unset)}, which is not set in the environment",
            "set it there; a file `.env` only fills `${{ }}`",
        )
    if refused := [name for name in names if name not in allowed and name not in common]:
        raise AttemptError(
            "configuration",
            f"the target's `env` names {', '.join(refused)}, which the workflow does not let "
            "through",
            "name it in the input `env` (`--env`), and set it in the environment",
        )
    return {**common, **{name: allowed[name] for name in names if name in allowed}}
