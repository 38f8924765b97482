"""Evaluators that look for a text or a regular expression in the output.

They score 1 or 0."""

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, ClassVar

import regex
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Case, EvaluatorOptions
from agentevals_action.formatting import quoted
from agentevals_action.model.file_model import ListOf
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator

#: Seconds after which a search is stopped and the pattern is an error.
TIME_LIMIT = 2.0
#: Seconds for which a search may block the event loop; a longer one continues in a thread.
_BLOCKING_LIMIT = 0.02

#: Characters of a pattern; longer ones take seconds and much memory to compile.
MAX_PATTERN = 50_000

FLAGS = {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL, "x": regex.VERBOSE}
_ESCAPE = re.compile(r"\\(?:k<(\w+)>|.)", re.DOTALL)


def _check_text(text: str) -> str:
    if not text:
        raise ValueError("an empty text is in every output; write the text to look for")
    return text


def _check_trimmed_text(text: str) -> str:
    if not text.strip():
        raise ValueError("the text is empty after trimming; write the text to look for")
    return text


def _check_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts:
        raise ValueError("the list is empty; write at least one text")
    return texts


Text = Annotated[str, AfterValidator(_check_text), Field(json_schema_extra={"minLength": 1})]
#: A text that is compared after trimming.
TrimmedText = Annotated[
    str, AfterValidator(_check_trimmed_text), Field(json_schema_extra={"minLength": 1})
]
Texts = Annotated[
    ListOf[Text], AfterValidator(_check_texts), Field(json_schema_extra={"minItems": 1})
]


def score_check(holds: bool, hit: str, miss: str) -> Score:
    """1 with the hit if the check holds, else 0 with the miss."""
    return Score(1.0, hits=(hit,)) if holds else Score(0.0, misses=(miss,))


def _find(output: str, texts: Sequence[str], ignore_case: bool) -> list[str]:
    """Those of the texts that the output contains."""
    if ignore_case:
        folded = output.casefold()
        return [text for text in texts if text.casefold() in folded]
    return [text for text in texts if text in output]


class Contains(EvaluatorOptions):
    """Passes if the output contains the text; case-sensitive."""

    type = "contains"
    ignore_case: ClassVar[bool] = False

    value: Text = Field(description="The text that the output must contain.")

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 if the output contains the text, else 0."""
        found = _find(case.trace.output, (self.value,), self.ignore_case)
        text = quoted(self.value)
        return score_check(bool(found), f"contains {text}", f"does not contain {text}")


class ContainsAny(EvaluatorOptions):
    """Passes if the output contains at least one of the texts; case-sensitive."""

    type = "contains_any"
    ignore_case: ClassVar[bool] = False

    value: Texts = Field(description="Texts, at least one of which the output must contain.")

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 if the output contains one of the texts, else 0; each text found is a hit."""
        if found := _find(case.trace.output, self.value, self.ignore_case):
            return Score(1.0, hits=tuple(f"contains {quoted(text)}" for text in found))
        any_of = "any of " if len(self.value) > 1 else ""
        texts = ", ".join(map(quoted, self.value))
        return Score(0.0, misses=(f"does not contain {any_of}{texts}",))


class ContainsAll(EvaluatorOptions):
    """Passes if the output contains all of the texts; case-sensitive."""

    type = "contains_all"
    ignore_case: ClassVar[bool] = False

    value: Texts = Field(description="Texts, all of which the output must contain.")

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 if the output contains all of the texts, else 0; each text is a hit or a miss."""
        found = _find(case.trace.output, self.value, self.ignore_case)
        missing = [text for text in self.value if text not in found]
        return Score(
            0.0 if missing else 1.0,
            hits=tuple(f"contains {quoted(text)}" for text in found),
            misses=tuple(f"does not contain {quoted(text)}" for text in missing),
        )


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


class StartsWith(EvaluatorOptions):
    """Passes if the output starts with the text, both trimmed."""

    type = "starts_with"

    value: TrimmedText = Field(description="The text that the output must start with.")

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 if the trimmed output starts with the trimmed text, else 0."""
        wanted = self.value.strip()
        holds, text = case.trace.output.strip().startswith(wanted), quoted(wanted)
        return score_check(holds, f"starts with {text}", f"does not start with {text}")


