"""One criterion of a rubric: what it asks, how much it counts, and when it is a gate."""

import itertools
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from msgspec import Meta
from msgspec.structs import replace

from agentevals_action.entries.entry import Aside, Before, Checked, Entry, Schema, Shown, Written
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import PASS_SCORE
from agentevals_action.results.scoring import reaches

Operator = Literal["correctness", "contradiction"]


class ScoreRange(Entry):
    """What an answer is like that gets a score in a range, `low` to `high` of 0-10 (equal when only
    that score is described)."""

    low: int
    high: int
    outcome: str


def _read_ranges(value: Any) -> Any:
    """Both forms: `{0: text, 5: text}`, and a list of `{score_range: [0, 4], outcome: text}`."""
    if isinstance(value, Mapping):
        ranges = [_range(key, key, text) for key, text in value.items()]
    elif isinstance(value, list):
        ranges = [_read_range(item) for item in value]
    else:
        raise ValueError(
            "score_ranges is an object from scores (0 to 10) to texts, as {0: poor, 5: fair, 10: good}"
        )
    if not ranges:
        raise ValueError("score_ranges is empty; describe at least one score, or leave it out")
    ranges.sort(key=lambda item: item.low)
    for before, after in itertools.pairwise(ranges):
        if after.low <= before.high:
            raise ValueError(f"score_ranges describes {after.low} twice")
    return tuple(ranges)


def _read_range(item: Any) -> ScoreRange:
    bounds = item.get("score_range") if isinstance(item, Mapping) else None
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise ValueError(
            "each entry of a score_ranges list is an object as {score_range: [0, 4], outcome: poor}"
        )
    return _range(bounds[0], bounds[1], item.get("outcome", item.get("expected_outcome")))


def _range(low: Any, high: Any, text: Any) -> ScoreRange:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"score_ranges describes {low} with no text")
    first, last = _whole(low), _whole(high)
    if first > last:
        raise ValueError(
            f"score_ranges has a range from {first} to {last}; write the lower score first"
        )
    return ScoreRange(low=first, high=last, outcome=text)


def _whole(value: Any) -> int:
    # The keys of an object are strings once it has been JSON.
    number = (
        int(value)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 3
        else value
    )
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 10:
        raise ValueError(
            f"score_ranges has {value!r} for a score; write a whole number from 0 to 10"
        )
    return number


def _read_required(value: Any) -> Any:
    if not isinstance(value, bool) and not (isinstance(value, int | float) and 0 < value <= 1):
        raise ValueError(
            "required is true, false, or the score that must be reached, over 0 and up to 1"
        )
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("the text is empty; write what is asked of the answer")
    return value


_RANGES_SCHEMA = {
    "anyOf": [
        {
            "type": "object",
            "patternProperties": {
                "^([0-9]|10)$": {
                    "type": "string",
                    "description": "What an answer of this score is like.",
                }
            },
            "additionalProperties": False,
            "minProperties": 1,
        },
        {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "score_range": {
                        "type": "array",
                        "items": {"type": "integer", "minimum": 0, "maximum": 10},
                        "minItems": 2,
                        "maxItems": 2,
                        "description": "The lowest and the highest score of the range, both from 0 to 10.",
                    },
                    "outcome": {
                        "type": "string",
                        "description": "What an answer of a score in the range is like.",
                    },
                },
                "required": ["score_range", "outcome"],
            },
        },
    ]
}
_REQUIRED_SCHEMA = {
    "anyOf": [{"type": "boolean"}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}]
}


