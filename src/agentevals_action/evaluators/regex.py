"""`regex`: the pattern is found in the output."""

from typing import Annotated

from msgspec import Meta

from agentevals_action.entries.entry import Checked, Seen, checks
from agentevals_action.evaluators import matching, patterns
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.formatting import quoted
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


def _known_flags(flags: str) -> str:
    for flag in flags:
        if flag not in patterns.FLAGS:
            raise ValueError(
                f"{flag!r} is no flag of a regular expression; write one or more of {', '.join(patterns.FLAGS)}"
            )
    return flags


class Regex(Options):
    """Passes when a regular expression is found anywhere in the output."""

    type = "regex"

    # Declared before the pattern, which is compiled with them.
    flags: Annotated[
        Annotated[str, Checked(_known_flags)],
        Meta(
            description="Flags of the pattern: i (case is not heeded), m (^ and $ at each line), s (. is any character), x (verbose).",
            extra_json_schema={"pattern": "^[imsx]*$"},
        ),
    ] = ""
    value: Annotated[
        matching.Text,
        Meta(
            description="The pattern that must be found somewhere in the output, in Python's spelling or JavaScript's."
        ),
    ]

    @checks("value")
    @classmethod
    def _compiles(cls, value: str, seen: Seen) -> str:
        patterns.compile_pattern(value, seen.fields.get("flags", ""))
        return value

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the pattern is found, else 0; AttemptError when it does not come to an end."""
        found = await patterns.search(self.value, self.flags, case.trace.output, "this output")
        wanted = quoted(self.value)
        return matching.score_check(found, f"matches {wanted}", f"does not match {wanted}")

    def label(self) -> str:
        """The pattern."""
        return self.value
