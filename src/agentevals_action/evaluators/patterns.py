"""Regular expressions of suites: both spellings of named groups, and a limit on the time of a
search."""

import re
from functools import lru_cache

import regex

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import quoted

#: Seconds that one search may take before the pattern counts as running away.
TIME_LIMIT = 2.0
#: Seconds of it that may pass before other tests are let on; nearly every search ends within.
_IN_PLACE = 0.02

#: Characters of a pattern: compiling takes a second and much memory for a few times as many.
MAX_LENGTH = 50_000

FLAGS = {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL, "x": regex.VERBOSE}
_ESCAPE = re.compile(r"\\(?:k<(\w+)>|.)", re.DOTALL)


@lru_cache(maxsize=256)
def compile_pattern(text: str, flags: str = "") -> "regex.Pattern[str]":
    """The compiled pattern, named groups in either spelling (`(?P<n>)` `(?P=n)`, `(?<n>)`
    `\\k<n>`); ValueError when it is none."""
    if len(text) > MAX_LENGTH:
        raise ValueError(
            f"{quoted(text)} is longer than {MAX_LENGTH:,} characters; write a shorter pattern"
        )
    number = 0
    for flag in flags:
        number |= FLAGS[flag]
    spelled = _ESCAPE.sub(lambda match: f"(?P={match[1]})" if match[1] else match[0], text)
    try:
        return regex.compile(spelled, number)
    except regex.error as error:
        raise ValueError(f"{quoted(text)} is no regular expression: {error}") from None
    except RecursionError:
        raise ValueError(f"{quoted(text)} is nested too deeply for a regular expression") from None


def found(text: str, flags: str, subject: str, what: str) -> bool:
    """Whether a pattern is found anywhere in a subject; AttemptError, which names the subject as
    `what`, when it runs away.

    The search lets other threads run: in a thread of its own, a pattern that runs away holds up
    nobody else."""
    try:
        return compile_pattern(text, flags).search(subject, timeout=TIME_LIMIT) is not None
    except TimeoutError:
        message = f"the pattern {quoted(text)} ran for over {TIME_LIMIT:g} s on {what}"
        raise AttemptError(
            "evaluator", message, "Write it without repetitions inside repetitions."
        ) from None


async def search(text: str, flags: str, subject: str, what: str) -> bool:
    """The same, in a thread of its own once it proves to take its time."""
    try:
        return compile_pattern(text, flags).search(subject, timeout=_IN_PLACE) is not None
    except TimeoutError:
        import asyncio  # late: evaluators are read without an event loop

        return await asyncio.to_thread(found, text, flags, subject, what)
