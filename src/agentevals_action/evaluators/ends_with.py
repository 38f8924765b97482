"""`ends_with`: the output ends with the text, both trimmed."""

from typing import Annotated

from msgspec import Meta

from agentevals_action.evaluators import matching
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.formatting import quoted
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class EndsWith(Options):
    """Passes when the output ends with a text, both trimmed."""

    type = "ends_with"

    value: Annotated[
        matching.TrimmedText,
        Meta(
            description="The text that the output must end with; white space around both is left out."
        ),
    ]

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the trimmed output ends with the trimmed text, else 0."""
        holds = case.trace.output.strip().endswith(self.value.strip())
        wanted = quoted(self.value.strip())
        return matching.score_check(holds, f"ends with {wanted}", f"does not end with {wanted}")

    def label(self) -> str:
        """The text."""
        return self.value
