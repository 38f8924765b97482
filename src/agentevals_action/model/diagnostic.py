"""Locations in files, and errors and warnings about them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class Location:
    """A position in a file: `path` relative to the repository, `line` and `column` from 1."""

    path: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, order=True)
class Diagnostic:
    """An error or a warning with its location; `str()` is the line that a user reads."""

    location: Location
    problem: str
    advice: str = ""

    def __str__(self) -> str:
        return (
            f"{self.location}: {self.problem}; {self.advice}"
            if self.advice
            else f"{self.location}: {self.problem}"
        )

    def entry(self) -> dict[str, Any]:
        """The JSON object of the diagnostic, with `path`, `line` and `column` of its location."""
        return {**vars(self.location), "problem": self.problem, "advice": self.advice}
