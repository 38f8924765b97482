"""The chat format of OpenAI's API and of compatible servers: messages in, a completion out."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import decoded
from agentevals_action.targets.apis import alternating_turns
from agentevals_action.targets.apis.images import Picture
from agentevals_action.targets.reply_model import IfValid, ModelReply, ReplyModel, Tokens, at


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages of a request, with ids that link tool messages to their calls; ValueError or
    OSError if something cannot be sent."""
    return [_message(message) for message in alternating_turns.link_calls(messages)]


def _message(message: Message) -> dict[str, Any]:
    content = alternating_turns.text_or_parts(message, ("user",), _part)
    data: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        data["tool_call_id"] = message.tool_call_id
    elif message.name is not None:
        data["name"] = message.name
    if message.tool_calls:
        data["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": encode_arguments(call)},
            }
            for call in message.tool_calls
        ]
    return data


def _part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": part.uri}}


def encode_arguments(call: ToolCall) -> str:
    """A tool call's arguments as a string of JSON."""
    return json.dumps(call.arguments if call.arguments is not None else {}, ensure_ascii=False)


def decode_arguments(text: Any) -> Any:
    """A tool call's arguments as data. Broken JSON is the model's error, which evaluators judge: it
    stays a text."""
    return {} if isinstance(text, str) and not text.strip() else decoded(text)


class _Function(ReplyModel):
    name: str
    arguments: Any = None


class _FunctionCall(ReplyModel):
    id: IfValid[str] = None
    function: _Function

    def read(self) -> ToolCall:
        return ToolCall(self.function.name, decode_arguments(self.function.arguments), id=self.id)


class _CustomTool(ReplyModel):
    name: str
    input: Any = None


class _CustomCall(ReplyModel):
    id: IfValid[str] = None
    custom: _CustomTool

    def read(self) -> ToolCall:
        return ToolCall(self.custom.name, self.custom.input, id=self.id)


class _Part(ReplyModel):
    text: IfValid[str] = None


class _Message(ReplyModel):
    content: str | list[_Part] | None = None
    refusal: IfValid[str] = None
    tool_calls: list[_FunctionCall | _CustomCall] | None = None

    @property
    def text(self) -> str:
        content = self.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content)
        return content or self.refusal or ""


class _Choice(ReplyModel):
    message: _Message
    finish_reason: IfValid[str] = None


class _Completion(ModelReply):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    input_tokens: Tokens = at("usage", "prompt_tokens")
    output_tokens: Tokens = at("usage", "completion_tokens")
    cached_tokens: Tokens = at("usage", "prompt_tokens_details", "cached_tokens")
    cache_write_tokens: Tokens = at("usage", "prompt_tokens_details", "cache_write_tokens")


def read_completion(data: Any) -> Trace:
    """The trace of a chat completion; ValueError if it is not one, was filtered or has no
    content."""
    completion = _Completion.parse(data, "a chat completion")
    choice = completion.choices[0]
    if choice.finish_reason == "content_filter":
        raise ValueError("the reply was stopped by the vendor's content filter")
    text = choice.message.text
    calls = tuple(call.read() for call in choice.message.tool_calls or ())
    if not text and not calls:
        raise ValueError(f"the reply is empty (finish_reason {choice.finish_reason!r})")
    return completion.trace([Message("assistant", text, tool_calls=calls)])
