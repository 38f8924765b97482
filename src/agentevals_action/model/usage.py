"""Tokens and cost of calls of models, and what a run paid. None is unknown, never zero."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from typing import Any

from agentevals_action.formatting import distinct


@dataclass(frozen=True)
class Usage:
    """Counts of tokens, and US dollars. Of the input tokens, `cached_tokens` were read from the
    vendor's cache and `cache_write_tokens` written to it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None

    @property
    def total_tokens(self) -> int | None:
        """Input and output; None if one is unknown."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    def or_else(self, other: "Usage") -> "Usage":
        """This usage, with the figures of another one where it has none."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in _NAMES}
        return Usage(**{name: b if a is None else a for name, (a, b) in pairs.items()})


_NAMES = tuple(field.name for field in fields(Usage))
#: Replies leave these counts out if the vendor's cache was not used.
_OPTIONAL = frozenset({"cached_tokens", "cache_write_tokens"})


def total(usages: Iterable[Usage], *, partial: bool = False) -> Usage:
    """The sum. A figure that one of them lacks is unknown, except for those of the vendor's cache
    where all input tokens are known; with `partial`, the known figures are summed."""
    columns = list(zip(*map(astuple, usages), strict=True))
    sums: dict[str, Any] = {}
    for name, values in zip(_NAMES, columns, strict=False):
        known = [value for value in values if value is not None]
        is_optional = partial or (name in _OPTIONAL and None not in columns[0])
        sums[name] = sum(known) if known and (is_optional or None not in values) else None
    return Usage(**sums)


@dataclass(frozen=True)
class Spending:
    """What replies cost in US dollars, as far as it is known (None: of no reply), by the sources of
    the known costs; the number of replies, of cached ones, which cost nothing, and of those with
    unknown cost."""

    cost_usd: float | None = None
    cost_sources: tuple[str, ...] = ()
    replies: int = 0
    cached_replies: int = 0
    unpriced_replies: int = 0


def total_spending(parts: Iterable[Spending]) -> Spending:
    """The sum of what is known."""
    parts = list(parts)
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    return Spending(
        cost_usd=sum(costs) if costs else None,
        cost_sources=distinct(part.cost_sources for part in parts),
        replies=sum(part.replies for part in parts),
        cached_replies=sum(part.cached_replies for part in parts),
        unpriced_replies=sum(part.unpriced_replies for part in parts),
    )
