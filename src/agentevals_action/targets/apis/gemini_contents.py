"""The wire form of Google's Gemini API: a conversation there, generated content back.

https://ai.google.dev/api/generate-content
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model import json_values
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.apis import alternating_turns
from agentevals_action.targets.apis.images import Picture

#: From Gemini 3 on a function call without the model's own signature is refused; this stands for
#: one in a history that the model did not produce.
#: https://ai.google.dev/gemini-api/docs/thought-signatures#faqs
FOREIGN_CALL = "skip_thought_signature_validator"
_UNSIGNED = re.compile(r"(?:.*/)?gemini-[12]\b")
_WHOLE = (None, "STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED")
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
    """The fields `systemInstruction` and `contents` of a request to a model; names of participants
    have no place in it.

    ValueError when something cannot be sent (a file that is no text, a picture anywhere but from
    the user, arguments that are no object, a tool message of no known tool), OSError when a file
    cannot be read."""
    whole = alternating_turns.linked(messages)
    system = alternating_turns.system_text(whole)
    contents = []
    for side, together in alternating_turns.sides(whole):
        parts = [part for message in together for part in _parts(message)]
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and not _UNSIGNED.match(model):
            first["thoughtSignature"] = FOREIGN_CALL
        contents.append({"role": "model" if side == "assistant" else "user", "parts": parts})
    return (
        {"systemInstruction": {"parts": [{"text": system}]}, "contents": contents}
        if system
        else {"contents": contents}
    )


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    own = alternating_turns.parts(message, ("user",))
    if message.role == "tool":
        if message.name is None:
            raise ValueError(
                f"the tool message for {message.tool_call_id} answers no tool call before it, and has no name"
            )
        said = "\n".join(str(part) for part in own)
        yield {
            "functionResponse": {
                "id": message.tool_call_id,
                "name": message.name,
                "response": _response(said),
            }
        }
        return
    yield from (_part(part) for part in own)
    for call in message.tool_calls:
        yield {
            "functionCall": {
                "id": call.id,
                "name": call.name,
                "args": alternating_turns.arguments(call),
            }
        }


def _part(part: str | Picture) -> dict[str, Any]:
    return (
        {"text": part}
        if isinstance(part, str)
        else {"inlineData": {"mimeType": part.media_type, "data": part.data}}
    )


def _response(text: str) -> dict[str, Any]:
    """A tool's answer as the object that the API wants; any other text is its `output`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    return data if isinstance(data, dict) else {"output": text}


def read_content(data: Any) -> Trace:
    """The trace of generated content; ValueError when it is none, was blocked or stopped, or says
    nothing at all.

    Thoughts are no part of the answer. Code that the vendor ran itself counts as a tool call, with
    its output."""
    reply = json_values.members(data)
    candidate = _candidate(reply)
    reason = candidate.get("finishReason")
    parts = json_values.members(candidate.get("content")).get("parts", [])
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise ValueError("the reply's content.parts are no list of objects")
    said = [part for part in parts if part.get("thought") is not True]
    text = "".join(part["text"] for part in said if isinstance(part.get("text"), str))
    calls = _calls(said)
    if not text and not calls:
        advice = "; raise `maxOutputTokens` in `config`" if reason == "MAX_TOKENS" else ""
        raise ValueError(f"the reply is empty (finishReason {reason!r}){advice}")
    tokens_in, tokens_out, cached = _tokens(reply.get("usageMetadata"))
    return Trace(
        messages=(Message("assistant", text, tool_calls=calls),),
        tool_calls=calls,
        llm_call_count=1,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cached_tokens=cached,
    )


def _candidate(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    candidates = reply.get("candidates")
    candidate = candidates[0] if isinstance(candidates, list) and candidates else None
    blocked = json_values.members(reply.get("promptFeedback")).get("blockReason")
    if candidate is None and blocked:
        raise ValueError(f"the vendor blocked the prompt ({blocked})")
    if not isinstance(candidate, Mapping):
        raise ValueError("the reply is no generated content: it has no candidates[0]")
    reason = candidate.get("finishReason")
    if reason not in _WHOLE:
        raise ValueError(_stopped(str(reason), candidate.get("finishMessage")))
    return candidate


def _stopped(reason: str, told: Any) -> str:
    why = told if isinstance(told, str) and told else _STOPPED.get(reason, "")
    return f"the vendor stopped the reply ({reason})" + (f": {why}" if why else "")


def _calls(parts: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for number, part in enumerate(parts):
        if isinstance(call := part.get("functionCall"), Mapping):
            calls.append(_function_call(call))
        elif isinstance(code := part.get("executableCode"), Mapping):
            run = {"language": code.get("language"), "code": code.get("code")}
            result = (
                json_values.members(parts[number + 1].get("codeExecutionResult"))
                if number + 1 < len(parts)
                else {}
            )
            calls.append(ToolCall("code_execution", run, result.get("output")))
    return tuple(calls)


def _function_call(call: Mapping[str, Any]) -> ToolCall:
    name, own_id = call.get("name"), call.get("id")
    if not isinstance(name, str):
        raise ValueError("a function call of the reply has no name")
    return ToolCall(name, call.get("args", {}), id=own_id if isinstance(own_id, str) else None)


def _tokens(usage: Any) -> tuple[int | None, int | None, int | None]:
    """Tokens in, out, and read from the vendor's cache, which `promptTokenCount` includes.

    Thoughts are paid as output, and what the vendor's own tools returned as input.
    https://ai.google.dev/api/generate-content#UsageMetadata"""
    told = json_values.members(usage)
    prompt, tools, answer, thoughts, cached = (
        json_values.count(told.get(f"{name}TokenCount"))
        for name in ("prompt", "toolUsePrompt", "candidates", "thoughts", "cachedContent")
    )
    tokens_in = None if prompt is None else prompt + (tools or 0)
    tokens_out = None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0)
    return tokens_in, tokens_out, cached
