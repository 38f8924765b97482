"""`composite`: several evaluators as one, by an aggregator or by how many of them pass."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta

from agentevals_action.entries.entry import Aside, Before, Checked, Seen, Shown, Written, checks
from agentevals_action.evaluators.aggregation import WEIGHING, Aggregator, closes_gate, enough_pass
from agentevals_action.evaluators.base import Case, Options, grade_all
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import PASS_SCORE, ErrorInfo, EvaluatorResult, Score
from agentevals_action.model.suite import Evaluator
from agentevals_action.results.scoring import reaches
from agentevals_action.suites.files.validation_errors import Refusal, Refused

_SHARE_SCHEMA = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}


def _given(value: Any) -> Any:
    if value is None:
        raise ValueError("it is empty; write a number over 0 and up to 1, or leave it out")
    return value


def _unlike(evaluators: tuple[Evaluator, ...]) -> tuple[Evaluator, ...]:
    if len({evaluator.name for evaluator in evaluators}) < len(evaluators):
        raise ValueError("two of them have the same name; give each its own")
    return evaluators


class Composite(Options):
    """Several evaluators as one: their scores by `aggregator`; or, with `threshold`, 1 when enough
    of them pass and else 0."""

    type = "composite"
    aliases = ("assert_set",)
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"evaluators": ("assertions", "assert")}
    children_field = "evaluators"

    evaluators: Annotated[
        Annotated[tuple[Evaluator, ...], Checked(_unlike), Shown({"type": "array", "minItems": 1})],
        Meta(
            min_length=1,
            description="The evaluators inside: objects of any type, composites too, and plain strings.",
        ),
        Aside(is_read=True),
    ]
    aggregator: Annotated[
        Aggregator,
        Meta(description="How their scores become one; a weighted average when missing."),
    ] = Aggregator()
    threshold: Annotated[
        Annotated[Annotated[float, Meta(gt=0, le=1)] | None, Before(_given), Shown(_SHARE_SCHEMA)],
        Meta(
            description="In place of `aggregator`: the fraction of the evaluators that must pass, over 0 and up to 1."
        ),
    ] = None

    @checks("aggregator")
    @classmethod
    def _names_are_known(cls, aggregator: Aggregator, seen: Seen) -> Aggregator:
        if "evaluators" in seen.fields and (
            unknown := aggregator.unknown([child.name for child in seen.fields["evaluators"]])
        ):
            raise Refused(*unknown)
        return aggregator

    def completed(self, written: Written) -> Self:
        """Itself; Refused when it has two ways to make one score."""
        if self.threshold is not None and "aggregator" in written.data:
            said = "`aggregator` stands beside it and decides the score already; keep one of them"
            raise Refused(Refusal(("threshold",), self.threshold, said=said))
        return self

    def children(self) -> Sequence[Evaluator]:
        """The evaluators inside."""
        return self.evaluators

    def inner_gates(self) -> Sequence[tuple[str, Location | None]]:
        """A safety gate itself, then the gates of the evaluators inside."""
        own: tuple[tuple[str, Location | None], ...] = (
            (("", None),) if self.aggregator.type == "safety_gate" else ()
        )
        return (
            *own,
            *((gate.name, gate.location) for child in self.evaluators for gate in child.gates),
        )

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """The children's scores as one; what could not be told of them is the composite's error,
        failed gates are kept beside it."""
        weights = self.aggregator.weights
        children = [
            replace(child, weight=weights.get(child.name, child.weight))
            for child in self.evaluators
        ]
        first = [child for child in children if child.name in self.aggregator.required]
        done = {result.name: result for result in await grade_all(first, case)}
        closing = [
            result
            for result in done.values()
            if result.score is not None and closes_gate(result.score)
        ]
        if not closing:
            # Also when one that is required could not be told: a gate inside the others may have
            # failed all the same.
            left = [child for child in children if child.name not in done]
            done |= {result.name: result for result in await grade_all(left, case)}
        results = tuple(done[child.name] for child in children if child.name in done)
        return Score(
            value=0.0 if closing else self._value(results),
            best=None if closing else self._value([_at_best(result) for result in results]),
            hits=tuple(hit for result in results for hit in result.hits),
            misses=tuple(miss for result in results for miss in result.misses),
            reasoning=self._closed_by(closing, done) if closing else self._reasoning(results),
            details={
                "aggregator": "threshold" if self.threshold is not None else self.aggregator.type
            },
            gates_failed=(
                *([""] if closing else []),
                *(gate for result in results for gate in result.gates_failed),
            ),
            children=results,
            error=next(
                (_inside(result.name, result.error) for result in results if result.error), None
            ),
        )

    def _value(self, results: Sequence[EvaluatorResult]) -> float | None:
        scores = [(result.score, result.weight) for result in results if result.score is not None]
        if len(scores) < len(results):
            return None
        if self.threshold is not None:
            return enough_pass([result.passed is True for result in results], self.threshold)
        return self.aggregator.combine(scores)

    def _reasoning(self, results: Sequence[EvaluatorResult]) -> str:
        if self.threshold is not None:
            passed = sum(result.passed is True for result in results)
            return f"{passed} of {len(results)} pass; a fraction of {self.threshold:g} is asked for"
        weighed = self.aggregator.type in WEIGHING
        told = ", ".join(
            _shown(result) + (f" × {result.weight:g}" if weighed else "") for result in results
        )
        at = (
            f" at {self.aggregator.threshold:g}" if self.aggregator.type == "all_or_nothing" else ""
        )
        return f"{self.aggregator.type}{at}: {told}"

    def _closed_by(
        self, closing: Sequence[EvaluatorResult], done: Mapping[str, EvaluatorResult]
    ) -> str:
        left = ", ".join(child.name for child in self.evaluators if child.name not in done)
        return f"safety_gate: closed by {', '.join(map(_shown, closing))}" + (
            f"; not run: {left}" if left else ""
        )


def _at_best(result: EvaluatorResult) -> EvaluatorResult:
    """A result as it might be if what the trace lacks were known."""
    if result.best is None:
        return result
    passed = reaches(result.best, result.required or PASS_SCORE) and not result.gates_failed
    return replace(result, score=result.best, passed=passed)


def _inside(name: str, error: ErrorInfo) -> ErrorInfo:
    return ErrorInfo(kind=error.kind, message=f"{name}: {error.message}")


def _shown(result: EvaluatorResult) -> str:
    return f"{result.name} {'could not be told' if result.score is None else f'{result.score:.4g}'}"
