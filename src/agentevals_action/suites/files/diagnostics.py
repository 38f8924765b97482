"""What is found wrong with a file while it is read: faults and warnings, each at its place, and
what an entry refused in plain words."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from agentevals_action.entries.reading import AnEntry, read_entry
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.suites.files.positions import Map, locate
from agentevals_action.suites.files.validation_errors import MISSING, Refusal, Refused, dotted
from agentevals_action.system.paths import Folder


class Unreadable(Exception):
    """A text of which nothing can be used; never leaves this package."""

    def __init__(self, *errors: Diagnostic) -> None:
        super().__init__(*errors)
        self.errors = errors


#: Faults after which no further test is read, and the most of faults and of warnings that are kept:
#: what nobody will read through is not worth the memory.
ENOUGH, MOST_ERRORS, MOST_WARNINGS = 1_000, 20_000, 1_000


class Findings:
    """Faults and warnings gathered so far, each once, in the order in which they were found; of
    very many the first."""

    def __init__(self) -> None:
        self._errors: dict[Diagnostic, None] = {}
        self._unkept = 0
        self._left_out: dict[str, Diagnostic] = {}
        self._warnings: dict[Diagnostic, None] = {}
        self._told: set[tuple[str, str]] = set()
        self._first: dict[tuple[str, str], Diagnostic] = {}

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """What makes the file unusable."""
        return (
            *self._errors,
            *(self._left_out[kind] for kind in self._left_out if kind == "faults"),
        )

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is probably a mistake."""
        return (
            *self._warnings,
            *(self._left_out[kind] for kind in self._left_out if kind == "warnings"),
        )

    @property
    def has_enough_warnings(self) -> bool:
        """Whether a further warning is not kept any more."""
        return len(self._warnings) >= MOST_WARNINGS

    def __len__(self) -> int:
        return len(self._errors) + len(self._warnings)

    @property
    def error_count(self) -> int:
        """How many faults there are so far, those that are not kept included."""
        return len(self._errors) + self._unkept

    def are_enough(self, location: Location) -> bool:
        """Whether there are so many faults that what begins at this place is better not read; it is
        then told so."""
        if len(self._errors) < ENOUGH:
            return False
        self.error(
            location,
            f"there are {ENOUGH:,} faults by now, and the tests from here on were not read",
            "mend those first",
        )
        return True

    def error(self, location: Location, problem: str, advice: str = "") -> None:
        """Notes what makes the file unusable."""
        self._error(Diagnostic(location, _line(problem), _line(advice)))

    def _error(self, diagnostic: Diagnostic) -> None:
        if len(self._errors) < MOST_ERRORS or diagnostic in self._errors:
            self._errors[diagnostic] = None
        else:
            self._unkept += 1
            self._leave_out("faults", diagnostic.location, MOST_ERRORS)

    def _leave_out(self, kind: str, location: Location, most: int) -> None:
        self._left_out.setdefault(
            kind,
            Diagnostic(
                location,
                f"there are more {kind} than the {most:,} that are told",
                "mend those first",
            ),
        )

    def warn(self, location: Location, problem: str, advice: str = "") -> None:
        """Notes what is probably a mistake."""
        self._warn(Diagnostic(location, _line(problem), _line(advice)))

    def warn_once(self, location: Location, problem: str, advice: str = "") -> None:
        """Notes what a file may do in a hundred places, of the first of them alone."""
        warning = Diagnostic(location, _line(problem), _line(advice))
        key = (location.path, warning.problem)
        noted = self._first.get(key)
        if noted is None or location < noted.location:
            # What stands first in a file is not always what is read first.
            if noted is not None:
                self._warnings.pop(noted, None)
            self._first[key] = warning
            self._warn(warning)

    def _warn(self, warning: Diagnostic) -> None:
        if self.has_enough_warnings and warning not in self._warnings:
            self._leave_out("warnings", warning.location, MOST_WARNINGS)
            return
        self._warnings[warning] = None
        self._told.add((warning.location.path, warning.problem))

    def has_told(self, warning: Diagnostic) -> bool:
        """Whether a warning in the same words, of the same file, was noted already, or no further
        one is kept."""
        return self.has_enough_warnings or (warning.location.path, warning.problem) in self._told

    def unreadable(self, error: Unreadable) -> None:
        """Takes over the faults of a text of which nothing can be used."""
        for diagnostic in error.errors:
            self._error(diagnostic)

    def add(self, other: "Findings") -> None:
        """Takes over what another reading found."""
        for diagnostic in other._errors:
            self._error(diagnostic)
        for warning in other._warnings:
            self._warn(warning)

    def add_row(self, other: "Findings") -> None:
        """Takes over what the reading of a row found; a warning that each row of a file would
        repeat is told of the first."""
        for diagnostic in other._errors:
            self._error(diagnostic)
        for warning in other._warnings:
            if not self.has_told(warning):
                self._warn(warning)

    def read(
        self,
        model: type[AnEntry],
        data: Map,
        what: str,
        folder: Folder | None = None,
        told: str = "",
    ) -> AnEntry | None:
        """The entry that `data` is; None where it is refused, which is noted as by `refused`."""
        try:
            return read_entry(model, data, folder)
        except Refused as error:
            self.refused(error, data, what, told)
            return None

    def refused(self, error: Refused, data: Map, what: str, told: str = "") -> None:
        """Notes what an entry refused about `data`; `what` names the object (`test`, `evaluator`),
        `told` a field already spoken of."""
        for refusal in error.refusals[:MOST_ERRORS]:
            if refusal.steps[:1] != (told,):
                self.error(*_sentence(refusal, data, what))


