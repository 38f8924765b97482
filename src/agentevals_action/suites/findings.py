"""What is found wrong with a file while it is read: faults and warnings, each at its place, and pydantic's errors in plain words."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agentevals_action.model.fault import Fault, Location
from agentevals_action.suites.positions import Map, locate


class Unreadable(Exception):
    """A text of which nothing can be used; never leaves this package."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.faults = faults


#: Faults after which no further test is read, and the most of faults and of warnings that are kept: what nobody will read through is
#: not worth the memory.
ENOUGH, MOST_FAULTS, MOST_WARNINGS = 1_000, 20_000, 1_000


class Findings:
    """Faults and warnings gathered so far, each once, in the order in which they were found; of very many the first."""

    def __init__(self) -> None:
        self._faults: dict[Fault, None] = {}
        self._unkept = 0
        self._left_out: dict[str, Fault] = {}
        self._warnings: dict[Fault, None] = {}
        self._told: set[tuple[str, str]] = set()
        self._first: dict[tuple[str, str], Fault] = {}

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What makes the file unusable."""
        return (*self._faults, *(self._left_out[kind] for kind in self._left_out if kind == "faults"))

    @property
    def warnings(self) -> tuple[Fault, ...]:
        """What is probably a mistake."""
        return (*self._warnings, *(self._left_out[kind] for kind in self._left_out if kind == "warnings"))

    @property
    def has_enough_warnings(self) -> bool:
        """Whether a further warning is not kept any more."""
        return len(self._warnings) >= MOST_WARNINGS

    def __len__(self) -> int:
        return len(self._faults) + len(self._warnings)

    @property
    def fault_count(self) -> int:
        """How many faults there are so far, those that are not kept included."""
        return len(self._faults) + self._unkept

    def are_enough(self, location: Location) -> bool:
        """Whether there are so many faults that what begins at this place is better not read; it is then told so."""
        if len(self._faults) < ENOUGH:
            return False
        self.fault(location, f"there are {ENOUGH:,} faults by now, and the tests from here on were not read", "mend those first")
        return True

    def fault(self, location: Location, problem: str, advice: str = "") -> None:
        """Notes what makes the file unusable."""
        self._fault(Fault(location, _line(problem), _line(advice)))

    def _fault(self, fault: Fault) -> None:
        if len(self._faults) < MOST_FAULTS or fault in self._faults:
            self._faults[fault] = None
        else:
            self._unkept += 1
            self._leave_out("faults", fault.location, MOST_FAULTS)

    def _leave_out(self, kind: str, location: Location, most: int) -> None:
        self._left_out.setdefault(kind, Fault(location, f"there are more {kind} than the {most:,} that are told", "mend those first"))

    def warn(self, location: Location, problem: str, advice: str = "") -> None:
        """Notes what is probably a mistake."""
        self._warn(Fault(location, _line(problem), _line(advice)))

    def warn_once(self, location: Location, problem: str, advice: str = "") -> None:
        """Notes what a file may do in a hundred places, of the first of them alone."""
        warning = Fault(location, _line(problem), _line(advice))
        key = (location.path, warning.problem)
        noted = self._first.get(key)
        if noted is None or location < noted.location:
            # What stands first in a file is not always what is read first.
            if noted is not None:
                self._warnings.pop(noted, None)
            self._first[key] = warning
            self._warn(warning)

    def _warn(self, warning: Fault) -> None:
        if self.has_enough_warnings and warning not in self._warnings:
            self._leave_out("warnings", warning.location, MOST_WARNINGS)
            return
        self._warnings[warning] = None
        self._told.add((warning.location.path, warning.problem))

    def has_told(self, warning: Fault) -> bool:
        """Whether a warning in the same words, of the same file, was noted already, or no further one is kept."""
        return self.has_enough_warnings or (warning.location.path, warning.problem) in self._told

    def unreadable(self, error: Unreadable) -> None:
        """Takes over the faults of a text of which nothing can be used."""
        for fault in error.faults:
            self._fault(fault)

    def add(self, other: "Findings") -> None:
        """Takes over what another reading found."""
        for fault in other._faults:
            self._fault(fault)
        for warning in other._warnings:
            self._warn(warning)

    def add_row(self, other: "Findings") -> None:
        """Takes over what the reading of a row found; a warning that each row of a file would repeat is told of the first."""
        for fault in other._faults:
            self._fault(fault)
        for warning in other._warnings:
            if not self.has_told(warning):
                self._warn(warning)

    def invalid(self, error: ValidationError, data: Map, what: str, told: str = "") -> None:
        """Notes what a model refused about `data`; `what` names the object (`test`, `evaluator`), `told` a field already spoken of."""
        details = [detail for detail in error.errors(include_url=False)[:MOST_FAULTS] if detail["loc"][:1] != (told,)]
        for place, problem, advice in _sentences(details, data, what):
            self.fault(place, problem, advice)


def _line(text: str) -> str:
    # A fault is one line that can be read, whatever a file calls its tests and types.
    if len(text) > _LINE:
        text = f"{text[: _LINE - 1]}…"
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\ufffd" for character in " ".join(text.split()))


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
    """A value as it appears in a sentence: on one line, quoted when a text, cut at 60 characters."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "`true` or `false`",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "none_required": "",
}
#: What to do about an error of a validator that does not say so itself.
_ADVICE = {
    "there is no file": "name a file that exists, from the folder of this one",
    "leaves the repository": "name a file of the repository",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "a number that is {} or more"),
    "greater_than": ("gt", "a number over {}"),
    "less_than_equal": ("le", "a number that is {} or less"),
    "less_than": ("lt", "a number under {}"),
    "string_too_short": ("min_length", "a text of {} characters or more"),
    "string_too_long": ("max_length", "a text of at most {} characters"),
    "too_short": ("min_length", "{} items or more"),
    "too_long": ("max_length", "at most {} items"),
}


