"""`field_accuracy`: fields of JSON in the output are compared with those of `expected_output`."""

import asyncio
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import require
from agentevals_action.evaluators.json import dates
from agentevals_action.evaluators.json.objects import UnreadableReply, find_object, read_json
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.evaluator import Case, Evaluator, Mismatch, Task
from agentevals_action.model.messages import Message
from agentevals_action.model.result import Score
from agentevals_action.model.trace import join_text as message_text
from agentevals_action.results.scoring import weighted_mean
from agentevals_action.validation.file_model import Computed, FileModel, ListOf, Weight
from agentevals_action.validation.json_values import (
    MISSING,
    as_text,
    describe_json,
    equal,
    look_up,
    read_path,
)
from agentevals_action.validation.patterns import compile_pattern, search_pattern

Match = Literal["exact", "contains", "regex", "numeric_tolerance", "date"]
Aggregation = Literal["weighted_average", "minimum", "all_or_nothing"]

_FENCE = re.compile(r"^[ \t]*```([^\n`]*)$\n?", re.MULTILINE)
#: Half of the ninth decimal. A number of over 19 digits cannot be rounded to nine decimals.
_ROUNDING = Decimal("5e-10")

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

    places: Computed[Mapping[str, Location]] = Field(default={}, exclude=True)

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

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the path."""
        return read_path(self.path)


def holds(comparison: Comparison, wanted: Any, given: Any) -> bool:
    """Whether a value of the answer is the expected one. AttemptError if a pattern exceeds its time
    limit."""
    part, text = as_text(wanted), as_text(given)
    match comparison.match:
        case "contains" if isinstance(given, list | tuple):
            return any(equal(item, wanted) for item in given)
        case "contains":
            return part is not None and text is not None and part in text
        case "regex":
            where = f"the field {comparison.path}"
            return text is not None and search_pattern(wanted, "", text, where)
        case "numeric_tolerance":
            return _is_near(comparison, _number(wanted), _number(given))
        case "date":
            instants = _dates(comparison, wanted)
            # An ambiguous date does not match, not even itself.
            return len(instants) == 1 and instants == _dates(comparison, given)
    return equal(wanted, given)


def _is_near(comparison: Comparison, wanted: Decimal | None, given: Decimal | None) -> bool:
    if wanted is None or given is None:
        return False
    tolerance = Decimal(str(comparison.tolerance or 0))
    tolerance *= abs(wanted) if comparison.relative else 1
    return abs(given - wanted) - tolerance <= _ROUNDING


def _number(value: Any) -> Decimal | None:
    """A finite number with its decimal digits as written, so that 100.01 is within 0.01 of 100; a
    text may be a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or "_" in str(value):
        return None
    with suppress(InvalidOperation, OverflowError, ValueError):
        number = Decimal(str(value).strip())
        return number if math.isfinite(float(number)) else None
    return None


def _dates(comparison: Comparison, value: Any) -> tuple[datetime, ...]:
    return dates.read_dates(value, comparison.formats or ()) if isinstance(value, str) else ()


def expected_problem(comparison: Comparison, expected: Any) -> str:
    """Why a field cannot be compared with the expected data, and the advice after a semicolon;
    empty if it can."""
    wanted = look_up(expected, comparison.steps)
    if wanted is MISSING:
        return "is not in `expected_output`; write the expected value there"
    problem = ""
    match comparison.match:
        case "contains" if wanted == "":
            problem = "every text contains; write the text to look for"
        case "regex" if not isinstance(wanted, str) or not wanted:
            problem = "is not a valid pattern; write a regular expression there"
        case "regex":
            try:
                compile_pattern(wanted)
            except ValueError as error:
                return f"cannot be compared: {error}; correct the expression in `expected_output`"
        case "numeric_tolerance" if _number(wanted) is None:
            problem = "is not a valid number; write a number there"
        case "date" if len(instants := _dates(comparison, wanted)) != 1:
            problem = "may mean two dates" if instants else "is not a valid date"
            problem += "; write it as YYYY-MM-DD, or add its format to `formats`"
    return problem and f"is {describe_json(wanted)} in `expected_output`, which {problem}"


def _explain(comparison: Comparison, wanted: Any, given: Any, score: float) -> str:
    """The sentence about a field and its score."""
    expected, tolerance = f"expected {describe_json(wanted)}", comparison.tolerance
    match comparison.match:
        case "exact" if score:
            expected = "as expected"
        case "contains":
            expected += " in it"
        case "regex":
            expected = f"expected a match of {describe_json(wanted)}"
        case "numeric_tolerance" if tolerance:
            expected += f" ± {tolerance:g}{' times it' if comparison.relative else ''}"
        case "date":
            expected = f"expected the date {describe_json(wanted)}"
    if given is not MISSING:
        return f"{comparison.path} is {describe_json(given)}, {expected}"
    required = ", and it is required" if comparison.required else ""
    return f"{comparison.path} is missing{required}, {expected}"


