"""`rubric`: a model checks the answer against criteria, all in one call."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from agentevals_action.evaluators.base import require
from agentevals_action.evaluators.json.objects import UnreadableReply
from agentevals_action.evaluators.judges.prompts import PromptedEvaluator, prompt_variables
from agentevals_action.evaluators.judges.replies import JudgeReplyModel, ask_judge, validate_reply
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import PASS_SCORE, Score
from agentevals_action.model.suite import Case
from agentevals_action.results.scoring import reaches, weighted_mean
from agentevals_action.validation.file_model import (
    FileModel,
    ListOf,
    NonEmpty,
    Weight,
    location_of,
    spelled,
)

#: Criteria of one rubric: all of them go into one prompt.
_MAX_CRITERIA = 1_000
_TEMPLATE = "rubric.md.j2"
_FORM = (
    '{"checks": [{"id": <its id>, "satisfied": <true or false>, "score": <0 to 10, where asked '
    'for>, "reasoning": <a string>}, …]}'
)


Points = Annotated[int, Field(ge=0, le=10)]
Requirement = Annotated[
    str,
    AfterValidator(require(str.strip, "the text is empty; write the requirement on the answer")),
]


class ScoreRange(FileModel):
    """The description of answers whose score is in a range."""

    score_range: ListOf[Points] = Field(
        min_length=2, max_length=2, description="The lowest and the highest score."
    )
    outcome: Requirement = Field(
        description="The description of an answer with a score in the range."
    )


def _read_ranges(value: Any) -> Any:
    """Reads `{0: text, 5: text}` as ranges of one score, and AgentV's `expected_outcome`."""
    if isinstance(value, Mapping):
        # The keys of a JSON object are strings.
        scores = [int(key) if isinstance(key, str) and key.isdecimal() else key for key in value]
        texts = zip(scores, value.values(), strict=True)
        return [{"score_range": [score, score], "outcome": text} for score, text in texts]
    if not isinstance(value, list):
        raise ValueError("it is not an object from scores to texts; write {0: poor, 10: good}")
    return [
        {"outcome": entry["expected_outcome"], "score_range": entry.get("score_range")}
        if isinstance(entry, Mapping) and "expected_outcome" in entry
        else entry
        for entry in value
    ]


def _check_ranges(ranges: tuple[ScoreRange, ...]) -> tuple[ScoreRange, ...]:
    if not ranges:
        raise ValueError("it is empty; describe at least one score, or remove it")
    in_order = tuple(sorted(ranges, key=lambda item: item.score_range))
    last = -1
    for low, high in (item.score_range for item in in_order):
        if low > high:
            raise ValueError(f"it has a range from {low} to {high}; write the lower score first")
        if low <= last:
            raise ValueError(f"it describes {low} twice; describe each score once")
        last = high
    return in_order


def _is_gate(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, int | float) and 0 < value <= 1)


_RangesByScore = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "object",
            "patternProperties": {
                "^([0-9]|10)$": {"type": "string", "description": "An answer with this score."}
            },
            "additionalProperties": False,
            "minProperties": 1,
        }
    ),
]
_Ranges = _RangesByScore | Annotated[list[ScoreRange], Field(min_length=1)]