def _line(text: str) -> str:
    # A fault is one line that can be read, whatever a file calls its tests and types.
    if len(text) > _LINE:
        text = f"{text[: _LINE - 1]}…"
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else "\ufffd" for character in " ".join(text.split())
    )


_LINE = 1_000  # characters of what is said of a problem, or of what to do
_WORD = 100  # characters of a word that may be a misspelling of a known one


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that an unknown one was probably meant to be."""
    return _nearest(word, frozenset(known)) if len(word) <= _WORD else None


@lru_cache(maxsize=1024)
def _nearest(word: str, known: frozenset[str]) -> str | None:
    import difflib  # late: nobody misspells most of the time

    return next(iter(difflib.get_close_matches(word, sorted(known), 1, 0.6)), None)


def one_of(words: Iterable[str]) -> str:
    """Words as a choice in a sentence: `a`, `b` or `c`."""
    quoted = [f"`{word}`" for word in words]
    return " or ".join((", ".join(quoted[:-1]), quoted[-1])) if len(quoted) > 1 else "".join(quoted)


def kind(value: Any) -> str:
    """What a value is, in words, with the value when it is short."""
    if value is None:
        return "empty"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {shown(value)}" if value else "an empty text"
    return f"the number {shown(value)}"


def shown(value: Any) -> str:
    """A value as it appears in a sentence: on one line, quoted when a text, cut at 60
    characters."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


#: What to do about a value of which a check says no more than what is wrong.
_ADVICE = {
    "there is no file": "name a file that exists, from the folder of this one",
    "leaves the repository": "name a file of the repository",
}


def _sentence(refusal: Refusal, data: Map, what: str) -> tuple[Location, str, str]:
    steps, place = locate(data, refusal.steps)
    where = place or data.location
    if refusal.value is MISSING:
        steps = (*steps, refusal.steps[-1])
        return where, f"`{dotted(steps)}` is missing", f"every {_owner(steps, what)} needs it"
    name = f"`{dotted(steps)}`" if steps else f"this {what}"
    if refusal.said:
        problem, _, advice = refusal.said.partition("; ")
        return (
            where,
            f"{name}: {problem}",
            advice
            or next((said for sign, said in _ADVICE.items() if sign in problem), "correct it"),
        )
    return (
        where,
        f"{name} is {kind(refusal.value)}",
        f"write {' or '.join(refusal.expected) or 'something else'}",
    )


def _owner(path: tuple[str | int, ...], what: str) -> str:
    if len(path) == 1:
        return what
    return "item" if isinstance(path[-2], int) else f"`{path[-2]}`"
