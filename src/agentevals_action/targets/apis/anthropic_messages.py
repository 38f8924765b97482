"""The format of Anthropic's Messages API: a conversation in, a message out.

https://platform.claude.com/docs/en/api/messages
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agentevals_action.model.suite import Message, Role, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.apis import alternating_turns
from agentevals_action.targets.apis.images import Picture
from agentevals_action.targets.reply_model import IfValid, ModelReply, ReplyModel, Tokens, at

_ROLES_WITH_PICTURES: tuple[Role, ...] = ("user", "tool")


def conversation(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields `system` and `messages` of a request; ValueError or OSError if something cannot be
    sent. The format has no field for names of participants."""
    linked = alternating_turns.link_calls(messages)
    system = alternating_turns.system_text(linked)
    turns = [
        {"role": side, "content": [block for message in together for block in _blocks(message)]}
        for side, together in alternating_turns.sides(linked)
    ]
    return {"system": system, "messages": turns} if system else {"messages": turns}


def _blocks(message: Message) -> Iterator[dict[str, Any]]:
    blocks = [_block(part) for part in alternating_turns.parts(message, _ROLES_WITH_PICTURES)]
    if message.role == "tool":
        yield {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks}
        return
    yield from blocks
    for call in message.tool_calls:
        arguments = alternating_turns.arguments(call)
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _block(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": "image", "source": source}


class _Block(ReplyModel):
    type: str = ""
    text: IfValid[str] = None
    id: IfValid[str] = None
    name: IfValid[str] = None
    input: Any = None
    tool_use_id: IfValid[str] = None
    content: Any = None


class AssistantMessage(ModelReply):
    """A message of the model."""

    content: list[_Block]
    stop_reason: IfValid[str] = None
    category: IfValid[str] = at("stop_details", "category")
    explanation: IfValid[str] = at("stop_details", "explanation")
    input_tokens: Tokens = at("usage", "input_tokens")
    output_tokens: Tokens = at("usage", "output_tokens")
    cached_tokens: Tokens = at("usage", "cache_read_input_tokens")
    cache_write_tokens: Tokens = at("usage", "cache_creation_input_tokens")

    @property
    def text(self) -> str:
        """Its text, without its thinking."""
        return "".join(block.text or "" for block in self.content if block.type == "text")

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Its tool calls, those of tools that the vendor ran as well; ValueError for one without a
        name."""
        return _calls(self.content)

    @property
    def figures(self) -> ModelReply:
        """Its tokens; all of its input, as a price is per input token. The API's `input_tokens` are
        those after the last cache breakpoint:
        https://platform.claude.com/docs/en/build-with-claude/prompt-caching"""
        if self.input_tokens is None:
            return self
        tokens = self.input_tokens + (self.cache_write_tokens or 0) + (self.cached_tokens or 0)
        return self.model_copy(update={"input_tokens": tokens})


def read_message(data: Any) -> Trace:
    """The trace of a message without its thinking, with the tools that the vendor ran as tool
    calls; ValueError if it is not a message, was refused or paused, or has no content."""
    message = AssistantMessage.parse(data, "a message")
    reason = message.stop_reason
    if reason == "refusal":
        details = (f": {part}" for part in (message.category, message.explanation) if part)
        problem = "the model's vendor refused to answer (stop_reason 'refusal')"
        raise ValueError(problem + "".join(details))
    if reason == "pause_turn":
        raise ValueError(
            "the vendor paused the turn before the answer was complete (pause_turn); "
            "limit the use of its tools"
        )
    text, calls = message.text, message.calls
    if not text and not calls:
        advice = "; raise `max_tokens` in `config`" if reason == "max_tokens" else ""
        raise ValueError(f"the reply is empty (stop_reason {reason!r}){advice}")
    return message.figures.trace([Message("assistant", text, tool_calls=calls)])


def _calls(content: Sequence[_Block]) -> tuple[ToolCall, ...]:
    """The blocks `tool_use`, and `server_tool_use` and `mcp_tool_use` with the content of their
    `…_tool_result`."""
    outputs = {
        block.tool_use_id: block.content for block in content if block.type.endswith("tool_result")
    }
    calls = []
    for block in content:
        if block.type.endswith("tool_use"):
            if block.name is None:
                raise ValueError("a tool call of the reply has no name")
            output = outputs.get(block.id) if block.id else None
            calls.append(ToolCall(block.name, block.input, output, block.id))
    return tuple(calls)