class Criterion(FileModel):
    """One criterion; a plain string is its outcome."""

    id: Requirement | None = Field(
        default=None, description="Its name; `rubric-N` by position if missing."
    )
    outcome: Requirement = spelled(
        "outcome", "expected_outcome", description="The requirement on the answer."
    )
    weight: Weight = Field(
        default=1.0, description="Its weight in the rubric's score, 0 to 1,000,000."
    )
    required: Annotated[
        bool | float,
        BeforeValidator(
            require(
                _is_gate,
                "required is not a valid gate; "
                "write true, false, or the score that must be reached, over 0 and up to 1",
            )
        ),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "boolean"},
                    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                ]
            }
        ),
    ] = Field(
        default=False,
        description="A gate: the test fails if the criterion scores 0, or less than the "
        "number given here.",
    )
    min_score: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None, description="The score (0-1) under which a required criterion fails the test."
    )
    score_ranges: (
        Annotated[
            ListOf[ScoreRange],
            BeforeValidator(_read_ranges, json_schema_input_type=_Ranges),
            AfterValidator(_check_ranges),
        ]
        | None
    ) = Field(
        default=None,
        description="Descriptions of answers by their score from 0 to 10; the judge then "
        "gives such a score, not yes or no.",
    )
    operator: Literal["correctness", "contradiction"] | None = Field(
        default=None,
        description="`correctness`: met only if the answer states it; `contradiction`: met "
        "unless the answer contradicts it.",
    )

    _location: Location | None = PrivateAttr(None)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = super().__get_pydantic_json_schema__(schema, handler)
        made["allOf"][0]["anyOf"].append({"required": ["id", "score_ranges"]})
        return made

    @model_validator(mode="wrap")
    @classmethod
    def _read(
        cls, value: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        data = {"outcome": value} if isinstance(value, str) else value
        if isinstance(data, Mapping):
            if "required_min_score" in data:
                raise ValueError(
                    "required_min_score is not supported; write min_score, from 0 to 1"
                )
            is_described = "outcome" in data or "expected_outcome" in data
            if not is_described and "score_ranges" in data and "id" in data:
                # As in AgentV: the ranges describe the requirement.
                data = {**data, "outcome": data["id"]}
        criterion = handler(data)
        criterion._location = location_of(info, value)
        return criterion

    @model_validator(mode="after")
    def _check_thresholds(self) -> Self:
        required = None if isinstance(self.required, bool) else self.required
        if None not in (required, self.min_score) and required != self.min_score:
            raise ValueError(
                "required and min_score are both thresholds and differ; remove one of them"
            )
        return self

    @property
    def name(self) -> str:
        """Its id."""
        return self.id or ""

    @property
    def is_gate(self) -> bool:
        """Whether it can fail the test alone; `min_score` without `required` is not a gate."""
        return self.required is not False

    @property
    def threshold(self) -> float | None:
        """The score (0-1) that it must reach; None if any score over 0 is enough."""
        return self.min_score if isinstance(self.required, bool) else self.required

    def holds(self, score: float) -> bool:
        """Whether its gate holds at a score of 0-1; always if it is not a gate."""
        if not self.is_gate:
            return True
        return reaches(score, self.threshold) if self.threshold is not None else round(score, 9) > 0


def _is_short(criteria: Any) -> bool:
    return not isinstance(criteria, list | tuple) or len(criteria) <= _MAX_CRITERIA


def _with_ids(criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
    """The criteria with an id each: `rubric-N` by position if it has none."""
    if not criteria:
        raise ValueError("the list is empty; write at least one criterion")
    named = tuple(
        criterion if criterion.id else criterion.model_copy(update={"id": f"rubric-{position}"})
        for position, criterion in enumerate(criteria, 1)
    )
    for name, count in Counter(criterion.id for criterion in named).items():
        if count > 1:
            raise ValueError(f"{count} criteria have the id {name!r}; give each its own")
    return named


class Rubric(PromptedEvaluator):
    """A model checks each criterion: met or not, or 0-10 if it has `score_ranges`; the score is
    the weighted mean."""

    type = "rubric"
    aliases = ("rubrics",)

    rubrics: Annotated[
        ListOf[Criterion],
        BeforeValidator(
            require(
                _is_short,
                f"there are more than {_MAX_CRITERIA:,} criteria; "
                "split them, because all criteria of a rubric go into one prompt",
            ),
            json_schema_input_type=list[NonEmpty | Criterion],
        ),
        AfterValidator(_with_ids),
    ] = spelled(
        "rubrics",
        "criteria",
        json_schema_extra={"minItems": 1, "maxItems": _MAX_CRITERIA},
        description="The criteria: plain strings, or objects with `outcome`.",
    )

    async def evaluate(self, case: Case) -> Score:
        """The weighted mean of the criteria; AttemptError if the judge's reply lacks one."""
        variables = prompt_variables(case, [criterion.model_dump() for criterion in self.rubrics])
        prompt = self.compose(_TEMPLATE, variables, _FORM)
        read = partial(read_checks, criteria=self.rubrics)
        return await ask_judge(case.ask, self, prompt, _FORM, ("checks",), read)

    def warnings(self) -> Sequence[tuple[str, str, str]]:
        """Those of every prompt, and thresholds of criteria that are not gates."""
        names = [
            criterion.name
            for criterion in self.rubrics
            if criterion.min_score is not None and not criterion.is_gate
        ]
        if not names:
            return super().warnings()
        problem = f"has a `min_score` without `required` ({', '.join(names)}), which has no effect"
        return (*super().warnings(), ("rubrics", problem, "add `required: true`"))

    def inner_gates(self) -> Sequence[tuple[str, Location | None]]:
        """The required criteria, by id."""
        return tuple(
            (criterion.name, criterion._location) for criterion in self.rubrics if criterion.is_gate
        )


class Opinion(JudgeReplyModel):
    """A judge's opinion on one criterion; `satisfied` or `score` is read by the criterion."""

    id: str
    satisfied: Any = None
    score: Any = None
    reasoning: str | None = None


class ChecksReply(JudgeReplyModel):
    """A judge's object for a rubric."""

    checks: list[Opinion]
    overall_reasoning: str | None = None


class _Satisfied(JudgeReplyModel):
    satisfied: bool


class _Points(JudgeReplyModel):
    score: float = Field(ge=0, le=10)


def read_checks(data: Mapping[str, Any], criteria: Sequence[Criterion]) -> Score:
    """The score of a judge's `checks`; UnreadableReply if a criterion is missing or given twice, or
    a check is invalid."""
    reply = validate_reply(ChecksReply, data)
    checks = {check.id: check for check in reply.checks}
    if len(checks) < len(reply.checks):
        raise UnreadableReply("`checks` has a criterion twice")
    if missing := [criterion.name for criterion in criteria if criterion.name not in checks]:
        raise UnreadableReply(f"`checks` lacks {', '.join(missing)}")
    scored = [(each, _read_check(checks[each.name], each)) for each in criteria]
    lines: dict[bool, list[str]] = {True: [], False: []}
    details, gates_failed = [], []
    for criterion, score in scored:
        name, threshold = criterion.name, criterion.threshold
        points = f" ({score * 10:g}/10)" if criterion.score_ranges else ""
        is_hit = reaches(score, PASS_SCORE if threshold is None else threshold)
        lines[is_hit].append(f"{name}: {criterion.outcome}{points}")
        details.append({"id": name, "score": score, "reasoning": checks[name].reasoning or ""})
        if not criterion.holds(score):
            gates_failed.append(name)
    return Score(
        value=weighted_mean([(score, criterion.weight) for criterion, score in scored]),
        hits=tuple(lines[True]),
        misses=tuple(lines[False]),
        reasoning=reply.overall_reasoning or "",
        details={"checks": details},
        gates_failed=tuple(gates_failed),
    )


def _read_check(reply: Opinion, criterion: Criterion) -> float:
    try:
        if criterion.score_ranges:
            return validate_reply(_Points, {"score": reply.score}).score / 10
        return float(validate_reply(_Satisfied, {"satisfied": reply.satisfied}).satisfied)
    except UnreadableReply as error:
        raise UnreadableReply(f"the check of {criterion.name}: {error}") from None
