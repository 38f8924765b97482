"""`regex`: the pattern is found in the output."""

from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from agentevals_action.evaluators.base import Case, Options
from agentevals_action.grading import matching, patterns
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


def _known_flags(flags: str) -> str:
    for flag in flags:
        if flag not in patterns.FLAGS:
            raise ValueError(f"{flag!r} is no flag of a regular expression; write one or more of {', '.join(patterns.FLAGS)}")
    return flags


class Regex(Options):
    """Passes when a regular expression is found anywhere in the output."""

    type = "regex"

    # Declared before the pattern, which is compiled with them.
    flags: Annotated[str, AfterValidator(_known_flags)] = Field(
        default="",
        description="Flags of the pattern: i (case is not heeded), m (^ and $ at each line), s (. is any character), x (verbose).",
        json_schema_extra={"pattern": "^[imsx]*$"},
    )
    value: matching.Text = Field(
        description="The pattern that must be found somewhere in the output, in Python's spelling or JavaScript's."
    )

    @field_validator("value")
    @classmethod
    def _compiles(cls, value: str, info: ValidationInfo) -> str:
        patterns.compile_pattern(value, info.data.get("flags", ""))
        return value

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the pattern is found, else 0; AttemptError when it does not come to an end."""
        found = await patterns.search(self.value, self.flags, case.trace.output, "this output")
        wanted = matching.quoted(self.value)
        return matching.score_check(found, f"matches {wanted}", f"does not match {wanted}")

    def label(self) -> str:
        """The pattern."""
        return self.value
