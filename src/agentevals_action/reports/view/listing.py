"""Lists of Markdown lines that are cut to a limit."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Listing:
    """A titled list of Markdown lines; `left` counts the omitted ones, `note` explains the list."""

    title: str
    lines: tuple[str, ...] = ()
    left: str = ""
    note: str = ""


def make_listing(
    title: str, lines: Sequence[str], limit: int, number: int | None = None, note: str = ""
) -> Listing | None:
    """At most `limit` lines of `number` (default: all lines); None if there are none.

    With a limit of 0 only the title is left."""
    number = len(lines) if number is None else number
    if not number:
        return None
    left = number - min(limit, number)
    return Listing(
        title, tuple(lines[:limit]), f"… and {left:,} more" if left and limit else "", note
    )


def cut(lines: Sequence[str], limit: int) -> tuple[str, ...]:
    """At most `limit` lines, and one that counts the rest."""
    left = len(lines) - limit
    return (*lines[:limit], f"… and {left:,} more") if left > 0 else tuple(lines)
