"""Files that a suite names, locations in files, and errors and warnings about them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.system.files.paths import Folder


@dataclass(frozen=True, order=True)
class Location:
    """A position in a file: `path` relative to the repository, `line` and `column` from 1."""

    path: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"

    @classmethod
    def of_byte(cls, path: str, data: bytes, index: int, line: int = 1) -> "Location":
        """The location of a byte of a UTF-8 text that begins on a line of a file."""
        start = data.rfind(b"\n", 0, index) + 1
        column = len(data[start:index].decode("utf-8", "replace")) + 1
        return cls(path, line + data.count(b"\n", 0, index), column)


@dataclass(frozen=True, order=True)
class Diagnostic:
    """An error or a warning with its location; `str()` is the line that a user reads."""

    location: Location
    problem: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"

    @property
    def message(self) -> str:
        """The problem and the advice."""
        return "; ".join(filter(None, (self.problem, self.advice)))

    def entry(self) -> dict[str, Any]:
        """The JSON object of the diagnostic, with `path`, `line` and `column` of its location."""
        return {**vars(self.location), "problem": self.problem, "advice": self.advice}


def missing_program(location: Location, owner: str, path: Path, root: Path) -> Diagnostic:
    """The error of a judge or a target (`owner`) in the repository at `root` that runs a file which
    does not exist."""
    shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else path
    advice = "correct the path, or `cwd`, where it starts (`/` is the repository's root); "
    advice += "what is built needs the input `prepare`"
    return Diagnostic(location, f"{owner} runs {shown}, which does not exist", advice)


#: Roles of files that ask or grade, and roles of files that do if they are in the suite's folder.
_OF_SUITE = frozenset(
    {"suite", "sidecar", "test file", "targets file", "prompt", "JSON schema", "judge script"}
    | {"evals of the skill", "fixture"}
    | {"judge's command", "workspace", "runner", "configuration of the runner"}
)
_IN_FOLDER = frozenset(
    {"file", "image", "named file", "judge's results", "target's results", "tool file"}
    | {f"workspace {part}" for part in ("hook", "repository", "template")}
)


@dataclass(frozen=True)
class NamedFile:
    """A file that a suite names: `path` relative to the repository (POSIX), `role` in words
    (`prompt`, `judge script`, `test file`).

    If a program imports the file, `importers` are the paths of the files that lead to it, the
    program's own file first."""

    path: str
    role: str
    importers: tuple[str, ...] = ()

    def belongs_to(self, suite: str) -> bool:
        """Whether the file is known to be a part of the suite with this path, and of no agent. A
        file of an agent, or that it imports, may also be used by the agent of another suite."""
        folder = PurePosixPath(suite).parent
        is_inside = folder.name != "" and PurePosixPath(self.path).is_relative_to(folder)
        if self.importers:
            return is_inside and self.role in _OF_SUITE
        return self.role in _OF_SUITE or (is_inside and self.role in _IN_FOLDER)


def files_of_program(
    own: Iterable[Path], role: str, words: Sequence[str], start: Path, folder: Folder
) -> tuple[NamedFile, ...]:
    """The `own` files of a program (absolute), and the files of the repository that it imports; its
    command is `words`, and runs in `start`."""
    own = tuple(dict.fromkeys(own))
    return tuple(
        NamedFile(folder.relative(path), role, tuple(map(folder.relative, importers)))
        for files in (dict.fromkeys(own, ()), folder.imports(own, words, start))
        for path, importers in files.items()
    )
