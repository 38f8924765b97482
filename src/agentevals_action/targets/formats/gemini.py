"""The format of Google's Gemini API: a conversation in, generated content out.

https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.pictures import Picture
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import decoded, members
from agentevals_action.targets.formats import base, requests
from agentevals_action.targets.formats.base import Item
from agentevals_action.targets.formats.blocks import read_call

#: From Gemini 3 on, a function call without the model's signature is refused. This value replaces
#: it in a history that the model did not produce.
#: https://ai.google.dev/gemini-api/docs/thought-signatures#faqs
FOREIGN_CALL = "skip_thought_signature_validator"
_UNSIGNED = re.compile(r"(?:.*/)?gemini-[12]\b")
_STOPPED = frozenset({
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
    "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL",
})  # fmt: skip


def to_wire(messages: Sequence[Message], model: str) -> dict[str, Any]:
    """The fields `systemInstruction` and `contents` of a request to a model; ValueError if
    something cannot be sent. The format has no field for names of participants."""
    linked = requests.link_calls(messages)
    system = requests.system_text(linked)
    contents = []
    for side, together in requests.sides(linked):
        parts = [part for message in together for part in _wire_parts(message)]
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and not _UNSIGNED.match(model):
            first["thoughtSignature"] = FOREIGN_CALL
        contents.append({"role": "model" if side == "assistant" else "user", "parts": parts})
    if not system:
        return {"contents": contents}
    return {"systemInstruction": {"parts": [{"text": system}]}, "contents": contents}


def _wire_parts(message: Message) -> Iterator[dict[str, Any]]:
    parts = requests.parts(message, ("user",))
    if message.role == "tool":
        call_id, name = message.tool_call_id, message.name
        if name is None:
            raise ValueError(
                f"the tool message for {call_id} answers no tool call before it, and has no name"
            )
        text = "\n".join(str(part) for part in parts)
        data = decoded(text)
        response = data if isinstance(data, dict) else {"output": text}
        yield {"functionResponse": {"id": call_id, "name": name, "response": response}}
        return
    for part in parts:
        if isinstance(part, Picture):
            yield {"inlineData": {"mimeType": part.media_type, "data": part.data}}
        else:
            yield {"text": part}
    for call in message.tool_calls:
        arguments = requests.arguments(call)
        yield {"functionCall": {"id": call.id, "name": call.name, "args": arguments}}


def read_reply(data: Any) -> Trace:
    """The trace of generated content without its thoughts, with the code that the vendor ran as
    tool calls; ValueError if it is not that, was blocked or stopped, or has no content."""
    reply = members(data)
    candidates = base.objects(reply, "candidates")
    if not candidates:
        if reason := members(reply.get("promptFeedback")).get("blockReason"):
            raise ValueError(f"the vendor blocked the prompt ({reason})")
        raise ValueError("the reply is not generated content: `candidates[0]` is missing")
    reason = candidates[0].get("finishReason")
    details = base.optional_text(candidates[0].get("finishMessage"))
    # The vendor adds reasons: content with one that is not known is an answer.
    if reason in _STOPPED:
        stopped = f"the vendor stopped the reply ({reason})"
        raise ValueError(": ".join(filter(None, [stopped, details])))
    parts = base.objects(candidates[0], "content", "parts")
    message = from_wire(parts)
    if not message.content and not message.tool_calls:
        advice = "; raise `maxOutputTokens` in `config`" if reason == "MAX_TOKENS" else ""
        problem = f"the reply is empty (finishReason {reason!r})"
        raise ValueError(f"{': '.join(filter(None, [problem, details]))}{advice}")
    usage = base.read_usage(reply.get("usageMetadata"))
    return base.reply_trace([message], usage, reply.get("modelVersion"))


def from_wire(parts: Sequence[Item]) -> Message:
    """The message of the model with these parts, without its thoughts. ValueError for a call
    without a name."""
    parts = [part for part in parts if part.get("thought") is not True]
    calls: list[ToolCall] = []
    for part, following in zip_longest(parts, parts[1:]):
        call, code = part.get("functionCall"), part.get("executableCode")
        if call is not None:
            calls.append(read_call("function_call", members(call)))
        elif code is not None:
            result = members(members(following).get("codeExecutionResult"))
            arguments = {name: members(code).get(name) for name in ("language", "code")}
            calls.append(ToolCall("code_execution", arguments, result.get("output")))
    return Message("assistant", base.text_of_parts(parts), tool_calls=tuple(calls))
