"""`equals`: the output is the text, both trimmed."""

from typing import Annotated

from msgspec import Meta

from agentevals_action.evaluators import matching
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.formatting import quoted
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class Equals(Options):
    """Passes when the output is exactly a text, both trimmed; an empty text asks for an empty
    output."""

    type = "equals"

    value: Annotated[
        str,
        Meta(description="The text that the output must be; white space around both is left out."),
    ]

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the trimmed output is the trimmed text, else 0."""
        wanted = self.value.strip()
        holds = case.trace.output.strip() == wanted
        return matching.score_check(
            holds, f"equals {quoted(wanted)}", f"does not equal {quoted(wanted)}"
        )

    def label(self) -> str:
        """The text."""
        return self.value.strip()
