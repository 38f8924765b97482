"""Locations in files, and errors and warnings about them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
    advice = "correct the path, or `cwd`, where it starts (`/` is the repository's root)"
    return Diagnostic(location, f"{owner} runs {shown}, which does not exist", advice)
