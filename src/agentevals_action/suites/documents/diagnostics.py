"""The errors and warnings that are collected while a file is read."""

from agentevals_action.formatting import cut
from agentevals_action.model.diagnostic import Diagnostic, Location

#: Errors after which no further test is read.
MAX_ERRORS = 1_000
_MAX_LINE = 1_000  # characters of a problem, or of an advice


class Unreadable(Exception):
    """A text that cannot be used at all; does not leave this package."""

    def __init__(self, *errors: Diagnostic) -> None:
        super().__init__(*errors)
        self.errors = errors


class DiagnosticCollector:
    """Errors, each once, and warnings, each once for a file with its first location. Both are in
    the order of their locations."""

    def __init__(self) -> None:
        self._errors: dict[Diagnostic, None] = {}
        self._warnings: dict[tuple[str, str], Diagnostic] = {}

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that make the file unusable."""
        return tuple(sorted(self._errors, key=_location))

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Probable mistakes."""
        return tuple(sorted(self._warnings.values(), key=_location))

    @property
    def error_count(self) -> int:
        """The number of errors."""
        return len(self._errors)

    def error_limit_reached(self, location: Location) -> bool:
        """Whether there are so many errors that reading stops at this location, which is noted."""
        if self.error_count < MAX_ERRORS:
            return False
        problem = f"there are {MAX_ERRORS:,} errors, and the tests from here on were not read"
        self.error(location, problem, "correct those first")
        return True

    def error(self, location: Location, problem: str, advice: str = "") -> None:
        """Adds a diagnostic that makes the file unusable."""
        self._errors[Diagnostic(location, _line(problem), _line(advice))] = None

    def warn(self, location: Location, problem: str, advice: str = "") -> None:
        """Adds a probable mistake."""
        self._add_warning(Diagnostic(location, _line(problem), _line(advice)))

    def unreadable(self, error: Unreadable) -> None:
        """Adds the errors of a text that cannot be used."""
        self._errors |= dict.fromkeys(error.errors)

    def add(self, other: "DiagnosticCollector") -> None:
        """Adds what another reading found."""
        self._errors |= other._errors
        for warning in other._warnings.values():
            self._add_warning(warning)

    def _add_warning(self, warning: Diagnostic) -> None:
        key = (warning.location.path, warning.problem)
        previous = self._warnings.get(key)
        if previous is None or warning.location < previous.location:
            self._warnings[key] = warning


def _location(diagnostic: Diagnostic) -> Location:
    return diagnostic.location


def _line(text: str) -> str:
    """One printable line, whatever a file calls its tests and types."""
    text = cut(text, _MAX_LINE)
    if text.isprintable():
        return text
    line = " ".join(text.split())
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in line)
