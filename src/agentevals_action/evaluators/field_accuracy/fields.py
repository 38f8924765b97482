"""Comparison of fields of JSON in an answer with the expected ones."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from agentevals_action.evaluators.field_accuracy import dates
from agentevals_action.evaluators.judges.replies import UnreadableReply, find_object, read_json
from agentevals_action.evaluators.text_checks import compile_pattern, search_pattern
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import text_of as message_text
from agentevals_action.model.validation.file_model import FileModel, ListOf, Weight
from agentevals_action.model.validation.json_values import (
    MISSING,
    equal,
    look_up,
    read_path,
    shown,
    text_of,
)
from agentevals_action.results.scoring import weighted_mean

Match = Literal["exact", "contains", "regex", "numeric_tolerance", "date"]
Aggregation = Literal["weighted_average", "minimum", "all_or_nothing"]

_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


#: The match for which a field has an effect.
_MATCH_OF: Mapping[str, Match] = {
    "tolerance": "numeric_tolerance",
    "relative": "numeric_tolerance",
    "formats": "date",
}


class Comparison(FileModel):
    """One field to compare."""

    path: str = Field(
        description="The path of the field in the answer and in `expected_output`: names "
        "and positions, as `items[0].name` or `items.0.name`."
    )
    match: Match = Field(
        default="exact",
        description="How it is compared: `exact`, `contains` (the answer's text or list "
        "contains the expected value), `regex` (the expected value is the "
        "pattern), `numeric_tolerance`, `date` (the same instant in any "
        "format).",
    )
    required: bool = Field(
        default=False, description="If this field is missing in the answer, the evaluator scores 0."
    )
    weight: Weight = Field(
        default=1.0, description="Its weight in the weighted average, 0 to 1,000,000."
    )
    tolerance: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="For `numeric_tolerance`: the allowed distance from the expected "
        "number; 0 if missing.",
    )
    relative: bool = Field(
        default=False,
        description="For `numeric_tolerance`: the tolerance is a share of the expected number.",
    )
    formats: ListOf[str] | None = Field(
        default=None,
        description="For `date`: allowed formats, the first that matches decides, such as "
        "`DD-MMM-YYYY`, `MM/DD/YYYY` or `%d.%m.%Y` (of `strptime`). ISO 8601 is always read, and "
        "without `formats` the usual written forms that are not ambiguous.",
    )

    _location: Location | None = PrivateAttr(None)

    @field_validator("path")
    @classmethod
    def _check_path(cls, path: str) -> str:
        read_path(path)
        return path

    @field_validator("formats")
    @classmethod
    def _check_formats(cls, formats: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for text in formats or ():
            dates.read_format(text)
        return formats

    @field_validator("tolerance", "relative", "formats")
    @classmethod
    def _check_match(cls, value: Any, info: ValidationInfo) -> Any:
        needed = _MATCH_OF[info.field_name or ""]
        if value and info.data.get("match", needed) != needed:
            raise ValueError(
                f"it has an effect with `match: {needed}` only; write that, or remove it"
            )
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _keep_location(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        comparison = handler(value)
        if location := getattr(value, "value_location", None):
            comparison._location = location("path")
        return comparison

    @property
    def location(self) -> Location | None:
        """The location of the path in its file, where that is known."""
        return self._location

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the path."""
        return read_path(self.path)


def read_data(text: str, comparisons: Sequence[Comparison]) -> Any:
    """The JSON in a text: the complete text, or the last object in it that has one of the fields,
    in code fences and prose or without.

    If the fields are those of a list, the last list in code fences. UnreadableReply if there is
    none."""
    try:
        return read_json(text)
    except UnreadableReply as error:
        problem = error
    firsts = dict.fromkeys(comparison.steps[0] for comparison in comparisons)
    if not all(first.isdigit() for first in firsts):
        return find_object(text, firsts)
    for fenced in reversed(_FENCED.findall(text)):
        try:
            return read_json(fenced)
        except UnreadableReply as error:
            problem = error
    raise problem


def read_expected(messages: Sequence[Message], comparisons: Sequence[Comparison]) -> Any:
    """The JSON of the last assistant message; UnreadableReply if there is none."""
    message = next((message for message in reversed(messages) if message.role == "assistant"), None)
    if message is None:
        raise UnreadableReply("there is none")
    data = [block.value for block in message.blocks if block.type == "json"]
    return data[-1] if data else read_data(message_text(message), comparisons)


def expected_problem(comparison: Comparison, expected: Any) -> str:
    """Why a field cannot be compared with the expected data, and the advice after a semicolon;
    empty if it can."""
    value = look_up(expected, comparison.steps)
    if value is MISSING:
        return "is not in `expected_output`; write the expected value there"
    return _MATCHERS[comparison.match].problem(comparison, value)


@dataclass(frozen=True)
class FieldResult:
    """The comparison of one field; `text` is its hit or miss."""

    comparison: Comparison
    holds: bool
    text: str
    is_missing: bool = False


def compare(comparison: Comparison, expected: Any, answer: Any) -> FieldResult:
    """Compares one field of the answer with the expected data, which must have it."""
    wanted, given = look_up(expected, comparison.steps), look_up(answer, comparison.steps)
    matcher = _MATCHERS[comparison.match]
    description = f"expected {matcher.describe(comparison, wanted)}"
    if given is MISSING:
        required = ", and it is required" if comparison.required else ""
        text = f"{comparison.path} is missing{required}, {description}"
        return FieldResult(comparison, False, text, is_missing=True)
    holds = matcher.holds(comparison, wanted, given)
    if holds and comparison.match == "exact":
        description = "as expected"
    return FieldResult(comparison, holds, f"{comparison.path} is {shown(given)}, {description}")