def score_fields(
    comparisons: Sequence[Comparison], aggregation: Aggregation, expected: Any, output: str
) -> Score:
    """The score of all fields of an output's JSON; without JSON, all are missing.

    AttemptError if a pattern exceeds its time limit."""
    problems = []
    try:
        answer = read_data(output, comparisons)
    except UnreadableReply as error:
        answer = MISSING
        problems = [f"the output has no JSON that can be read: {error}"]
    fields = [
        (comparison, look_up(expected, comparison.steps), look_up(answer, comparison.steps))
        for comparison in comparisons
    ]
    scores = [float(field[-1] is not MISSING and holds(*field)) for field in fields]
    texts = [(_explain(*field, score), score) for field, score in zip(fields, scores, strict=True)]
    is_refused = any(comparison.required and given is MISSING for comparison, _, given in fields)
    return Score(
        value=0.0 if is_refused else _aggregate(comparisons, aggregation, scores),
        hits=tuple(text for text, score in texts if score),
        misses=(*problems, *(text for text, score in texts if not score)),
        details={
            "fields": {field[0].path: score for field, score in zip(fields, scores, strict=True)}
        },
    )


def _aggregate(
    comparisons: Sequence[Comparison], aggregation: Aggregation, scores: Sequence[float]
) -> float:
    if aggregation == "weighted_average":
        weights = (comparison.weight for comparison in comparisons)
        return weighted_mean([*zip(scores, weights, strict=True)])
    # A field scores 0 or 1, so `minimum` and `all_or_nothing` are the same.
    return float(all(scores))


def read_data(text: str, comparisons: Sequence[Comparison]) -> Any:
    """The JSON in a text: the complete text, or the last object in it that has one of the fields,
    in code fences and prose or without.

    If all paths begin with a position, the last list in code fences. UnreadableReply if there is
    no such JSON."""
    firsts = dict.fromkeys(comparison.steps[0] for comparison in comparisons)
    is_list = all(first.isdigit() for first in firsts)
    for candidate in (text, *reversed([*_find_fenced(text)] if is_list else [])):
        with suppress(UnreadableReply):
            return read_json(candidate)
    if is_list:
        raise UnreadableReply("there is no JSON list, alone or in code fences")
    return find_object(text, firsts)


def _find_fenced(text: str) -> Iterator[str]:
    """The texts in code fences."""
    start = None
    for fence in _FENCE.finditer(text):
        if start is None:
            start = fence.end()
        elif not fence[1].strip():
            yield text[start : fence.start()]
            start = None


def read_expected(messages: Sequence[Message], comparisons: Sequence[Comparison]) -> Any:
    """The JSON of the last assistant message; UnreadableReply if there is none."""
    message = next((message for message in reversed(messages) if message.role == "assistant"), None)
    if message is None:
        raise UnreadableReply("there is none")
    data = [block.value for block in message.blocks if block.type == "json"]
    return data[-1] if data else read_data(message_text(message), comparisons)


class FieldAccuracy(Evaluator):
    """Compares fields of JSON in the output with those of `expected_output`; the score is the
    weighted share of fields that match."""

    type = "field_accuracy"

    fields: Annotated[
        ListOf[Comparison],
        AfterValidator(require(bool, "the list is empty; write at least one field")),
    ] = Field(json_schema_extra={"minItems": 1}, description="The fields to compare.")
    aggregation: Aggregation = Field(
        default="weighted_average",
        description="How the fields make the score; with `minimum` and `all_or_nothing`, "
        "one that differs makes it 0.",
    )

    def check(self, test: Task) -> Sequence[Mismatch]:
        """Fields that `expected_output` lacks, or whose expected value does not suit `match`."""
        try:
            expected = read_expected(test.expected_output, self.fields)
        except UnreadableReply as error:
            problem = f"`expected_output` has no JSON to compare fields with: {error}"
            return (Mismatch(None, problem, "write an object there"),)
        mismatches = []
        for comparison in self.fields:
            problem, _, advice = expected_problem(comparison, expected).rpartition("; ")
            if problem:
                problem = f"the field `{comparison.path}` {problem}"
                mismatches.append(Mismatch(comparison.places.get("path"), problem, advice))
        return mismatches

    async def evaluate(self, case: Case) -> Score:
        """The share of fields that match; AttemptError if there is nothing to compare with, or a
        pattern exceeds its time limit."""
        if mismatches := self.check(case.test):
            raise AttemptError("evaluator", f"{mismatches[0].problem}; {mismatches[0].advice}")
        expected = read_expected(case.test.expected_output, self.fields)
        # A thread: a slow pattern must not block the other tests.
        return await asyncio.to_thread(
            score_fields, self.fields, self.aggregation, expected, case.trace.output
        )
