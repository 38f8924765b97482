"""`contains_any`: the output has at least one of the substrings."""

from typing import Annotated

from msgspec import Meta

from agentevals_action.evaluators import matching
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class ContainsAny(Options):
    """Passes when the output contains at least one of the texts, case heeded."""

    type = "contains_any"

    value: Annotated[
        matching.Texts,
        Meta(
            description="Texts of which the output must contain at least one, upper and lower case heeded."
        ),
    ]

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when one of the texts is there, else 0."""
        return matching.score_any(case.trace.output, self.value)

    def label(self) -> str:
        """The texts, joined by hyphens."""
        return "-".join(self.value)
