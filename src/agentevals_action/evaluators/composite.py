"""`composite`: several evaluators whose scores become one."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from agentevals_action.evaluators.base import is_given, require, run_evaluators
from agentevals_action.formatting import join_choices
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.evaluator import AnyEvaluator, Case, Evaluator, with_own_names
from agentevals_action.model.result import (
    BORDERLINE_SCORE,
    PASS_SCORE,
    ErrorInfo,
    EvaluatorResult,
    Score,
)
from agentevals_action.results.scoring import find_deciding, reaches, weighted_mean
from agentevals_action.validation.file_model import (
    FileModel,
    ListOf,
    Steps,
    Weight,
    errors_at,
    spelled,
)

Aggregation = Literal[
    "weighted_average", "minimum", "maximum", "safety_gate", "all_or_nothing", "threshold"
]
_NAMES: tuple[Aggregation, ...] = get_args(Aggregation)
#: The aggregations that use weights.
_WEIGHTED: Sequence[Aggregation] = ("weighted_average", "safety_gate", "all_or_nothing")
#: The fields that only some aggregations have, and the advice for the others.
_FIELDS: Mapping[str, tuple[Sequence[Aggregation], str]] = {
    "weights": (_WEIGHTED, "remove it, because weights have no effect, or write another `type`"),
    "required": (
        ("safety_gate",),
        "write `type: safety_gate`, or mark the evaluators themselves as `required`",
    ),
    "threshold": (
        ("all_or_nothing", "threshold"),
        "write `type: all_or_nothing`, or `required: 0.7` at the evaluator for a gate at 0.7",
    ),
}


def _with_underscores(value: Any) -> Any:
    return value.replace("-", "_") if isinstance(value, str) else value


class Aggregator(FileModel):
    """How the scores of the evaluators become one."""

    type: Annotated[
        Aggregation,
        BeforeValidator(_with_underscores),
        WithJsonSchema({"enum": [*_NAMES, *(name.replace("_", "-") for name in _WEIGHTED)]}),
    ] = Field(
        default="weighted_average",
        description="`weighted_average`, `minimum`, `maximum`, `safety_gate` (the "
        "evaluators in `required` must reach 0.6, or the test fails), "
        "`all_or_nothing` (0 if one score is under `threshold`), or `threshold` (the same as the "
        "composite's own).",
    )
    weights: dict[str, Weight] = Field(
        default_factory=dict,
        description="Weights by evaluator name, 0 to 1,000,000; they take precedence over "
        "`weight`.",
    )
    required: ListOf[str] = Field(
        default=(),
        description="For `safety_gate`: names of the evaluators that run first and must reach 0.6.",
    )
    threshold: float = Field(
        default=PASS_SCORE,
        gt=0,
        le=1,
        description="For `all_or_nothing`: the score that each must reach; for `threshold`: the "
        "fraction that must pass; over 0 and up to 1.",
    )

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        misplaced: dict[Steps, str] = {
            (name,): f"it does not belong to `{self.type}`; {advice}"
            for name, (aggregations, advice) in _FIELDS.items()
            if name in self.model_fields_set and self.type not in aggregations
        }
        if misplaced:
            raise errors_at(misplaced)
        if self.type == "safety_gate" and not self.required:
            raise ValueError(
                "a `safety_gate` without `required` has no effect; "
                "name the evaluators that must reach 0.6"
            )
        if self.type == "threshold" and "threshold" not in self.model_fields_set:
            raise ValueError("`threshold` is missing; write the fraction that must pass, as 0.5")
        return self

    def unknown_names(self, names: Sequence[str]) -> Mapping[Steps, str]:
        """The problem of each name in `weights` and `required` that is not one of `names`."""
        written: dict[Steps, str] = {("weights", name): name for name in self.weights}
        written |= {("required", index): name for index, name in enumerate(self.required)}
        return {
            steps: f"there is no evaluator `{name}` in it; write {join_choices(names)}"
            for steps, name in written.items()
            if name not in names
        }

    def combine(self, scores: Sequence[tuple[float, float]]) -> float:
        """The score of one or more (score, weight) pairs; the gate of a `safety_gate` is open."""
        lowest, highest = min(score for score, _ in scores), max(score for score, _ in scores)
        if self.type == "minimum":
            return lowest
        if self.type == "maximum":
            return highest
        if self.type == "all_or_nothing" and not reaches(lowest, self.threshold):
            return 0.0
        return weighted_mean(scores)


class Composite(Evaluator):
    """Several evaluators whose scores become one by `aggregator`; with `threshold`, 1 if enough of
    them pass, else 0."""

    type = "composite"

    evaluators: Annotated[
        ListOf[AnyEvaluator],
        AfterValidator(with_own_names),
        WithJsonSchema({"type": "array", "minItems": 1}),
    ] = spelled(
        "evaluators",
        "assertions",
        "assert",
        min_length=1,
        exclude=True,
        description="The evaluators: objects of any type, also composites, and plain strings.",
    )
    aggregator: Aggregator = Field(
        default=Aggregator(),
        description="How their scores become one; a weighted average if missing.",
    )
    threshold: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None,
        BeforeValidator(
            require(is_given, "it is empty; write a number over 0 and up to 1, or remove it")
        ),
        WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
    ] = Field(
        default=None,
        description="Instead of `aggregator`: the fraction of the evaluators that must "
        "pass, over 0 and up to 1.",
    )

    @field_validator("evaluators")
    @classmethod
    def _check_scores(cls, evaluators: tuple[Evaluator, ...]) -> tuple[Evaluator, ...]:
        problem = "it gives no score to an answer; move it out of the composite"
        problems: dict[Steps, str] = {
            (index,): problem for index, evaluator in enumerate(evaluators) if evaluator.compares
        }
        if problems:
            raise errors_at(problems)
        return evaluators

    @field_validator("aggregator")
    @classmethod
    def _check_names(cls, aggregator: Aggregator, info: ValidationInfo) -> Aggregator:
        children = info.data.get("evaluators")
        if children is not None and (
            unknown := aggregator.unknown_names([child.name for child in children])
        ):
            raise errors_at(unknown)
        return aggregator

    @model_validator(mode="after")
    def _check_one_rule(self) -> Self:
        if self.threshold is not None and "aggregator" in self.model_fields_set:
            problem = "`aggregator` decides the score already; remove one of them"
            raise errors_at({("threshold",): problem})
        return self

    def children(self) -> Sequence[Evaluator]:
        """The evaluators."""
        return self.evaluators

    @property
    def rule(self) -> Aggregator:
        """The aggregator; the field `threshold` stands for an aggregator of this type."""
        if self.threshold is None:
            return self.aggregator
        return Aggregator(type="threshold", threshold=self.threshold)

    def inner_gates(self) -> Sequence[tuple[str, Location | None]]:
        """The safety gate itself, then the gates of the evaluators."""
        own_gate = [("", None)] if self.aggregator.type == "safety_gate" else []
        inner = [(gate.name, gate.location) for child in self.evaluators for gate in child.gates()]
        return (*own_gate, *inner)

    async def evaluate(self, case: Case) -> Score:
        """The children's scores as one; a child that could not be scored makes the composite an
        error, and failed gates are kept. Advisory children decide nothing, unless all children are
        advisory: then the composite is advisory, too."""
        weights, required = self.aggregator.weights, self.aggregator.required
        children = [
            child.model_copy(update={"weight": weights.get(child.name, child.weight)})
            for child in self.evaluators
        ]
        first = [child for child in children if child.name in required]
        done = {result.name: result for result in await run_evaluators(first, case)}
        closing = [
            result
            for result in done.values()
            if result.score is not None and not result.advisory
            if not reaches(result.score, BORDERLINE_SCORE)
        ]
        rest = [child for child in children if child.name not in done]
        if not closing:
            # Also if a required evaluator is an error: a gate inside the others may have failed.
            done |= {result.name: result for result in await run_evaluators(rest, case)}
        results = tuple(done[child.name] for child in children if child.name in done)
        others = tuple(result for result in results if not result.advisory)
        deciding = others if closing else find_deciding(results)
        counted = deciding or results
        value: float | None = 0.0
        if closing:
            reasoning = f"safety_gate: closed by {', '.join(map(_name_and_score, closing))}"
            if rest:
                reasoning += f"; not run: {', '.join(child.name for child in rest)}"
        else:
            value, reasoning = self._combine(counted)
        gates = [gate for result in counted for gate in result.gates_failed]
        errors = [
            ErrorInfo(kind=result.error.kind, message=f"{result.name}: {result.error.message}")
            for result in counted
            if result.error
        ]
        return Score(
            value=value,
            is_unknown=any(result.is_unknown for result in counted),
            hits=tuple(hit for result in counted for hit in result.hits),
            misses=tuple(miss for result in counted for miss in result.misses),
            reasoning=reasoning,
            details={"aggregator": self.rule.type},
            gates_failed=("", *gates) if closing else tuple(gates),
            children=results,
            error=errors[0] if errors else None,
            advisory="" if deciding else next(filter(None, (child.advisory for child in results))),
        )

    def _combine(self, results: Sequence[EvaluatorResult]) -> tuple[float | None, str]:
        """The score, None if a result has none, and how it was made."""
        scores = [(result.score, result.weight) for result in results if result.score is not None]
        is_known = len(scores) == len(results)
        rule = self.rule
        if rule.type == "threshold":
            passed = sum(result.passed is True for result in results)
            value = float(reaches(passed / len(results), rule.threshold)) if is_known else None
            wanted = f"a fraction of {rule.threshold:g} is required"
            return value, f"{passed} of {len(results)} pass; {wanted}"
        at = f" at {rule.threshold:g}" if rule.type == "all_or_nothing" else ""
        parts = [
            _name_and_score(result) + (f" × {result.weight:g}" if rule.type in _WEIGHTED else "")
            for result in results
        ]
        value = rule.combine(scores) if is_known else None
        return value, f"{rule.type}{at}: {', '.join(parts)}"


def _name_and_score(result: EvaluatorResult) -> str:
    score = "could not be scored" if result.score is None else f"{result.score:.4g}"
    return f"{result.name} {score}"