class Criterion(Entry):
    """One criterion; a plain string is its outcome. `location` is where it stands in its file,
    where that is known."""

    #: Other spellings of a field, as in `evaluators.base.Options`.
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"outcome": ("expected_outcome",)}

    id: Annotated[
        Annotated[str, Checked(_not_blank)] | None,
        Meta(description="Its name; `rubric-N` by position when missing."),
    ] = None
    outcome: Annotated[
        Annotated[str, Checked(_not_blank)], Meta(description="What must be true of the answer.")
    ]
    weight: Annotated[
        float, Meta(ge=0, description="How much it counts in the rubric's score, 0 or more.")
    ] = 1.0
    required: Annotated[
        Annotated[bool | float, Before(_read_required), Shown(_REQUIRED_SCHEMA)],
        Meta(
            description="A gate: the test fails when it scores 0, or less than the number given here."
        ),
    ] = False
    min_score: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        Meta(description="The score, 0-1, under which a required criterion fails the test."),
    ] = None
    score_ranges: Annotated[
        Annotated[tuple[ScoreRange, ...], Before(_read_ranges), Shown(_RANGES_SCHEMA)] | None,
        Meta(
            description="What answers of a score from 0 to 10 are like; the judge then gives such a score, not yes or no."
        ),
    ] = None
    operator: Annotated[
        Operator | None,
        Meta(
            description="`correctness`: met only when the answer says so; `contradiction`: met unless the answer says otherwise."
        ),
    ] = None

    location: Annotated[Location | None, Aside()] = None

    @classmethod
    def long_form(cls, value: Any) -> Any:
        """A plain string is the outcome, and `expected_outcome` its earlier spelling."""
        if isinstance(value, str):
            return {"outcome": value}
        if not isinstance(value, Mapping):
            return value
        if "required_min_score" in value:
            raise ValueError("required_min_score is not supported; write min_score, from 0 to 1")
        if "expected_outcome" not in value:
            return value
        if value.get("outcome", value["expected_outcome"]) != value["expected_outcome"]:
            raise ValueError("outcome and expected_outcome differ; keep one of them")
        return {**value, "outcome": value["expected_outcome"]}

    def completed(self, written: Written) -> Self:
        """With its place; ValueError when it has two thresholds."""
        numbers = {
            number
            for number in (self.required, self.min_score)
            if number is not None and not isinstance(number, bool)
        }
        if len(numbers) > 1:
            raise ValueError(
                "required and min_score are both thresholds and differ; keep one of them"
            )
        return replace(self, location=getattr(written.value, "location", None))

    @classmethod
    def refined(cls, schema: Schema) -> Schema:
        """A plain string stands for a criterion too, and `expected_outcome` for `outcome`."""
        earlier = {"deprecationMessage": "Write `outcome`.", "doNotSuggest": True}  # for editors
        properties = schema["properties"] | {
            "expected_outcome": {**schema["properties"]["outcome"], **earlier}
        }
        either = [{"required": ["outcome"]}, {"required": ["expected_outcome"]}]
        entry = {key: value for key, value in schema.items() if key != "required"} | {
            "properties": properties,
            "anyOf": either,
        }
        return {"anyOf": [{"type": "string", "minLength": 1}, entry]}

    @property
    def name(self) -> str:
        """Its id."""
        return self.id or ""

    @property
    def is_gate(self) -> bool:
        """Whether it can fail the test on its own; a `min_score` alone is the threshold of no
        gate."""
        return self.required is not False

    @property
    def threshold(self) -> float | None:
        """The score, 0-1, that it must reach as a gate; None when any score over 0 will do."""
        return self.min_score if isinstance(self.required, bool) else self.required

    def identified(self, name: str) -> Self:
        """The same, with this id when it has none of its own."""
        return self if self.id is not None else replace(self, id=name)

    def holds(self, score: float) -> bool:
        """Whether the gate holds at a score of 0-1; always, when it is none."""
        if not self.is_gate:
            return True
        return (
            reaches(score, self.threshold) if self.threshold is not None else not reaches(0, score)
        )

    def is_hit(self, score: float) -> bool:
        """Whether a score of 0-1 counts as met in what a reader is told."""
        return reaches(score, PASS_SCORE if self.threshold is None else self.threshold)

    def told(self, score: float) -> str:
        """The criterion in words for a hit or a miss, with the points where there are some."""
        return f"{self.name}: {self.outcome}" + (
            f" ({score * 10:g}/10)" if self.score_ranges else ""
        )