def _sentences(details: list[ErrorDetails], data: Map, what: str) -> list[tuple[Location, str, str]]:
    paths = [locate(data, detail["loc"]) for detail in details]
    led_further = {path[:length] for path, _ in paths for length in range(len(path))}
    grouped: dict[tuple[str | int, ...], list[tuple[ErrorDetails, Location]]] = {}
    for detail, (path, place) in zip(details, paths, strict=True):
        # A choice of types reports each branch: where one got further into the data, the shorter complaints are about the others.
        # A list whose items are wrong counts as too short.
        if (detail["type"] in _EXPECTED or detail["type"] == "too_short") and path in led_further:
            continue
        grouped.setdefault((*path, detail["loc"][-1]) if detail["type"] == "missing" else path, []).append((detail, place or data.location))
    return [(group[0][1], *_sentence(path, [detail for detail, _ in group], what)) for path, group in grouped.items()]


def _sentence(path: tuple[str | int, ...], details: list[ErrorDetails], what: str) -> tuple[str, str]:
    name = f"`{_dotted(path)}`" if path else f"this {what}"
    first = details[0]
    if first["type"] == "missing":
        return f"{name} is missing", f"every {_owner(path, what)} needs it"
    written = [_written(detail) for detail in details]
    if own := next((detail for detail in details if not _written(detail)[0]), None):
        text = str(own.get("ctx", {}).get("error", own["msg"]))
        problem, _, advice = text.partition("; ")
        return f"{name}: {problem}", advice or next((said for sign, said in _ADVICE.items() if sign in problem), "correct it")
    choices = list(dict.fromkeys(words for _, words in written if words))
    return f"{name} is {kind(first['input'])}", f"write {' or '.join(choices) or 'something else'}"


def _written(detail: ErrorDetails) -> tuple[bool, str]:
    # Whether the error is one of shape, and what should stand there instead.
    if detail["type"] in _EXPECTED:
        return True, _EXPECTED[detail["type"]]
    context = detail.get("ctx", {})
    if detail["type"] in _BOUNDS:
        key, words = _BOUNDS[detail["type"]]
        if context[key] == 1 and key == "min_length":
            return True, "a text that is not empty" if "string" in detail["type"] else "at least one item"
        return True, words.format(f"{context[key]:.15g}" if isinstance(context[key], float) else context[key])
    if detail["type"] == "literal_error":
        return True, str(context["expected"]).replace("'", "`")
    if detail["type"] == "string_pattern_mismatch":
        return True, f"a text that matches {context['pattern']}"
    return False, ""


def _dotted(path: tuple[str | int, ...]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _owner(path: tuple[str | int, ...], what: str) -> str:
    if len(path) == 1:
        return what
    return "item" if isinstance(path[-2], int) else f"`{path[-2]}`"
