"""One criterion of a rubric: what it asks, how much it counts, and when it is a gate."""

import itertools
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    Strict,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from agentevals_action.model.fault import Location
from agentevals_action.model.result import PASS_SCORE
from agentevals_action.scoring import reaches

Operator = Literal["correctness", "contradiction"]


class ScoreRange(BaseModel):
    """What an answer is like that gets a score in a range, `low` to `high` of 0-10 (equal when only that score is described)."""

    model_config = ConfigDict(frozen=True, strict=True, defer_build=True)

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
        raise ValueError("score_ranges is an object from scores (0 to 10) to texts, as {0: poor, 5: fair, 10: good}")
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
        raise ValueError("each entry of a score_ranges list is an object as {score_range: [0, 4], outcome: poor}")
    return _range(bounds[0], bounds[1], item.get("outcome", item.get("expected_outcome")))


def _range(low: Any, high: Any, text: Any) -> ScoreRange:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"score_ranges describes {low} with no text")
    first, last = _whole(low), _whole(high)
    if first > last:
        raise ValueError(f"score_ranges has a range from {first} to {last}; write the lower score first")
    return ScoreRange(low=first, high=last, outcome=text)


def _whole(value: Any) -> int:
    # The keys of an object are strings once it has been JSON.
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 3 else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 10:
        raise ValueError(f"score_ranges has {value!r} for a score; write a whole number from 0 to 10")
    return number


def _read_required(value: Any) -> Any:
    if not isinstance(value, bool) and not (isinstance(value, int | float) and 0 < value <= 1):
        raise ValueError("required is true, false, or the score that must be reached, over 0 and up to 1")
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("the text is empty; write what is asked of the answer")
    return value


_RANGES_SCHEMA = {
    "anyOf": [
        {
            "type": "object",
            "patternProperties": {"^([0-9]|10)$": {"type": "string", "description": "What an answer of this score is like."}},
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
                    "outcome": {"type": "string", "description": "What an answer of a score in the range is like."},
                },
                "required": ["score_range", "outcome"],
            },
        },
    ]
}
_REQUIRED_SCHEMA = {"anyOf": [{"type": "boolean"}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}]}


class Criterion(BaseModel):
    """One criterion; a plain string is its outcome. `location` is where it stands in its file, where that is known."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", defer_build=True)

    #: Other spellings of a field, as in `evaluators.base.Options`.
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"outcome": ("expected_outcome",)}

    id: Annotated[str, AfterValidator(_not_blank)] | None = Field(
        default=None, description="Its name; `rubric-N` by position when missing."
    )
    outcome: Annotated[str, AfterValidator(_not_blank)] = Field(description="What must be true of the answer.")
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False, description="How much it counts in the rubric's score, 0 or more.")
    required: Annotated[bool | float, BeforeValidator(_read_required), WithJsonSchema(_REQUIRED_SCHEMA)] = Field(
        default=False, description="A gate: the test fails when it scores 0, or less than the number given here."
    )
    min_score: float | None = Field(
        default=None, gt=0, le=1, description="The score, 0-1, under which a required criterion fails the test."
    )
    score_ranges: Annotated[tuple[ScoreRange, ...], Strict(False), BeforeValidator(_read_ranges), WithJsonSchema(_RANGES_SCHEMA)] | None = (
        Field(default=None, description="What answers of a score from 0 to 10 are like; the judge then gives such a score, not yes or no.")
    )
    operator: Operator | None = Field(
        default=None,
        description="`correctness`: met only when the answer says so; `contradiction`: met unless the answer says otherwise.",
    )

    _location: Location | None = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        criterion = handler(_folded(data))
        numbers = {number for number in (criterion.required, criterion.min_score) if number is not None and not isinstance(number, bool)}
        if len(numbers) > 1:
            raise ValueError("required and min_score are both thresholds and differ; keep one of them")
        location = getattr(data, "location", None)
        if isinstance(location, Location):
            criterion._location = location
        return criterion

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """A plain string stands for a criterion too, and `expected_outcome` for `outcome`."""
        entry = handler.resolve_ref_schema(handler(core_schema))
        earlier = {"deprecationMessage": "Write `outcome`.", "doNotSuggest": True}  # for editors
        properties = entry["properties"] | {"expected_outcome": {**entry["properties"]["outcome"], **earlier}}
        either = [{"required": ["outcome"]}, {"required": ["expected_outcome"]}]
        entry = {key: value for key, value in entry.items() if key != "required"} | {"properties": properties, "anyOf": either}
        return {"anyOf": [{"type": "string", "minLength": 1}, entry]}

    @property
    def name(self) -> str:
        """Its id."""
        return self.id or ""

    @property
    def location(self) -> Location | None:
        """Where it stands in its file, None when that is not known."""
        return self._location

    @property
    def is_gate(self) -> bool:
        """Whether it can fail the test on its own; a `min_score` alone is the threshold of no gate."""
        return self.required is not False

    @property
    def threshold(self) -> float | None:
        """The score, 0-1, that it must reach as a gate; None when any score over 0 will do."""
        return self.min_score if isinstance(self.required, bool) else self.required

    def identified(self, name: str) -> Self:
        """The same, with this id when it has none of its own."""
        return self if self.id is not None else self.model_copy(update={"id": name})

    def holds(self, score: float) -> bool:
        """Whether the gate holds at a score of 0-1; always, when it is none."""
        if not self.is_gate:
            return True
        return reaches(score, self.threshold) if self.threshold is not None else not reaches(0, score)

    def is_hit(self, score: float) -> bool:
        """Whether a score of 0-1 counts as met in what a reader is told."""
        return reaches(score, PASS_SCORE if self.threshold is None else self.threshold)

    def told(self, score: float) -> str:
        """The criterion in words for a hit or a miss, with the points where there are some."""
        return f"{self.name}: {self.outcome}" + (f" ({score * 10:g}/10)" if self.score_ranges else "")


def _folded(data: Any) -> Any:
    if isinstance(data, str):
        return {"outcome": data}
    if not isinstance(data, Mapping):
        return data
    if "required_min_score" in data:
        raise ValueError("required_min_score is not supported; write min_score, from 0 to 1")
    if "expected_outcome" not in data:
        return data
    if data.get("outcome", data["expected_outcome"]) != data["expected_outcome"]:
        raise ValueError("outcome and expected_outcome differ; keep one of them")
    return {**data, "outcome": data["expected_outcome"]}
