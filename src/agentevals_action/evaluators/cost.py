"""`cost`: the answer cost no more than a budget."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from agentevals_action.evaluators import metrics
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class Cost(Options):
    """Passes when the answer cost no more than a budget; an unknown cost is a miss."""

    type = "cost"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"budget": ("max_usd",)}

    budget: Annotated[
        float, Meta(ge=0, description="The most that the answer may cost, in US dollars.")
    ]

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the cost is within the budget, else 0."""
        return metrics.score_checks(
            metrics.at_most("cost", case.trace.cost_usd, self.budget, "USD")
        )
