"""Pure: the kinds of errors as people are told of them."""

from collections import Counter
from collections.abc import Iterable

_WORDS = {
    "target": "target failed",
    "judge": "judge failed",
    "evaluator": "evaluator failed",
    "timeout": "timed out",
    "budget": "budget spent",
    "prepare": "not prepared",
    "workspace": "workspace failed",
    "configuration": "wrongly configured",
    "bug": "bug of the action",
}


def words(kind: str) -> str:
    """A kind in two or three words; one that only another tool knows keeps its name."""
    return _WORDS.get(kind) or f"{kind} error"


def counted(kinds: Iterable[str]) -> str:
    """Kinds in words, the frequent ones first, with how often where there are several: `budget
    spent (10), timed out (2)`."""
    counts = Counter(kinds)
    if len(counts) == 1:
        return words(next(iter(counts)))
    return ", ".join(f"{words(kind)} ({number:,})" for kind, number in counts.most_common())
