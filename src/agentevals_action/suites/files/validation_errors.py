"""Why what stands in a file is not taken: every reason, each with the way that leads to it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

#: The value of a field that is not there.
MISSING: Any = object()
#: Names and positions, from the object that was read.
Steps = tuple[str | int, ...]


@dataclass(frozen=True)
class Refusal:
    """One value that is not taken: what could stand there, in words (`expected`), or what is `said`
    of it ("problem; advice")."""

    steps: Steps
    value: Any
    expected: tuple[str, ...] = ()
    said: str = ""

    def __str__(self) -> str:
        """The refusal in words, without the value: it may be a key."""
        what = (
            "it is missing"
            if self.value is MISSING
            else self.said or f"write {' or '.join(self.expected)}"
        )
        return f"`{dotted(self.steps)}`: {what}" if self.steps else what

    def __repr__(self) -> str:
        return f"Refusal({str(self)!r})"


class Refused(Exception):
    """What was read is not taken; `refusals` are all that is wrong with it, at least one."""

    def __init__(self, *refusals: Refusal) -> None:
        super().__init__(*refusals)
        self.refusals = refusals

    def __str__(self) -> str:
        """All refusals in words."""
        return "; ".join(map(str, self.refusals))

    def under(self, step: str | int) -> Iterator[Refusal]:
        """The refusals as seen from the object that holds this one."""
        return (
            Refusal((step, *refusal.steps), refusal.value, refusal.expected, refusal.said)
            for refusal in self.refusals
        )


def unlike(value: Any, *expected: str) -> Refused:
    """That a value is none of what is expected, in words."""
    return Refused(Refusal((), value, expected))


def said(value: Any, error: ValueError) -> Refused:
    """What a check said of a value."""
    return Refused(Refusal((), value, said=str(error)))


def gathered(refusals: Iterable[Refusal]) -> None:
    """Raises what was refused, if anything was."""
    if refusals := tuple(refusals):
        raise Refused(*refusals)


def dotted(steps: Steps) -> str:
    """The way to a value, as it is written: `tests[0].id`."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
