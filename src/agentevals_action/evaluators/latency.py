"""`latency`: the agent answered in time."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from agentevals_action.evaluators import metrics
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class Latency(Options):
    """Passes when the agent took no longer than a limit; an unknown duration is a miss."""

    type = "latency"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"threshold": ("max_ms",)}

    threshold: Annotated[
        float, Meta(gt=0, description="The longest time allowed, in milliseconds.")
    ]

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the duration is within the limit, else 0."""
        return metrics.score_checks(
            metrics.at_most("duration", case.trace.duration_ms, self.threshold, "ms")
        )
