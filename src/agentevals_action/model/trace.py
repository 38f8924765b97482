"""The trace of one attempt of an agent: messages, calls, tokens and cost. An unknown figure is
None, never zero."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from agentevals_action.formatting import distinct
from agentevals_action.model.messages import Message, ToolCall


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
        """This usage, with the figures of `other` in place of unknown figures."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in _NAMES}
        return Usage(**{name: b if a is None else a for name, (a, b) in pairs.items()})


_NAMES = tuple(field.name for field in fields(Usage))
#: Replies leave these counts out if the vendor's cache was not used.
_OPTIONAL = frozenset({"cached_tokens", "cache_write_tokens"})


def total(usages: Iterable[Usage], *, partial: bool = False) -> Usage:
    """The sum. A figure that a usage lacks is unknown, except for the counts of the vendor's cache
    if all input tokens are known; with `partial`, the known figures are summed."""
    columns = list(zip(*map(attrgetter(*_NAMES), usages), strict=True))
    sums: dict[str, Any] = {}
    for name, values in zip(_NAMES, columns, strict=False):
        known = [value for value in values if value is not None]
        is_optional = partial or (name in _OPTIONAL and None not in columns[0])
        sums[name] = sum(known) if known and (is_optional or None not in values) else None
    return Usage(**sums)


@dataclass(frozen=True)
class Spending:
    """What replies cost in US dollars, as far as it is known (None: of no reply), and the sources
    of the known costs; the numbers of replies, of cached replies, which cost nothing, and of
    replies with unknown cost (`unpriced_replies`)."""

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


def join_text(message: Message) -> str:
    """The text of a message: its string, or its text and JSON blocks joined by newlines."""
    parts = (block for block in message.blocks if block.type in ("text", "json"))
    return "\n".join(
        block.value if isinstance(block.value, str) else json.dumps(block.value, ensure_ascii=False)
        for block in parts
    )


def list_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The tool calls of messages, in order."""
    return tuple(call for message in messages for call in message.tool_calls)


@dataclass(frozen=True)
class Trace:
    """One attempt: the messages that the agent produced, and its figures.

    `tool_calls` is None if the reply cannot show them (plain text of a command); they include
    refused calls. `hidden_tools` are the names of tools whose calls the agent does not show
    (`Read`, of an agent that reads files through its shell). `duration_ms` is in milliseconds,
    `model` the name that the reply gives. `cost_source` is where the cost is from, `cost_hint` what
    to write so that an unknown cost is known. `warnings` are sentences about the reply. `cached`:
    the reply comes from the cache, and the figures are those of the original call."""

    messages: tuple[Message, ...]
    tool_calls: tuple[ToolCall, ...] | None = None
    llm_call_count: int | None = None
    usage: Usage = Usage()  # frozen
    duration_ms: float | None = None
    cached: bool = False
    hidden_tools: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    model: str | None = None
    cost_source: str = ""
    cost_hint: str = ""

    @property
    def made_calls(self) -> tuple[ToolCall, ...] | None:
        """The tool calls that were made; None if they are unknown."""
        if self.tool_calls is None:
            return None
        return tuple(call for call in self.tool_calls if not call.refused)

    @property
    def spent(self) -> Spending:
        """What the reply cost; a cached reply costs nothing."""
        if self.cached:
            return Spending(cost_usd=0.0, replies=1, cached_replies=1)
        if self.usage.cost_usd is None:
            return Spending(replies=1, unpriced_replies=1)
        return Spending(self.usage.cost_usd, (self.cost_source or "reply",), replies=1)

    @property
    def has_answer(self) -> bool:
        """Whether there is something to score: a tool call, or text, a picture or a file in the
        last assistant message. Without this check, an agent that is broken and answers nothing
        passes every evaluator with `negate`."""
        last = next(
            (message for message in reversed(self.messages) if message.role == "assistant"), None
        )
        calls = self.tool_calls or list_calls(self.messages)
        if calls or last is None:
            return bool(calls)
        has_file = any(block.type in ("image", "file") for block in last.blocks)
        return has_file or bool(join_text(last).strip())

    @property
    def output(self) -> str:
        """The answer: the text of the last assistant message, empty without one."""
        for message in reversed(self.messages):
            if message.role == "assistant":
                return join_text(message)
        return ""
