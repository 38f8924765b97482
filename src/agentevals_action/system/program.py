"""A program that runs as a child process, and the reasons why it cannot start: a missing program or
script, a mode, an interpreter."""

import errno
import itertools
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from agentevals_action.errors import AttemptError
from agentevals_action.escaping import uncoloured
from agentevals_action.formatting import cut_middle
from agentevals_action.system.isolation import ChildUser

_SCRIPT = re.compile(
    r"\.(py|js|mjs|cjs|ts|mts|cts|tsx|sh|bash|rb|pl|php|lua|r|jl|ps1)$", re.IGNORECASE
)
_NOT_A_PATH = re.compile(r"[\s{$*]|^-|://")
#: Programs whose arguments are paths in another file system.
_ELSEWHERE = frozenset({"docker", "podman", "kubectl", "ssh"})
#: Programs that start a container of an image, and their options: those without a value, and those
#: of a mount. A source of a mount that is not a folder of the tree is a volume.
_ENGINES = frozenset({"docker", "podman", "nerdctl"})
_FLAG = re.compile(
    r"-[dhiPqt]+|--(detach|init|interactive|no-healthcheck|privileged|quiet|read-only|rm|tty)|--.*=.*"
)
_MOUNT = re.compile(r"(-v|--volume|--mount)\0?=?(type=bind,)?(source=|src=)?\"?[.$`]")
#: An image that is always the same, or whose name is computed.
_OWN_IMAGE = re.compile(r"@sha256:|[$`]")
#: Words after which an interpreter takes code, or a module by its name.
_NO_SCRIPT = frozenset({"-c", "-e", "--eval", "-m"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
#: The option after which a shell takes a script, also with others: `-c`, `-lc`, `-ceu`.
_SHELL_SCRIPT = re.compile(r"-[a-z]*c[a-z]*")
#: The lines of a child's output that its error quotes, and the characters of each part.
_FIRST_LINES, _LAST_LINES, _CHARACTERS = 6, 8, 1_000


@dataclass(frozen=True)
class Program:
    """What a child runs, in a folder and with nothing but this environment. It runs as `user`, or
    as the user of this process. `hint` is the advice if it fails."""

    words: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(hash=False)
    user: ChildUser | None = None
    hint: str = ""

    def start_error(self, kind: str, subject: str, error: OSError) -> AttemptError:
        """The error of a program that could not be started: why, and what to do if that is
        known."""
        reason, hint = _describe_start(error, self.words[0], self.folder)
        return AttemptError(kind, f"{subject} cannot be started: {reason}", hint)


def child_error(kind: str, problem: str, output: str, hint: str) -> AttemptError:
    """The error of a child, with the first and the last lines of its output."""
    if lines := cut_middle(uncoloured(output), _FIRST_LINES, _LAST_LINES, _CHARACTERS):
        problem += f":\n{lines}" if "\n" in lines else f": {lines}"
    return AttemptError(kind, problem, hint)


def all_words(words: Sequence[str]) -> Sequence[str]:
    """The words of a command, and of the script that it gives to a shell (`sh -c "…"`)."""
    collected = list(words)
    if any(PurePath(word).name in _SHELLS for word in words):
        for option, script in itertools.pairwise(words):
            if _SHELL_SCRIPT.fullmatch(option):
                with suppress(ValueError):  # quotes that only a shell understands
                    collected += shlex.split(script, comments=True)
    return collected


def shared_image(words: Sequence[str]) -> str:
    """The image of a command that starts a container without a folder of the tree: what `prepare`
    of one side builds under this name, the other side would run. Empty if there is none."""
    for engine, word in enumerate(words):
        if PurePath(word).name not in _ENGINES or "run" not in words[engine + 1 : engine + 2]:
            continue
        arguments = iter(words[engine + 2 :])
        for argument in arguments:
            if not argument.startswith("-"):
                return "" if _OWN_IMAGE.search(argument) else argument
            value = "" if _FLAG.fullmatch(argument) else next(arguments, "")
            if _MOUNT.match(f"{argument}\0{value}"):
                break
    return ""


def missing_script(words: Sequence[str], folder: Path) -> Path | None:
    """The program or the script of a command that is meant as a path and does not exist, seen from
    the folder in which it runs; None if there is none.

    Only the first script counts: others may be files that it writes. Programs on PATH are not
    looked for, nor what runs in a container or on another machine."""
    program, *arguments = words
    meant = None
    if "/" in program and not _NOT_A_PATH.search(program):
        meant = program
    elif program not in _ELSEWHERE:
        leading = itertools.takewhile(lambda word: word not in _NO_SCRIPT, arguments)
        paths = (word for word in leading if not _NOT_A_PATH.search(word))
        meant = next((word for word in paths if _SCRIPT.search(word)), None)
    if meant is None or (folder / meant).exists():
        return None
    return Path(os.path.normpath(folder / meant))


def _describe_start(error: OSError, program: str, folder: Path) -> tuple[str, str]:
    reason = (error.strerror or str(error), "")
    if error.errno not in (errno.ENOENT, errno.EACCES, errno.ENOEXEC):
        return reason
    if not folder.is_dir():
        return f"there is no folder {folder}", "correct `cwd`, or create the folder"
    if "/" not in program and error.errno == errno.ENOENT:
        advice = "install it in the input `setup`, or on a runner in a step before this one"
        return f"there is no command {program!r}", advice
    return reason if "/" not in program else _describe_file(folder, program) or reason


def _describe_file(folder: Path, program: str) -> tuple[str, str] | None:
    path = folder / program
    if not path.exists():
        advice = "correct the command, or set `cwd` (`/` is the repository's root)"
        return f"there is no {program!r} in {folder}", advice
    if not os.access(path, os.X_OK):
        advice = "make it executable (`chmod +x`, and commit that), or name its interpreter first"
        return f"{program!r} is not executable", advice
    if not path.is_file():
        return None
    advice = "begin it with `#!` and the path of an interpreter, with line ends of Unix (LF)"
    return f"the first line of {program!r} names no interpreter that exists", advice
