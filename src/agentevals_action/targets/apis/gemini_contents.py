"""The format of Google's Gemini API: a conversation in, generated content out.

https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import decoded
from agentevals_action.targets.apis import alternating_turns
from agentevals_action.targets.apis.images import Picture
from agentevals_action.targets.reply_model import IfValid, ModelReply, ReplyModel, Tokens, at

#: From Gemini 3 on, a function call without the model's signature is refused. This value replaces
#: it in a history that the model did not produce.
#: https://ai.google.dev/gemini-api/docs/thought-signatures#faqs
FOREIGN_CALL = "skip_thought_signature_validator"
_UNSIGNED = re.compile(r"(?:.*/)?gemini-[12]\b")
_STOPPED = {
    "SAFETY": "it may violate the safety policies",
    "RECITATION": "it may be a recitation of a source",
    "LANGUAGE": "its language is not supported",
    "BLOCKLIST": "it has a term of a blocklist",
    "PROHIBITED_CONTENT": "its content may be prohibited",
    "SPII": "it may hold sensitive personal information",
    "MALFORMED_FUNCTION_CALL": "the model wrote a function call that cannot be read",
    "UNEXPECTED_TOOL_CALL": "the model called a function that the request does not declare",
}


def conversation(messages: Sequence[Message], model: str) -> dict[str, Any]:
    """The fields `systemInstruction` and `contents` of a request to a model; ValueError or OSError
    if something cannot be sent. The format has no field for names of participants."""
    linked = alternating_turns.link_calls(messages)
    system = alternating_turns.system_text(linked)
    contents = []
    for side, together in alternating_turns.sides(linked):
        parts = [part for message in together for part in _parts(message)]
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and not _UNSIGNED.match(model):
            first["thoughtSignature"] = FOREIGN_CALL
        contents.append({"role": "model" if side == "assistant" else "user", "parts": parts})
    if not system:
        return {"contents": contents}
    return {"systemInstruction": {"parts": [{"text": system}]}, "contents": contents}


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    parts = alternating_turns.parts(message, ("user",))
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
        arguments = alternating_turns.arguments(call)
        yield {"functionCall": {"id": call.id, "name": call.name, "args": arguments}}


class _GeminiModel(ReplyModel):
    model_config = ConfigDict(alias_generator=to_camel)


class _FunctionCall(_GeminiModel):
    name: IfValid[str] = None
    id: IfValid[str] = None
    args: Any = {}  # noqa: RUF012  # pydantic copies defaults


class _Part(_GeminiModel):
    text: IfValid[str] = None
    thought: IfValid[bool] = None
    function_call: IfValid[_FunctionCall] = None
    executable_code: IfValid[dict[str, Any]] = None
    code_execution_result: IfValid[dict[str, Any]] = None


class _Content(_GeminiModel):
    parts: list[_Part] = []  # noqa: RUF012


class _Candidate(_GeminiModel):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: IfValid[str] = None


class _GeneratedContent(ModelReply):
    candidates: list[_Candidate] | None = None
    block_reason: IfValid[str] = at("promptFeedback", "blockReason")
    model: IfValid[str] = at("modelVersion")
    # https://ai.google.dev/api/generate-content#UsageMetadata
    input_tokens: Tokens = at("usageMetadata", "promptTokenCount")  # cached ones included
    output_tokens: Tokens = at("usageMetadata", "candidatesTokenCount")
    cached_tokens: Tokens = at("usageMetadata", "cachedContentTokenCount")
    tool_tokens: Tokens = at("usageMetadata", "toolUsePromptTokenCount")
    thought_tokens: Tokens = at("usageMetadata", "thoughtsTokenCount")


def read_content(data: Any) -> Trace:
    """The trace of generated content without its thoughts, with the code that the vendor ran as
    tool calls; ValueError if it is not that, was blocked or stopped, or has no content."""
    reply = _GeneratedContent.parse(data, "generated content")
    candidate = _candidate(reply)
    reason = candidate.finish_reason
    parts = [part for part in (candidate.content or _Content()).parts if not part.thought]
    text = "".join(part.text or "" for part in parts)
    calls = _calls(parts)
    if not text and not calls:
        advice = "; raise `maxOutputTokens` in `config`" if reason == "MAX_TOKENS" else ""
        details = f": {candidate.finish_message}" if candidate.finish_message else ""
        raise ValueError(f"the reply is empty (finishReason {reason!r}){details}{advice}")
    trace = reply.trace([Message("assistant", text, tool_calls=calls)])
    sent, received = reply.input_tokens, reply.output_tokens
    # Thoughts are paid as output, the results of the vendor's own tools as input.
    if sent is not None:
        sent += reply.tool_tokens or 0
    if reply.thought_tokens is not None:
        received = (received or 0) + reply.thought_tokens
    return replace(trace, usage=replace(trace.usage, input_tokens=sent, output_tokens=received))


def _candidate(reply: _GeneratedContent) -> _Candidate:
    if not reply.candidates:
        if reply.block_reason:
            raise ValueError(f"the vendor blocked the prompt ({reply.block_reason})")
        raise ValueError("the reply is not generated content: `candidates[0]` is missing")
    candidate = reply.candidates[0]
    reason = candidate.finish_reason
    # The vendor adds reasons: content with one that is not known is an answer.
    if details := _STOPPED.get(str(reason)):
        details = candidate.finish_message or details
        raise ValueError(f"the vendor stopped the reply ({reason}): {details}")
    return candidate


def _calls(parts: Sequence[_Part]) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for part, following in zip_longest(parts, parts[1:]):
        if (call := part.function_call) is not None:
            if call.name is None:
                raise ValueError("a function call of the reply has no name")
            calls.append(ToolCall(call.name, call.args, id=call.id))
        elif (code := part.executable_code) is not None:
            result = following.code_execution_result if following else None
            arguments = {"language": code.get("language"), "code": code.get("code")}
            output = result.get("output") if result else None
            calls.append(ToolCall("code_execution", arguments, output))
    return tuple(calls)
