"""The trace of one attempt of an agent. Unknown figures are None, never zero."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.usage import Spending, Usage


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

    `tool_calls` is None where the reply cannot show them (plain text of a command); refused ones
    are among them. `hidden_tools` are the names of tools whose calls the agent does not show
    (`Read`, of an agent that reads files through its shell). `duration_ms` is in milliseconds,
    `model` the name that the reply gives. `cost_source` is where the cost is from, `cost_hint` what
    to write so that an unknown one is known. `warnings` are sentences about the reply. `cached`:
    the reply comes from the cache, and the figures are those of the original call."""

    messages: tuple[Message, ...]
    tool_calls: tuple[ToolCall, ...] | None = None
    llm_call_count: int | None = None
    usage: Usage = Usage()  # noqa: RUF009  # frozen
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
        """What the reply cost; a cached one costs nothing."""
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
        """The answer: the text of the last assistant message, empty if there is none."""
        for message in reversed(self.messages):
            if message.role == "assistant":
                return join_text(message)
        return ""
