"""Several judgements of one answer, by one model or by several, and the score that they give."""

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from statistics import median_high, median_low
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
    def _check_targets(self) -> Self:
        if self.targets is None:
            return self
        name, count = Counter(self.targets).most_common(1)[0]
        if self.target is not None:
            raise errors_at({("targets",): "`target` names a judge, too; remove one of them"})
        if count > 1:
            problem = f"it has `{name}` {count} times; name it once, and write `samples`"
            raise errors_at({("targets",): problem})
        return self

    def judge_names(self) -> Sequence[str]:
        """The field `targets`, or the field `target`."""
        return self.targets or super().judge_names()

    async def vote(self, judge: Callable[[int], Awaitable[Score]]) -> Score:
        """The score of all judgements; `judge` makes the one with a number. AttemptError if one
        could not be made: it might have decided."""
        if self._judgements() == 1:
            return await judge(0)
        # All of them end, so that all costs are known.
        ended = await asyncio.gather(*map(judge, range(self._judgements())), return_exceptions=True)
        judgements: list[Score] = []
        for result in ended:
            if isinstance(result, BaseException):
                raise result
            judgements.append(result)
        return self._describe(self.combine(judgements), judgements)

    @abstractmethod
    def combine(self, judgements: Sequence[Score]) -> Score:
        """The one score of several judgements."""

    def aggregate_scores(self, scores: Sequence[float], is_good: Callable[[float], bool]) -> float:
        """One score of several (0-1), of which some count for the answer (`is_good`).

        A tie counts against the answer, so that both rules agree on whether it passes: of an even
        number, the median is the one of the two in the middle that is worse."""
        if self.aggregate == "majority":
            is_won = 2 * sum(map(is_good, scores)) > len(scores)
            return float(is_won is not self.negate)
        return (median_high if self.negate else median_low)(scores)

    def is_good(self, score: float) -> bool:
        """Whether a judge's score passes, once it is negated if it has to be."""
        return reaches(self._final(score), self.gate_threshold or PASS_SCORE)

    def _judgements(self) -> int:
        return self.samples * max(len(self.judge_names()), 1)

    def _final(self, score: float) -> float:
        return 1 - score if self.negate else score

    def _passes(self, score: Score) -> bool:
        return self.is_good(known_value(score)) and not score.gates_failed

    def _describe(self, score: Score, judgements: Sequence[Score]) -> Score:
        """The score with how the judgements differ: as a hit or a miss if not all agree."""
        values = [self._final(known_value(each)) for each in judgements]
        passed, judges = [*map(self._passes, judgements)], self.targets or ("",)
        listed = ", ".join(
            f"{judges[number % len(judges)]} {value:.4g}".lstrip()
            for number, value in enumerate(values)
        )
        sentence = f"{sum(passed)} of {len(passed)} judgements pass"
        disagreement = (sentence,) if len({*passed}) > 1 else ()
        is_hit = self._passes(score) is not self.negate  # the negation exchanges hits and misses
        return replace(
            score,
            hits=(*score.hits, *(disagreement if is_hit else ())),
            misses=(*score.misses, *(() if is_hit else disagreement)),
            reasoning=f"{sentence} ({listed}). {score.reasoning}".rstrip(),
            details={**score.details, "judgements": values},
            models=tuple(model for each in judgements for model in each.models),
        )


def known_value(judgement: Score) -> float:
    """The value of a judgement, which has one: otherwise it ended in an error."""
    if judgement.value is None:
        raise TypeError("a judgement without a value")
    return judgement.value


def nearest(judgements: Sequence[Score], value: float) -> Score:
    """The first of the judgements whose value is nearest to another."""
    return min(judgements, key=lambda each: abs(known_value(each) - value))