class EndsWith(EvaluatorOptions):
    """Passes if the output ends with the text, both trimmed."""

    type = "ends_with"

    value: TrimmedText = Field(description="The text that the output must end with.")

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 if the trimmed output ends with the trimmed text, else 0."""
        wanted = self.value.strip()
        holds, text = case.trace.output.strip().endswith(wanted), quoted(wanted)
        return score_check(holds, f"ends with {text}", f"does not end with {text}")


class Equals(EvaluatorOptions):
    """Passes if the output equals the text, both trimmed; an empty text requires an empty
    output."""

    type = "equals"

    value: str = Field(description="The text that the output must equal.")

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 if the trimmed output equals the trimmed text, else 0."""
        wanted = self.value.strip()
        holds, text = case.trace.output.strip() == wanted, quoted(wanted)
        return score_check(holds, f"equals {text}", f"does not equal {text}")


def _check_flags(flags: str) -> str:
    for flag in flags:
        if flag not in FLAGS:
            raise ValueError(f"{flag!r} is not a valid flag; write one or more of i, m, s, x")
    return flags


class Regex(EvaluatorOptions):
    """Passes if the regular expression is found anywhere in the output."""

    type = "regex"

    # Before `value`, whose validator needs the flags.
    flags: Annotated[str, AfterValidator(_check_flags)] = Field(
        default="",
        json_schema_extra={"pattern": "^[imsx]*$"},
        description="Flags of the pattern: i (ignores case), m (^ and $ match at each "
        "line), s (. matches a line break), x (verbose).",
    )
    value: Text = Field(
        description="The regular expression, in the syntax of Python; named groups may have"
        " the syntax of JavaScript."
    )

    @field_validator("value")
    @classmethod
    def _check_pattern(cls, value: str, info: ValidationInfo) -> str:
        compile_pattern(value, info.data.get("flags", ""))
        return value

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 if the pattern is found, else 0; AttemptError if the search exceeds `TIME_LIMIT`."""
        output = case.trace.output
        try:
            match = compile_pattern(self.value, self.flags).search(output, timeout=_BLOCKING_LIMIT)
            found = match is not None
        except TimeoutError:
            found = await asyncio.to_thread(
                search_pattern, self.value, self.flags, output, "this output"
            )
        pattern = quoted(self.value)
        return score_check(found, f"matches {pattern}", f"does not match {pattern}")


@lru_cache(maxsize=256)
def compile_pattern(text: str, flags: str = "") -> regex.Pattern[str]:
    """The compiled pattern; named groups in either syntax (`(?P<n>)` `(?P=n)`, `(?<n>)` `\\k<n>`).

    ValueError if it is not valid."""
    if len(text) > MAX_PATTERN:
        raise ValueError(
            f"{quoted(text)} is longer than {MAX_PATTERN:,} characters; write a shorter pattern"
        )
    number = 0
    for flag in flags:
        number |= FLAGS[flag]
    python = _ESCAPE.sub(lambda match: f"(?P={match[1]})" if match[1] else match[0], text)
    try:
        return regex.compile(python, number)
    except (regex.error, RecursionError) as error:
        raise ValueError(f"{quoted(text)} is not a valid regular expression: {error}") from None


def search_pattern(text: str, flags: str, subject: str, subject_name: str) -> bool:
    """Whether a pattern is found in a subject; AttemptError if that takes over `TIME_LIMIT`.

    The search releases the interpreter lock, so that it can run in a thread."""
    try:
        return compile_pattern(text, flags).search(subject, timeout=TIME_LIMIT) is not None
    except TimeoutError:
        raise AttemptError(
            "evaluator",
            f"the pattern {quoted(text)} ran for over {TIME_LIMIT:g} s on {subject_name}",
            "Write it without repetitions inside repetitions.",
        ) from None
