"""`anthropic`: a model behind Anthropic's Messages API, or a compatible server.

https://platform.claude.com/docs/en/api/messages
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from agentevals_action.model.messages import Message, Picture
from agentevals_action.model.trace import Trace
from agentevals_action.targets.dialects import messages as role_messages
from agentevals_action.targets.dialects import requests
from agentevals_action.targets.dialects.blocks import objects, trace_of_call
from agentevals_action.targets.models.model_api import ModelTarget
from agentevals_action.validation.json_values import as_object

#: Later versions refuse fields that suites set: 2026-10-21 refuses `temperature`.
#: https://platform.claude.com/docs/en/api/versioning
VERSION = "2023-06-01"
#: Tokens of an answer if `config` has no `max_tokens`, which the API requires. The budget for
#: thinking is added.
MAX_TOKENS = 8192


class Anthropic(ModelTarget):
    """A model behind Anthropic's Messages API, or a compatible server."""

    provider: ClassVar[str] = "anthropic"
    key_variable: ClassVar[str] = "ANTHROPIC_API_KEY"
    vendor_url: ClassVar[str] = "https://api.anthropic.com"
    reserved: ClassVar[Mapping[str, str]] = {
        "model": "use the field `model`",
        "system": "write a system message",
        **dict.fromkeys(("messages", "stream"), "leave it out"),
    }

    config: dict[str, Any] = Field(
        default_factory=dict,
        description=f"Fields of the request, passed on unchanged: max_tokens ({MAX_TOKENS} by "
        "default), temperature, thinking, tools, …",
    )

    @property
    def address(self) -> str:
        """The URL of messages."""
        return f"{self.url.removesuffix('/v1')}/v1/messages"

    def headers(self, key: str) -> Mapping[str, str]:
        """The version of the API, and the key."""
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def to_wire(self, messages: Sequence[Message]) -> dict[str, Any]:
        """A request; ValueError if something cannot be sent. The format has no field for names of
        participants."""
        thinking = self.config.get("thinking")
        budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
        tokens = MAX_TOKENS + (budget if isinstance(budget, int) else 0)
        config = {"max_tokens": tokens, **self.config}
        linked = requests.link_calls(messages)
        system = requests.system_text(linked)
        turns = [
            {
                "role": side,
                "content": [block for message in turn for block in _wire_blocks(message)],
            }
            for side, turn in requests.turns(linked)
        ]
        asked = {"system": system, "messages": turns} if system else {"messages": turns}
        return {**config, "model": self.model, **asked}

    def from_wire(self, data: Any) -> Trace:
        """The trace of a message without its thinking, with the tools that the vendor ran as tool
        calls; ValueError if it is not a message, was refused or paused, or has no content."""
        reply = as_object(data)
        if not isinstance(reply.get("content"), list):
            raise ValueError("the reply is not a message: `content` is not a list")
        reason = reply.get("stop_reason")
        if reason == "refusal":
            raise ValueError("the model's vendor refused to answer (stop_reason 'refusal')")
        if reason == "pause_turn":
            raise ValueError(
                "the vendor paused the turn before the answer was complete (pause_turn); "
                "limit the use of its tools"
            )
        objects(reply, "content")
        read = role_messages.read_reply(reply)
        if read.is_empty:
            advice = "; raise `max_tokens` in `config`" if reason == "max_tokens" else ""
            raise ValueError(f"the reply is empty (stop_reason {reason!r}){advice}")
        return trace_of_call([read], read.usage, read.model)


def _wire_blocks(message: Message) -> Iterator[dict[str, Any]]:
    blocks = [_wire_block(part) for part in requests.parts(message, ("user", "tool"))]
    if message.role == "tool":
        yield {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks}
        return
    yield from blocks
    for call in message.tool_calls:
        arguments = requests.arguments(call)
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _wire_block(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": "image", "source": source}
