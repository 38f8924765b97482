"""`rubric`: a model checks the answer against criteria, all in one call."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
    model_validator,
)
from pydantic_core import CoreSchema

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import require
from agentevals_action.evaluators.json.objects import UnreadableReply
from agentevals_action.evaluators.judges.produced_files import find_produced_files
from agentevals_action.evaluators.judges.prompts import prompt_variables
from agentevals_action.evaluators.judges.replies import JudgeReplyModel, ask_judge, validate_reply
from agentevals_action.evaluators.judges.votes import VotingEvaluator, list_values
from agentevals_action.formatting import list_paths
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.evaluator import Case
from agentevals_action.model.result import PASS_SCORE, Score
from agentevals_action.results.scoring import reaches, weighted_mean
from agentevals_action.validation.file_model import (
    FileModel,
    ListOf,
    NonEmpty,
    Weight,
    expected,
    locate,
    spelled,
)

#: Criteria of one rubric: all of them go into one prompt.
_MAX_CRITERIA = 1_000
_FORM = (
    '{"checks": [{"id": <its id>, "satisfied": <true or false>, "score": <0 to 10, where asked '
    'for>, "reasoning": <a string>}, …]}'
)


Points = Annotated[int, Field(ge=0, le=10)]
Threshold = Annotated[float, Field(gt=0, le=1)]
Requirement = Annotated[
    str,
    AfterValidator(require(str.strip, "the text is empty; write the requirement on the answer")),
]


class ScoreRange(FileModel):
    """The description of answers whose score is in a range."""

    score_range: Annotated[
        ListOf[Points],
        Field(min_length=2, max_length=2),
        AfterValidator(
            require(
                lambda ends: ends[0] <= ends[1],
                "it ends below its start; write the lower score first",
            )
        ),
    ] = Field(description="The lowest and the highest score.")
    outcome: Requirement = spelled(
        "outcome",
        "expected_outcome",
        description="The description of an answer with a score in the range.",
    )


#: `{0: text, 5: text}`; the keys of a JSON object are texts.
_RangesByScore = Annotated[
    dict[Annotated[str, Field(pattern="^([0-9]|10)$")], str],
    Field(min_length=1, json_schema_extra={"additionalProperties": False}),
]
_ListOfRanges = Annotated[ListOf[ScoreRange], Field(min_length=1)]


def _read_ranges(value: Any) -> Any:
    """Reads an object from scores to texts as ranges of one score."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping):
        raise expected("a list, or an object from scores to texts: {0: poor, 10: good}")
    scores = [int(key) if isinstance(key, str) and key.isdecimal() else key for key in value]
    texts = zip(scores, value.values(), strict=True)
    return [{"score_range": [score, score], "outcome": text} for score, text in texts]


