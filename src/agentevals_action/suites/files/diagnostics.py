"""The errors and warnings that are collected while a file is read."""

import difflib
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeVar

from pydantic import ValidationError

from agentevals_action.formatting import cut
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.validation.file_model import FileModel
from agentevals_action.suites.files.positions import Map
from agentevals_action.suites.files.validation_errors import validation_errors
from agentevals_action.system.files.paths import Folder

AModel = TypeVar("AModel", bound=FileModel)

#: Errors after which no further test is read.
ENOUGH = 1_000
_LINE = 1_000  # characters of a problem, or of an advice
_WORD = 100  # characters of a word that may be a misspelling of a known one


class Unreadable(Exception):
    """A text that cannot be used at all; does not leave this package."""

    def __init__(self, *errors: Diagnostic) -> None:
        super().__init__(*errors)
        self.errors = errors


class Findings:
    """Errors and warnings, each once, in the order in which they were found."""

    def __init__(self) -> None:
        self._errors: dict[Diagnostic, None] = {}
        self._warnings: dict[Diagnostic, None] = {}
        self._first: dict[tuple[str, str], Diagnostic] = {}

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that make the file unusable."""
        return tuple(self._errors)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Probable mistakes."""
        return tuple(self._warnings)

    @property
    def error_count(self) -> int:
        """The number of errors."""
        return len(self._errors)

    def are_enough(self, location: Location) -> bool:
        """Whether there are so many errors that reading stops at this location, which is noted."""
        if self.error_count < ENOUGH:
            return False
        problem = f"there are {ENOUGH:,} errors, and the tests from here on were not read"
        self.error(location, problem, "correct those first")
        return True

    def error(self, location: Location, problem: str, advice: str = "") -> None:
        """Adds a diagnostic that makes the file unusable."""
        self._add_error(Diagnostic(location, _line(problem), _line(advice)))

    def warn(self, location: Location, problem: str, advice: str = "") -> None:
        """Adds a probable mistake."""
        self._add_warning(Diagnostic(location, _line(problem), _line(advice)))

    def warn_once(self, location: Location, problem: str, advice: str = "") -> None:
        """Adds a warning that a file may repeat in a hundred locations, with the first of them."""
        self._add_first(Diagnostic(location, _line(problem), _line(advice)))

    def _add_error(self, error: Diagnostic) -> None:
        self._errors[error] = None

    def _add_first(self, warning: Diagnostic) -> None:
        key = (warning.location.path, warning.problem)
        known = self._first.get(key)
        if known is None or warning.location < known.location:
            # The first in a file is not always read first.
            if known is not None:
                self._warnings.pop(known, None)
            self._first[key] = warning
            self._add_warning(warning)

    def _add_warning(self, warning: Diagnostic) -> None:
        self._warnings[warning] = None

    def unreadable(self, error: Unreadable) -> None:
        """Adds the errors of a text that cannot be used."""
        for diagnostic in error.errors:
            self._add_error(diagnostic)

    def add(self, other: "Findings", *, once: bool = False) -> None:
        """Adds what another reading found; with `once`, a warning that each row of a file repeats
        is added for the first row only."""
        for error in other._errors:
            self._add_error(error)
        for warning in other._warnings:
            if once:
                self._add_first(warning)
            else:
                self._add_warning(warning)

    def read(
        self,
        model: type[AModel],
        data: Map,
        what: str,
        folder: Folder | None = None,
        skipped: str = "",
    ) -> AModel | None:
        """The model of `data`; None where it is invalid, and its errors are added. `what` names the
        object (`test`, `evaluator`), `skipped` a field whose errors are already known."""
        try:
            return model.model_validate(data, context=folder)
        except ValidationError as error:
            self.invalid(error, data, what, skipped)
            return None

    def invalid(self, error: ValidationError, data: Map, what: str, skipped: str = "") -> None:
        """Adds the errors of a model, as `read` does."""
        for location, problem, advice in validation_errors(error, data, what, skipped):
            self.error(location, problem, advice)


def _line(text: str) -> str:
    """One printable line, whatever a file calls its tests and types."""
    text = cut(text, _LINE)
    if text.isprintable():
        return text
    line = " ".join(text.split())
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in line)


def nearest(word: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """The known word that an unknown one probably means: their similarity is `least` (0-1)."""
    return _nearest(word, frozenset(known), least) if len(word) <= _WORD else None


@lru_cache(maxsize=1024)
def _nearest(word: str, known: frozenset[str], least: float) -> str | None:
    return next(iter(difflib.get_close_matches(word, sorted(known), 1, least)), None)


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """The advice for an unknown word: the known one that it probably means, if any."""
    meant = nearest(word, known)
    return f"did you mean `{meant}`?" if meant else otherwise
