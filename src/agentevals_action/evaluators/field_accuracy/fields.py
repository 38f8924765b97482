"""Pure: fields of JSON in an answer against those that are expected (specification, section 3)."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, Self

from msgspec import Meta
from msgspec.structs import replace

from agentevals_action.entries.entry import Aside, Checked, Entry, Seen, Written, checks
from agentevals_action.evaluators import patterns
from agentevals_action.evaluators.field_accuracy import dates
from agentevals_action.evaluators.judges.replies import UnreadableReply, find_object, read_json
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.json_values import MISSING, equal, look_up, read_path, shown, text_of
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import text_of as message_text
from agentevals_action.results.scoring import weighted_mean

Match = Literal["exact", "contains", "regex", "numeric_tolerance", "date"]
Aggregation = Literal["weighted_average", "minimum", "all_or_nothing"]

_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


def _is_path(text: str) -> str:
    read_path(text)
    return text


def _are_formats(formats: tuple[str, ...]) -> tuple[str, ...]:
    for text in formats:
        dates.read_format(text)
    return formats


def _belongs(value: Any, needed: Match, seen: Seen) -> Any:
    if value and seen.fields.get("match", needed) != needed:
        raise ValueError(
            f"it is for `match: {needed}`, and this field is compared otherwise; write that, or remove it"
        )
    return value


class Comparison(Entry):
    """One field that is compared. `location` is where its path stands in its file, where that is
    known."""

    path: Annotated[
        Annotated[str, Checked(_is_path)],
        Meta(
            description="Where the field is, in the answer and in `expected_output`: names and positions, as `items[0].name` or "
            "`items.0.name`."
        ),
    ]
    match: Annotated[
        Match,
        Meta(
            description="How it is compared: `exact`, `contains` (the answer's text or list has the expected value in it), `regex` (the "
            "expected value is the pattern), `numeric_tolerance`, `date` (the same instant, however it is written)."
        ),
    ] = "exact"
    required: Annotated[
        bool,
        Meta(description="When this field is missing from the answer, the evaluator scores 0."),
    ] = False
    weight: Annotated[
        float, Meta(ge=0, description="How much it counts in the weighted average, 0 or more.")
    ] = 1.0
    tolerance: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="For `numeric_tolerance`: how far the number may be from the expected one; 0 when missing."
        ),
    ] = None
    relative: Annotated[
        bool,
        Meta(
            description="For `numeric_tolerance`: the tolerance is a share of the expected number."
        ),
    ] = False
    formats: Annotated[
        Annotated[tuple[str, ...], Checked(_are_formats)] | None,
        Meta(
            description="For `date`: how dates may be written, the first that fits decides, as `DD-MMM-YYYY`, `MM/DD/YYYY` or `%d.%m.%Y`. "
            "What can be read in one way only, as ISO 8601, is read besides."
        ),
    ] = None

    location: Annotated[Location | None, Aside()] = None

    @checks("tolerance", "relative")
    @classmethod
    def _is_of_numbers(cls, value: Any, seen: Seen) -> Any:
        return _belongs(value, "numeric_tolerance", seen)

    @checks("formats")
    @classmethod
    def _is_of_dates(cls, value: Any, seen: Seen) -> Any:
        return _belongs(value, "date", seen)

    def completed(self, written: Written) -> Self:
        """With its place."""
        place = getattr(written.data, "value_location", None)
        return replace(self, location=place("path")) if place else self

    @property
    def steps(self) -> tuple[str, ...]:
        """The path, step by step."""
        return read_path(self.path)


def read_data(text: str, comparisons: Sequence[Comparison]) -> Any:
    """The JSON in a text: all of it, or the last object in it that has one of the fields, in code
    fences and prose or without.

    Where the fields are those of a list, the last list in code fences. UnreadableReply, which says
    why, when there is none."""
    try:
        return read_json(text)
    except UnreadableReply as error:
        failure = error
    firsts = dict.fromkeys(comparison.steps[0] for comparison in comparisons)
    if not all(first.isdigit() for first in firsts):
        return find_object(text, firsts)
    for fenced in reversed(_FENCED.findall(text)):
        try:
            return read_json(fenced)
        except UnreadableReply as error:
            failure = error
    raise failure


def read_expected(messages: Sequence[Message], comparisons: Sequence[Comparison]) -> Any:
    """The JSON that is expected: that of the last assistant message; UnreadableReply, which says
    why, when there is none."""
    message = next((message for message in reversed(messages) if message.role == "assistant"), None)
    if message is None:
        raise UnreadableReply("there is none")
    blocks = () if isinstance(message.content, str) else message.content
    data = [block.value for block in blocks if block.type == "json"]
    return data[-1] if data else read_data(message_text(message), comparisons)


def misfit(comparison: Comparison, expected: Any) -> str:
    """Why a field cannot be compared with the expected data, with what to do after a semicolon;
    empty when it can be."""
    value = look_up(expected, comparison.steps)
    if value is MISSING:
        return "is not in `expected_output`; write the value that is expected there"
    return _MATCHES[comparison.match].misfit(comparison, value)


@dataclass(frozen=True)
class Outcome:
    """One field compared: `missing` from the answer, or `holds` or not; `told` says it."""

    comparison: Comparison
    holds: bool
    told: str
    missing: bool = False


def compare(comparison: Comparison, expected: Any, answer: Any) -> Outcome:
    """Compares one field of the answer's data with that of the expected data, which must have it
    (`misfit`)."""
    wanted, given = look_up(expected, comparison.steps), look_up(answer, comparison.steps)
    kind = _MATCHES[comparison.match]
    if given is MISSING:
        required = ", and it is required" if comparison.required else ""
        told = f"{comparison.path} is missing{required}, expected {kind.asked(comparison, wanted)}"
        return Outcome(comparison, False, told, missing=True)
    holds = kind.holds(comparison, wanted, given)
    asked = (
        "as expected"
        if holds and comparison.match == "exact"
        else f"expected {kind.asked(comparison, wanted)}"
    )
    return Outcome(comparison, holds, f"{comparison.path} is {shown(given)}, {asked}")


def score_fields(
    comparisons: Sequence[Comparison], aggregation: Aggregation, expected: Any, output: str
) -> Score:
    """The score of all fields of an output's JSON; without JSON all are missing. AttemptError when
    a pattern runs away."""
    try:
        answer, why = read_data(output, comparisons), []
    except UnreadableReply as error:
        answer, why = MISSING, [f"the output holds no JSON that can be read: {error}"]
    outcomes = [compare(comparison, expected, answer) for comparison in comparisons]
    return Score(
        value=_aggregated(outcomes, aggregation),
        hits=tuple(outcome.told for outcome in outcomes if outcome.holds),
        misses=(*why, *(outcome.told for outcome in outcomes if not outcome.holds)),
        details={"fields": {outcome.comparison.path: float(outcome.holds) for outcome in outcomes}},
    )


def _aggregated(outcomes: Sequence[Outcome], aggregation: Aggregation) -> float:
    if any(outcome.missing and outcome.comparison.required for outcome in outcomes):
        return 0.0
    if aggregation != "weighted_average":
        # A field scores 0 or 1, so that the smallest score is 1 when all hold.
        return float(all(outcome.holds for outcome in outcomes))
    return weighted_mean(
        [(float(outcome.holds), outcome.comparison.weight) for outcome in outcomes]
    )


@dataclass(frozen=True)
class _Kind:
    """One way of comparing: whether it holds, what is asked in words, and why an expected value
    does not suit it (empty if it does)."""

    holds: Callable[[Comparison, Any, Any], bool]
    asked: Callable[[Comparison, Any], str]
    misfit: Callable[[Comparison, Any], str] = lambda _, __: ""


def _contains(_: Comparison, wanted: Any, given: Any) -> bool:
    if isinstance(given, list | tuple):
        return any(equal(item, wanted) for item in given)
    part, whole = text_of(wanted), text_of(given)
    return part is not None and whole is not None and part in whole


def _nothing_to_contain(_: Comparison, wanted: Any) -> str:
    return (
        "is an empty text in `expected_output`, which every text contains; write the text to look for"
        if wanted == ""
        else ""
    )


def _matches(comparison: Comparison, wanted: Any, given: Any) -> bool:
    subject = text_of(given)
    return subject is not None and patterns.found(
        wanted, "", subject, f"the field {comparison.path}"
    )


def _no_pattern(_: Comparison, wanted: Any) -> str:
    if not isinstance(wanted, str) or not wanted:
        return f"is {shown(wanted)} in `expected_output`, which is no pattern; write a regular expression there"
    try:
        patterns.compile_pattern(wanted)
    except ValueError as error:
        return f"cannot be compared: {error}; correct the expression in `expected_output`"
    return ""


def _number(value: Any) -> Decimal | None:
    """A number as it is written, digit by digit, so that 100.01 is within 0.01 of 100; a text that
    is a number is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(value.strip() if isinstance(value, str) else repr(value))
        return number if math.isfinite(float(number)) and "_" not in str(value) else None
    except (InvalidOperation, OverflowError, ValueError):
        return None


