"""The files of the repository that a command runs."""

import re
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = re.compile(
    r"\.(py|js|mjs|cjs|ts|mts|cts|tsx|sh|bash|rb|pl|php|lua|r|jl|ps1)$", re.IGNORECASE
)
#: Words after which an interpreter takes code, or a module by its name.
_NO_SCRIPT = frozenset({"-c", "-e", "--eval", "-m"})


def missing_script(words: Sequence[str], folder: Path) -> str | None:
    """The program or the script of a command that is meant as a path and does not exist, seen from
    the folder in which it runs; None if there is none.

    Only the first script counts: others may be files that it writes. Programs on PATH are not
    looked for."""
    program, *arguments = words
    if "/" in program and "{" not in program:
        return None if (folder / program).exists() else program
    for word in arguments:
        if word in _NO_SCRIPT:
            return None
        if re.search(r"[\s{$*]|^-|://", word) or not _SCRIPT.search(word):
            continue
        return None if (folder / word).exists() else word
    return None
