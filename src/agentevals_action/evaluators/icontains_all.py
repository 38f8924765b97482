"""`icontains_all`: the output has all of the substrings, case folded."""

from typing import Annotated

from msgspec import Meta

from agentevals_action.evaluators import matching
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class IContainsAll(Options):
    """Passes when the output contains all of the texts, case folded."""

    type = "icontains_all"

    value: Annotated[
        matching.Texts,
        Meta(description="Texts that the output must all contain, in upper or lower case."),
    ]

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when all of the texts are there, else 0."""
        return matching.score_all(case.trace.output, self.value, matching.folded)

    def label(self) -> str:
        """The texts, joined by hyphens."""
        return "-".join(self.value)
