"""`contains`: the output has the substring."""

from typing import Annotated

from msgspec import Meta

from agentevals_action.evaluators import matching
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class Contains(Options):
    """Passes when the output contains a text, case heeded."""

    type = "contains"

    value: Annotated[
        matching.Text,
        Meta(description="The text that the output must contain, upper and lower case heeded."),
    ]

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the text is there, else 0."""
        return matching.score_all(case.trace.output, (self.value,))

    def label(self) -> str:
        """The text."""
        return self.value
