"""Plain sentences for the reader of a run, gathered while it goes on; equal ones are counted."""

from collections import Counter


class Notices:
    """Sentences in the order in which they were first said."""

    def __init__(self) -> None:
        self._said: Counter[str] = Counter()

    def add(self, sentence: str) -> None:
        """One more sentence; secrets are taken out where it is told."""
        self._said[sentence] += 1

    def told(self) -> tuple[str, ...]:
        """Each sentence once, with how often it was said if that was more often."""
        return tuple(
            sentence if count == 1 else f"{sentence} ({count} times)"
            for sentence, count in self._said.items()
        )
