"""`icontains`: the output has the substring, case folded."""

from typing import Annotated

from msgspec import Meta

from agentevals_action.evaluators import matching
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class IContains(Options):
    """Passes when the output contains a text, case folded."""

    type = "icontains"

    value: Annotated[
        matching.Text,
        Meta(description="The text that the output must contain, in upper or lower case."),
    ]

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the text is there, else 0."""
        return matching.score_all(case.trace.output, (self.value,), matching.folded)

    def label(self) -> str:
        """The text."""
        return self.value
