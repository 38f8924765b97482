"""Several judgements of one answer, by one model or by several, and the score that they give."""

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from statistics import median_low
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agentevals_action.evaluators.judges.prompts import PromptedEvaluator
from agentevals_action.model.result import PASS_SCORE, Score
from agentevals_action.results.scoring import reaches
from agentevals_action.validation.file_model import ListOf, NonEmpty, errors_at

_Names = Annotated[ListOf[NonEmpty], Field(min_length=2, max_length=10)]


class VotingEvaluator(PromptedEvaluator):
    """An evaluator that asks one or several judges, each once or several times."""

    targets: _Names | None = Field(
        default=None,
        exclude=True,
        description="Instead of `target`: the names of 2-10 targets that all judge, and vote.",
    )
    samples: Annotated[int, Field(ge=1, le=20)] = Field(
        default=1,
        exclude_if=lambda count: count == 1,  # so that other fingerprints stay the same
        description="How often each judge is asked about one answer, 1-20.",
    )
    aggregate: Literal["median", "majority"] = Field(
        default="median",
        exclude_if=lambda rule: rule == "median",
        description="How several judgements become one score: their `median`, or 1 if the "
        "`majority` passes and 0 otherwise; of a rubric, criterion by criterion. A tie does not "
        "pass.",
    )

    @model_validator(mode="after")
    def _check_votes(self) -> Self:
        name, count = Counter(self.targets or ("",)).most_common(1)[0]
        if self.targets and self.target is not None:
            raise errors_at({("targets",): "`target` names a judge, too; remove one of them"})
        if count > 1:
            problem = f"it has `{name}` {count} times; name it once, and write `samples`"
            raise errors_at({("targets",): problem})
        if self.negate and (self.targets or self.samples > 1):
            problem = "votes are not negated; ask for the opposite, and remove `negate`"
            raise errors_at({("negate",): problem})
        return self

    def judge_names(self) -> Sequence[str]:
        """The field `targets`, or the field `target`."""
        return self.targets or super().judge_names()

    async def vote(self, judge: Callable[[int], Awaitable[Score]]) -> Score:
        """The score of all judgements; `judge` makes the judgement of a number. AttemptError if one
        could not be made: it might have decided. The reasoning says how many judgements pass; this
        is a miss, too, if others do not."""
        judges = self.targets or ("",)
        numbers = range(self.samples * len(judges))
        if len(numbers) == 1:
            return await judge(0)
        # All judgements end, so that all costs are known.
        ended = await asyncio.gather(*map(judge, numbers), return_exceptions=True)
        if errors := [result for result in ended if isinstance(result, BaseException)]:
            raise errors[0]
        judgements = [result for result in ended if isinstance(result, Score)]
        score, values = self.combine(judgements), list_values(judgements)
        passed = sum(
            self.is_good(value) and not judgement.gates_failed
            for value, judgement in zip(values, judgements, strict=True)
        )
        sentence = f"{passed} of {len(numbers)} judgements pass"
        listed = ", ".join(
            f"{judges[number % len(judges)]} {value:.4g}".lstrip()
            for number, value in enumerate(values)
        )
        return replace(
            score,
            misses=(*score.misses, *([sentence] if 0 < passed < len(numbers) else [])),
            reasoning=f"{sentence} ({listed}). {score.reasoning}".rstrip(),
            details={**score.details, "judgements": values},
            models=tuple(model for judgement in judgements for model in judgement.models),
        )

    @abstractmethod
    def combine(self, judgements: Sequence[Score]) -> Score:
        """The one score of several judgements."""

    def aggregate_scores(
        self, scores: Sequence[float], is_good: Callable[[float], bool]
    ) -> tuple[float, int]:
        """One score of several (0-1), and the index of their median. Of an even number, the median
        is the lower middle one: a tie does not pass. So the majority passes if the median does."""
        median = median_low(scores)
        score = float(is_good(median)) if self.aggregate == "majority" else median
        return score, scores.index(median)

    def is_good(self, score: float) -> bool:
        """Whether a judge's score passes."""
        return reaches(score, self.gate_threshold or PASS_SCORE)


def list_values(judgements: Sequence[Score]) -> Sequence[float]:
    """The scores of judgements. A judgement without a score has ended in an error."""
    return [judgement.value or 0.0 for judgement in judgements]
