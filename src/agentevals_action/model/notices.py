"""Sentences for the reader of a run, collected during the run; equal ones are counted."""

from collections import Counter


class Notices:
    """Sentences in the order of their first occurrence."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, sentence: str) -> None:
        """Adds a sentence; secrets are redacted when it is printed."""
        self._counts[sentence] += 1

    def sentences(self) -> tuple[str, ...]:
        """Each sentence once, with its number of occurrences if there are several."""
        return tuple(
            sentence if count == 1 else f"{sentence} ({count} times)"
            for sentence, count in self._counts.items()
        )