def _near(comparison: Comparison, wanted: Any, given: Any) -> bool:
    one, other = _number(wanted), _number(given)
    if one is None or other is None:
        return False
    tolerance = _number(comparison.tolerance or 0) or Decimal(0)
    # To 9 decimals, so that the noise of a float decides nothing.
    return abs(other - one) - tolerance * (abs(one) if comparison.relative else 1) <= Decimal(
        "5e-10"
    )


def _asked_number(comparison: Comparison, wanted: Any) -> str:
    unit = " times it" if comparison.relative else ""
    return (
        f"{shown(wanted)} ± {comparison.tolerance:g}{unit}"
        if comparison.tolerance
        else shown(wanted)
    )


def _no_number(_: Comparison, wanted: Any) -> str:
    return (
        ""
        if _number(wanted) is not None
        else f"is {shown(wanted)} in `expected_output`, which is no number; write a number there"
    )


def _same_date(comparison: Comparison, wanted: Any, given: Any) -> bool:
    if not isinstance(given, str):
        return False
    mine, other = (dates.read_dates(text, comparison.formats or ()) for text in (wanted, given))
    # What may be read in two ways is no match, not even with itself: the expected date is a clear
    # one.
    return len(mine) == len(other) == 1 and mine == other


def _no_date(comparison: Comparison, wanted: Any) -> str:
    found = dates.read_dates(wanted, comparison.formats or ()) if isinstance(wanted, str) else ()
    if len(found) == 1:
        return ""
    problem = "may be read as two dates" if found else "is no date"
    return f"is {shown(wanted)} in `expected_output`, which {problem}; write it as YYYY-MM-DD, or name its form in `formats`"


_MATCHES: Mapping[Match, _Kind] = {
    "exact": _Kind(lambda _, wanted, given: equal(wanted, given), lambda _, wanted: shown(wanted)),
    "contains": _Kind(_contains, lambda _, wanted: f"{shown(wanted)} in it", _nothing_to_contain),
    "regex": _Kind(_matches, lambda _, wanted: f"a match of {shown(wanted)}", _no_pattern),
    "numeric_tolerance": _Kind(_near, _asked_number, _no_number),
    "date": _Kind(_same_date, lambda _, wanted: f"the date {shown(wanted)}", _no_date),
}
