"""Where a thing stands in a file, and what is wrong with it there."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file: `path` relative to the repository (POSIX), `line` and `column` from 1."""

    path: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, order=True)
class Diagnostic:
    """One thing wrong with a suite or targets file; `str()` is the line that a user reads."""

    location: Location
    problem: str
    advice: str = ""

    def __str__(self) -> str:
        return (
            f"{self.location}: {self.problem}; {self.advice}"
            if self.advice
            else f"{self.location}: {self.problem}"
        )
