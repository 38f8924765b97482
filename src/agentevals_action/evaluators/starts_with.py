"""`starts_with`: the output starts with the text, both trimmed."""

from typing import Annotated

from msgspec import Meta

from agentevals_action.evaluators import matching
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.formatting import quoted
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class StartsWith(Options):
    """Passes when the output starts with a text, both trimmed."""

    type = "starts_with"

    value: Annotated[
        matching.TrimmedText,
        Meta(description="What the output must start with; white space around both is left out."),
    ]

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the trimmed output starts with the trimmed text, else 0."""
        holds = case.trace.output.strip().startswith(self.value.strip())
        wanted = quoted(self.value.strip())
        return matching.score_check(holds, f"starts with {wanted}", f"does not start with {wanted}")

    def label(self) -> str:
        """The text."""
        return self.value