def score_fields(
    comparisons: Sequence[Comparison], aggregation: Aggregation, expected: Any, output: str
) -> Score:
    """The score of all fields of an output's JSON; without JSON, all are missing.

    AttemptError if a pattern exceeds its time limit."""
    problems: tuple[str, ...] = ()
    try:
        answer = read_data(output, comparisons)
    except UnreadableReply as error:
        answer = MISSING
        problems = (f"the output has no JSON that can be read: {error}",)
    outcomes = [compare(comparison, expected, answer) for comparison in comparisons]
    if any(outcome.is_missing and outcome.comparison.required for outcome in outcomes):
        value = 0.0
    elif aggregation == "weighted_average":
        value = weighted_mean(
            [(float(outcome.holds), outcome.comparison.weight) for outcome in outcomes]
        )
    else:
        # A field scores 0 or 1, so `minimum` and `all_or_nothing` are the same.
        value = float(all(outcome.holds for outcome in outcomes))
    return Score(
        value=value,
        hits=tuple(outcome.text for outcome in outcomes if outcome.holds),
        misses=(*problems, *(outcome.text for outcome in outcomes if not outcome.holds)),
        details={"fields": {outcome.comparison.path: float(outcome.holds) for outcome in outcomes}},
    )


def _contains(_: Comparison, wanted: Any, given: Any) -> bool:
    if isinstance(given, list | tuple):
        return any(equal(item, wanted) for item in given)
    part, text = text_of(wanted), text_of(given)
    return part is not None and text is not None and part in text


def _contains_problem(_: Comparison, wanted: Any) -> str:
    empty = "is an empty text in `expected_output`, which every text contains"
    return "" if wanted != "" else f"{empty}; write the text to look for"


def _matches(comparison: Comparison, wanted: Any, given: Any) -> bool:
    text = text_of(given)
    return text is not None and search_pattern(wanted, "", text, f"the field {comparison.path}")


def _pattern_problem(_: Comparison, wanted: Any) -> str:
    if not isinstance(wanted, str) or not wanted:
        return _not_valid(wanted, "which is not a valid pattern; write a regular expression there")
    try:
        compile_pattern(wanted)
    except ValueError as error:
        return f"cannot be compared: {error}; correct the expression in `expected_output`"
    return ""


def _not_valid(wanted: Any, problem: str) -> str:
    return f"is {shown(wanted)} in `expected_output`, {problem}"


def _number(value: Any) -> Decimal | None:
    """A finite number with its decimal digits as written, so that 100.01 is within 0.01 of 100; a
    text may be a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or "_" in str(value):
        return None
    try:
        number = Decimal(str(value).strip())
        return number if math.isfinite(float(number)) else None
    except (InvalidOperation, OverflowError, ValueError):
        return None


def _is_near(comparison: Comparison, wanted: Any, given: Any) -> bool:
    one, other = _number(wanted), _number(given)
    if one is None or other is None:
        return False
    tolerance = Decimal(str(comparison.tolerance or 0)) * (abs(one) if comparison.relative else 1)
    return round(abs(other - one) - tolerance, 9) <= 0


def _describe_number(comparison: Comparison, wanted: Any) -> str:
    unit = " times it" if comparison.relative else ""
    return shown(wanted) + (f" ± {comparison.tolerance:g}{unit}" if comparison.tolerance else "")


def _number_problem(_: Comparison, wanted: Any) -> str:
    problem = _not_valid(wanted, "which is not a valid number; write a number there")
    return problem if _number(wanted) is None else ""


def _is_same_date(comparison: Comparison, wanted: Any, given: Any) -> bool:
    one, other = _dates(comparison, wanted), _dates(comparison, given)
    # An ambiguous date does not match, not even itself.
    return len(one) == len(other) == 1 and one == other


def _date_problem(comparison: Comparison, wanted: Any) -> str:
    found = _dates(comparison, wanted)
    problem = "may mean two dates" if found else "is not a valid date"
    advice = "write it as YYYY-MM-DD, or add its format to `formats`"
    return "" if len(found) == 1 else _not_valid(wanted, f"which {problem}; {advice}")


def _dates(comparison: Comparison, value: Any) -> tuple[datetime, ...]:
    return dates.read_dates(value, comparison.formats or ()) if isinstance(value, str) else ()


@dataclass(frozen=True)
class _Matcher:
    """One way to compare: `problem` states why an expected value cannot be compared, empty if it
    can."""

    holds: Callable[[Comparison, Any, Any], bool]
    describe: Callable[[Comparison, Any], str]
    problem: Callable[[Comparison, Any], str]


_MATCHERS: Mapping[Match, _Matcher] = {
    "exact": _Matcher(
        lambda _, wanted, given: equal(wanted, given),
        lambda _, wanted: shown(wanted),
        lambda *_: "",
    ),
    "contains": _Matcher(_contains, lambda _, wanted: f"{shown(wanted)} in it", _contains_problem),
    "regex": _Matcher(_matches, lambda _, wanted: f"a match of {shown(wanted)}", _pattern_problem),
    "numeric_tolerance": _Matcher(_is_near, _describe_number, _number_problem),
    "date": _Matcher(_is_same_date, lambda _, wanted: f"the date {shown(wanted)}", _date_problem),
}
