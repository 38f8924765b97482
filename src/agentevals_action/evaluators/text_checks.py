"""Evaluators that look for a text or a regular expression in the output.

They score 1 or 0."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from agentevals_action.evaluators.base import require
from agentevals_action.formatting import quoted
from agentevals_action.model.evaluator import Case, Evaluator
from agentevals_action.model.result import Score
from agentevals_action.validation.file_model import ListOf
from agentevals_action.validation.patterns import FLAGS, compile_pattern, search_pattern

#: Seconds for which a search may block the event loop; a longer one continues in a thread.
_BLOCKING_LIMIT = 0.02

_JAVASCRIPT = re.compile(r"/.+/[a-z]*", re.DOTALL)

_is_text = require(bool, "an empty text is in every output; write the text to look for")
_is_trimmed_text = require(
    str.strip, "the text is empty after trimming; write the text to look for"
)
_is_list = require(bool, "the list is empty; write at least one text")
Text = Annotated[str, AfterValidator(_is_text), Field(json_schema_extra={"minLength": 1})]
#: A text that is compared after trimming.
TrimmedText = Annotated[
    str, AfterValidator(_is_trimmed_text), Field(json_schema_extra={"minLength": 1})
]
Texts = Annotated[ListOf[Text], AfterValidator(_is_list), Field(json_schema_extra={"minItems": 1})]


def score_check(holds: bool, hit: str, miss: str) -> Score:
    """1 with the hit if the check holds, else 0 with the miss."""
    return Score(1.0, hits=(hit,)) if holds else Score(0.0, misses=(miss,))


class _TextCheck(Evaluator):
    #: The verb of a hit, and its infinitive.
    verbs: ClassVar[tuple[str, str]]

    def _hit(self, text: str) -> str:
        """What was found; for a negated check it is the miss."""
        verb, infinitive = self.verbs
        return f"must not {infinitive} {text}, but does" if self.negate else f"{verb} {text}"

    def _miss(self, text: str) -> str:
        return f"does not {self.verbs[1]} {text}"


def _line_break(texts: Sequence[str]) -> Sequence[tuple[str, str, str]]:
    """The warning about texts that end with a line break, which answers seldom have there."""
    if not any(text.endswith("\n") for text in texts):
        return ()
    problem = "ends with a line break, which the output must have there, too"
    return (("value", problem, "begin a block with `|-` instead of `|`"),)


class _ContainsCheck(_TextCheck):
    verbs = ("contains", "contain")
    ignore_case: ClassVar[bool] = False
    needs_all: ClassVar[bool] = True

    value: str | tuple[str, ...]

    def warnings(self) -> Sequence[tuple[str, str, str]]:
        """A text that ends with a line break."""
        texts = (self.value,) if isinstance(self.value, str) else self.value
        return (*super().warnings(), *_line_break(texts))

    async def evaluate(self, case: Case) -> Score:
        """1 if the output contains all texts, or any of them, else 0; each text found is a hit."""
        texts = (self.value,) if isinstance(self.value, str) else self.value
        fold = str.casefold if self.ignore_case else str
        output = fold(case.trace.output)
        found = [text for text in texts if fold(text) in output]
        missing = [quoted(text) for text in texts if text not in found]
        if not self.needs_all and found:
            missing = []
        elif not self.needs_all and len(missing) > 1:
            missing = [f"any of {', '.join(missing)}"]
        elif self.negate and missing:  # those that it contains are allowed
            found = []
        return Score(
            0.0 if missing else 1.0,
            hits=tuple(self._hit(quoted(text)) for text in found),
            misses=tuple(self._miss(text) for text in missing),
        )


class Contains(_ContainsCheck):
    """Passes if the output contains the text; case-sensitive."""

    type = "contains"

    value: Text = Field(description="The text that the output must contain.")


class ContainsAny(_ContainsCheck):
    """Passes if the output contains at least one of the texts; case-sensitive."""

    type = "contains_any"
    needs_all = False

    value: Texts = Field(description="Texts, at least one of which the output must contain.")


class ContainsAll(_ContainsCheck):
    """Passes if the output contains all of the texts; case-sensitive."""

    type = "contains_all"

    value: Texts = Field(description="Texts, all of which the output must contain.")


class IContains(Contains):
    """Passes if the output contains the text; not case-sensitive."""

    type = "icontains"
    ignore_case = True


class IContainsAny(ContainsAny):
    """Passes if the output contains at least one of the texts; not case-sensitive."""

    type = "icontains_any"
    ignore_case = True


class IContainsAll(ContainsAll):
    """Passes if the output contains all of the texts; not case-sensitive."""

    type = "icontains_all"
    ignore_case = True


class _TrimmedCheck(_TextCheck):
    holds: ClassVar[Callable[[str, str], bool]]

    value: str

    async def evaluate(self, case: Case) -> Score:
        """1 if the check holds for the output and the text, both trimmed, else 0."""
        text = self.value.strip()
        holds = type(self).holds(case.trace.output.strip(), text)
        return score_check(holds, self._hit(quoted(text)), self._miss(quoted(text)))


class StartsWith(_TrimmedCheck):
    """Passes if the output starts with the text, both trimmed."""

    type = "starts_with"
    holds = str.startswith
    verbs = ("starts with", "start with")

    value: TrimmedText = Field(description="The text that the output must start with.")


class EndsWith(_TrimmedCheck):
    """Passes if the output ends with the text, both trimmed."""

    type = "ends_with"
    holds = str.endswith
    verbs = ("ends with", "end with")

    value: TrimmedText = Field(description="The text that the output must end with.")


class Equals(_TrimmedCheck):
    """Passes if the output equals the text, both trimmed; an empty text requires an empty
    output."""

    type = "equals"
    holds = str.__eq__
    verbs = ("equals", "equal")

    value: str = Field(description="The text that the output must equal.")


class Regex(_TextCheck):
    """Passes if the regular expression is found anywhere in the output."""

    type = "regex"
    verbs = ("matches", "match")

    # Before `value`, whose validator needs the flags.
    flags: str = Field(
        default="",
        json_schema_extra={"pattern": "^[imsx]*$"},
        description="Flags of the pattern: i (ignores case), m (^ and $ match at each "
        "line), s (. matches a line break), x (verbose).",
    )
    value: Text = Field(
        description="The regular expression, in the syntax of Python; named groups may have"
        " the syntax of JavaScript."
    )

    @field_validator("flags")
    @classmethod
    def _check_flags(cls, flags: str) -> str:
        for flag in flags:
            if flag not in FLAGS:
                raise ValueError(f"{flag!r} is not a valid flag; write one or more of i, m, s, x")
        return flags

    @field_validator("value")
    @classmethod
    def _check_pattern(cls, value: str, info: ValidationInfo) -> str:
        compile_pattern(value, info.data.get("flags", ""))
        return value

    def warnings(self) -> Sequence[tuple[str, str, str]]:
        """A pattern that ends with a line break, or is written as in JavaScript."""
        notes = [*super().warnings(), *_line_break(() if "x" in self.flags else (self.value,))]
        if _JAVASCRIPT.fullmatch(self.value):
            advice = "leave them out, and write flags in `flags`; a slash that is meant is `\\/`"
            notes.append(("value", "begins and ends with slashes, which are a part of it", advice))
        return notes

    async def evaluate(self, case: Case) -> Score:
        """1 if the pattern is found, else 0; AttemptError if the search exceeds `TIME_LIMIT`."""
        output, pattern = case.trace.output, quoted(self.value)
        try:
            match = compile_pattern(self.value, self.flags).search(output, timeout=_BLOCKING_LIMIT)
            is_found = match is not None
        except TimeoutError:
            is_found = await asyncio.to_thread(
                search_pattern, self.value, self.flags, output, "this output"
            )
        return score_check(is_found, self._hit(pattern), self._miss(pattern))