def _check_ranges(ranges: tuple[ScoreRange, ...]) -> tuple[ScoreRange, ...]:
    """The ranges in their order; ValueError if two have the same score."""
    ends = (entry.score_range for entry in ranges)
    counts = Counter(score for low, high in ends for score in range(low, high + 1))
    score, count = counts.most_common(1)[0]
    if count > 1:
        raise ValueError(f"it describes {score} twice; describe each score once")
    return tuple(sorted(ranges, key=lambda entry: entry.score_range))


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
    required: bool | Threshold = Field(
        default=False,
        description="A gate: the test fails if the criterion scores 0, or less than the "
        "number given here.",
    )
    min_score: Threshold | None = Field(
        default=None, description="The score (0-1) under which a required criterion fails the test."
    )
    score_ranges: (
        Annotated[
            _ListOfRanges,
            AfterValidator(_check_ranges),
            BeforeValidator(_read_ranges, json_schema_input_type=_RangesByScore | _ListOfRanges),
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
        json_schema = super().__get_pydantic_json_schema__(schema, handler)
        json_schema["allOf"][0]["anyOf"].append({"required": ["id", "score_ranges"]})
        return json_schema

    @model_validator(mode="wrap")
    @classmethod
    def _read(
        cls, value: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        data = value
        keys = value.keys() if isinstance(value, Mapping) else set()
        if "required_min_score" in keys:
            raise ValueError("required_min_score is not supported; write min_score, from 0 to 1")
        if {"id", "score_ranges"} <= keys and not {"outcome", "expected_outcome"} & keys:
            # As in AgentV: the ranges describe the requirement.
            data = {**value, "outcome": value["id"]}
        criterion = handler(data)
        criterion._location = locate(info, value)
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

    def is_hit(self, score: float) -> bool:
        """Whether a score of 0-1 is shown as a hit."""
        return reaches(score, PASS_SCORE if self.threshold is None else self.threshold)

    def describe(self, score: float) -> str:
        """The criterion, and its points of ten if it has them."""
        points = f" ({score * 10:g}/10)" if self.score_ranges else ""
        return f"{self.name}: {self.outcome}{points}"


def _read_criterion(value: Any) -> Any:
    """Reads a plain string as the outcome."""
    return {"outcome": value} if isinstance(value, str) else value


def _with_ids(criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
    """The criteria with an id each: `rubric-N` by position if it has none."""
    named = tuple(
        criterion if criterion.id else criterion.model_copy(update={"id": f"rubric-{position}"})
        for position, criterion in enumerate(criteria, 1)
    )
    for name, count in Counter(criterion.id for criterion in named).items():
        if count > 1:
            raise ValueError(f"{count} criteria have the id {name!r}; give each its own")
    return named


class Rubric(VotingEvaluator):
    """A model checks each criterion: met or not, or 0-10 if it has `score_ranges`; the score is
    the weighted mean."""

    type = "rubric"
    template = "rubric.md.j2"
    asks = "rubrics"

    rubrics: Annotated[
        ListOf[
            Annotated[
                Criterion,
                BeforeValidator(_read_criterion, json_schema_input_type=NonEmpty | Criterion),
            ]
        ],
        Field(min_length=1, max_length=_MAX_CRITERIA),
        AfterValidator(_with_ids),
    ] = spelled(
        "rubrics",
        "criteria",
        description="The criteria: plain strings, or objects with `outcome`.",
    )

    async def evaluate(self, case: Case) -> Score:
        """The weighted mean of the criteria; AttemptError if the judge's reply lacks a criterion.
        Criteria about a file that the judge cannot see are not scored."""
        pictures, unseen = find_produced_files(case)
        variables = prompt_variables(case, [criterion.model_dump() for criterion in self.rubrics])
        prompt = self.compose({**variables, "unseen_files": unseen}, _FORM)
        read = partial(read_checks, criteria=self.rubrics, may_skip=bool(unseen))
        score = await self.vote(
            partial(ask_judge, case.ask, self, prompt, _FORM, ("checks",), read, pictures)
        )
        if len(score.details["checks"]) < len(self.rubrics):
            about = f"criteria about files that a judge cannot see ({list_paths(unseen)})"
            case.notice(f"test `{case.test.id}`: {about} are not scored")
        return score

    def combine(self, judgements: Sequence[Score]) -> Score:
        """The score of the votes on each criterion, among the judgements that have it."""
        by_id: dict[str, list[Mapping[str, Any]]] = {}
        for judgement in judgements:
            for check in judgement.details["checks"]:
                by_id.setdefault(check["id"], []).append(check)
        scored, reasons = [], []
        for criterion in self.rubrics:
            if checks := by_id.get(criterion.name):
                scores = [check["score"] for check in checks]
                value, median = self.aggregate_scores(scores, criterion.is_hit)
                scored.append((criterion, value, checks[median]["reasoning"]))
                met = sum(map(criterion.is_hit, scores))
                if 0 < met < len(checks):
                    reasons.append(f"{criterion.name}: met in {met} of {len(checks)}.")
        _, median = self.aggregate_scores(list_values(judgements), self.is_good)
        reasons.append(judgements[median].reasoning)
        return replace(_score_checks(scored), reasoning=" ".join(filter(None, reasons)))

    def warnings(self) -> Sequence[tuple[str, str, str]]:
        """The warnings of every prompt, and thresholds of criteria that are not gates."""
        names = ", ".join(
            criterion.name
            for criterion in self.rubrics
            if criterion.min_score is not None and not criterion.is_gate
        )
        problem = f"has a `min_score` without `required` ({names}), which has no effect"
        threshold_warnings = [("rubrics", problem, "add `required: true`")] if names else []
        return (*super().warnings(), *threshold_warnings)

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


def read_checks(
    data: Mapping[str, Any], criteria: Sequence[Criterion], *, may_skip: bool = False
) -> Score:
    """The score of a judge's `checks`; UnreadableReply if a criterion is missing or given twice, or
    a check is invalid. A judge that `may_skip` leaves out criteria with null, but not all, and no
    gate."""
    reply = validate_reply(ChecksReply, data)
    checks = {check.id: check for check in reply.checks}
    if len(checks) < len(reply.checks):
        raise UnreadableReply("`checks` has a criterion twice")
    if missing := [criterion.name for criterion in criteria if criterion.name not in checks]:
        raise UnreadableReply(f"`checks` lacks {', '.join(missing)}")
    opinions = [(criterion, checks[criterion.name]) for criterion in criteria]
    asked = [
        (criterion, opinion)
        for criterion, opinion in opinions
        if criterion.is_gate or not may_skip or (opinion.satisfied, opinion.score) != (None, None)
    ]
    if not asked:
        raise AttemptError("judge", "the judge sees no file that the criteria are about")
    scored = [
        (criterion, _read_check(opinion, criterion), opinion.reasoning or "")
        for criterion, opinion in asked
    ]
    return replace(_score_checks(scored), reasoning=reply.overall_reasoning or "")


def _score_checks(scored: Sequence[tuple[Criterion, float, str]]) -> Score:
    """The score of criteria, each with its score (0-1) and the reason."""
    texts = [(criterion.describe(score), criterion.is_hit(score)) for criterion, score, _ in scored]
    return Score(
        value=weighted_mean([(score, criterion.weight) for criterion, score, _ in scored]),
        gates_failed=tuple(
            criterion.name for criterion, score, _ in scored if not criterion.holds(score)
        ),
        hits=tuple(text for text, is_hit in texts if is_hit),
        misses=tuple(text for text, is_hit in texts if not is_hit),
        details={
            "checks": [
                {"id": criterion.name, "score": score, "reasoning": reasoning}
                for criterion, score, reasoning in scored
            ]
        },
    )


def _read_check(opinion: Opinion, criterion: Criterion) -> float:
    try:
        if criterion.score_ranges:
            return validate_reply(_Points, {"score": opinion.score}).score / 10
        return float(validate_reply(_Satisfied, {"satisfied": opinion.satisfied}).satisfied)
    except UnreadableReply as error:
        raise UnreadableReply(f"the check of {criterion.name}: {error}") from None
