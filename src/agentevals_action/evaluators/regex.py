"""`regex`: the pattern is found in the output."""

import asyncio
import re
from typing import Annotated

import regex
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from agentevals_action import matching
from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator

#: Seconds that one search may take before the pattern counts as running away.
TIME_LIMIT = 2.0

_FLAGS = {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL, "x": regex.VERBOSE}
_ESCAPE = re.compile(r"\\(?:k<(\w+)>|.)", re.DOTALL)


def _known_flags(flags: str) -> str:
    for flag in flags:
        if flag not in _FLAGS:
            raise ValueError(f"{flag!r} is no flag of a regular expression; write one or more of {', '.join(_FLAGS)}")
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
        compile_pattern(value, info.data.get("flags", ""))
        return value

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the pattern is found, else 0; AttemptError when it does not come to an end."""
        pattern = compile_pattern(self.value, self.flags)
        try:
            # The search lets other threads run, so that a pattern that runs away holds up this test alone.
            match = await asyncio.to_thread(pattern.search, case.trace.output, timeout=TIME_LIMIT)
        except TimeoutError:
            message = f"the pattern {matching.quoted(self.value)} ran for over {TIME_LIMIT:g} s on this output"
            raise AttemptError("evaluator", message, "Write it without repetitions inside repetitions.") from None
        wanted = matching.quoted(self.value)
        return matching.score_check(match is not None, f"matches {wanted}", f"does not match {wanted}")

    def label(self) -> str:
        """The pattern."""
        return self.value


def compile_pattern(text: str, flags: str) -> "regex.Pattern[str]":
    """The compiled pattern, named groups in either spelling (`(?P<n>)` `(?P=n)`, `(?<n>)` `\\k<n>`); ValueError when it is none."""
    number = 0
    for flag in flags:
        number |= _FLAGS[flag]
    spelled = _ESCAPE.sub(lambda match: f"(?P={match[1]})" if match[1] else match[0], text)
    try:
        return regex.compile(spelled, number)
    except regex.error as error:
        raise ValueError(f"{matching.quoted(text)} is no regular expression: {error}") from None
    except RecursionError:
        raise ValueError(f"{matching.quoted(text)} is nested too deeply for a regular expression") from None
