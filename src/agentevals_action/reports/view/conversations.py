"""The turns of conversations: their numbers, and tests in their order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TurnNumber:
    """The position of a test in its conversation: `number` from 1, of `total`."""

    conversation: str
    number: int
    total: int

    def __str__(self) -> str:
        return f"turn {self.number:,} of {self.total:,}"


#: Turns by the suite's path and the test's id. A conversation of one turn is not in it.
Turns = Mapping[tuple[str, str], TurnNumber]


def number_turns(tests: Iterable[tuple[str, str | None, str]]) -> Turns:
    """Numbers the turns of all conversations; of each test the suite's path, the conversation and
    the id, in suite order."""
    conversations: dict[tuple[str, str], dict[str, None]] = {}
    for path, conversation, test in tests:
        if conversation is not None:
            conversations.setdefault((path, conversation), {})[test] = None
    return {
        (path, test): TurnNumber(conversation, number, len(turns))
        for (path, conversation), turns in conversations.items()
        if len(turns) > 1
        for number, test in enumerate(turns, 1)
    }
