"""Regular expressions of users, searched within a limit of time."""

import re
from functools import lru_cache

import regex

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import quoted

#: Seconds after which a search is stopped and the pattern is an error.
TIME_LIMIT = 2.0
#: Characters of a pattern; longer patterns take seconds and much memory to compile.
MAX_PATTERN = 50_000

FLAGS = {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL, "x": regex.VERBOSE}
_ESCAPE = re.compile(r"\\(?:k<(\w+)>|.)", re.DOTALL)


@lru_cache(maxsize=256)
def compile_pattern(text: str, flags: str = "") -> regex.Pattern[str]:
    """The compiled pattern; named groups in either syntax (`(?P<n>)` `(?P=n)`, `(?<n>)` `\\k<n>`).

    ValueError if it is not valid."""
    if len(text) > MAX_PATTERN:
        raise ValueError(
            f"{quoted(text)} is longer than {MAX_PATTERN:,} characters; write a shorter pattern"
        )
    python = _ESCAPE.sub(lambda match: f"(?P={match[1]})" if match[1] else match[0], text)
    try:
        return regex.compile(python, sum(FLAGS[flag] for flag in set(flags)))
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
