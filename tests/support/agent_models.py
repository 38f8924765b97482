"""A model server on loopback for the real agents: it speaks the streaming forms of Anthropic
(`/v1/messages`), OpenAI (`/v1/responses`, `/v1/chat/completions`) and Gemini, by script."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.support.stand_in import Received, Sent, StandIn

_EVENTS = {"Content-Type": "text/event-stream"}


@dataclass(frozen=True)
class Call:
    """A tool that the model calls; `namespace` is that of Codex's tools of MCP servers."""

    name: str
    arguments: Mapping[str, Any]
    namespace: str = ""


@dataclass(frozen=True)
class Turn:
    """One reply of the model; its tokens do not include the cached ones. With `finds`, a regular
    expression, the text is all that the request has of it, in alphabetical order."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    tokens_in: int = 100
    tokens_out: int = 10
    cached: int = 0
    finds: str = ""


class AgentModels(StandIn[Received, Sent]):
    """`scripts` are the turns of the conversations, by a text in the first message. The turn is the
    number of replies in the conversation so far; after the last one comes the last one again.
    `refusal` answers every call of the model instead."""

    def __init__(self, scripts: Mapping[str, Sequence[Turn]], refusal: Sent | None = None) -> None:
        super().__init__()
        self._scripts, self._refusal = scripts, refusal

    def tools(self) -> list[str]:
        """The names of all tools that requests offered."""
        names: list[str] = []
        for body in (received.body for received in self.requests if received.data):
            for tool in body.get("tools") or ():
                inner = tool.get("tools") or tool.get("functionDeclarations") or [tool]
                names += [str((tool.get("function") or tool).get("name")) for tool in inner]
        return list(dict.fromkeys(names))

    def reply(self, received: Received) -> Sent:
        path = received.path.partition("?")[0]
        form = next((form for end, form in _FORMS.items() if path.endswith(end)), None)
        if received.method != "POST" or form is None:
            return Sent({}, 200 if received.method == "GET" else 404)
        if self._refusal is not None:
            return self._refusal
        body = received.body
        history = json.dumps(body.get("messages", body.get("input", body.get("contents"))))
        script = next((turns for mark, turns in self._scripts.items() if mark in history), None)
        if script is None:
            return Sent({"error": {"message": f"no script for {history[:300]}"}}, 400)
        number = len(re.findall(form.reply, history))
        turn = script[min(number, len(script) - 1)]
        if turn.finds:
            found = re.findall(turn.finds, received.data.decode())
            turn = replace(turn, text=" ".join(sorted(set(found))))
        events = form.events(turn, number)
        return Sent("".join(events).encode(), headers=_EVENTS)


def _event(data: Any, name: str = "") -> str:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


def _anthropic(turn: Turn, number: int) -> list[str]:
    blocks: list[tuple[Any, Any]] = []
    if turn.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}))
    for index, call in enumerate(turn.calls):
        start = {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": call.name}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
        blocks.append(({**start, "input": {}}, delta))
    usage = {"input_tokens": turn.tokens_in, "cache_read_input_tokens": turn.cached}
    message: dict[str, Any] = {"id": f"msg_{id(turn)}_{number}", "role": "assistant"}
    message |= {"type": "message", "model": "claude-sonnet-4-5", "content": [], "stop_reason": None}
    message |= {"stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
    events: list[Mapping[str, Any]] = [{"type": "message_start", "message": message}]
    for index, (start, delta) in enumerate(blocks):
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    reason = "tool_use" if turn.calls else "end_turn"
    stopped = {"stop_reason": reason, "stop_sequence": None}
    spent = {**usage, "output_tokens": turn.tokens_out}
    events += [
        {"type": "message_delta", "delta": stopped, "usage": spent},
        {"type": "message_stop"},
    ]
    return [_event(event, event["type"]) for event in events]


def _responses(turn: Turn, number: int) -> list[str]:
    items: list[dict[str, Any]] = []
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "content": content})
    for index, call in enumerate(turn.calls):
        item = {"type": "function_call", "call_id": f"call_{number}_{index}", "name": call.name}
        item["arguments"] = json.dumps(call.arguments)
        items.append(item | ({"namespace": call.namespace} if call.namespace else {}))
    tokens_in = turn.tokens_in + turn.cached
    usage = {
        "input_tokens": tokens_in,
        "input_tokens_details": {"cached_tokens": turn.cached},
        "output_tokens": turn.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens_in + turn.tokens_out,
    }
    done = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(items)
    ]
    events: list[Mapping[str, Any]] = [
        {"type": "response.created", "response": {"id": f"resp_{number}"}},
        *done,
        {"type": "response.completed", "response": {"id": f"resp_{number}", "usage": usage}},
    ]
    return [_event(event, event["type"]) for event in events]


def _chat(turn: Turn, number: int) -> list[str]:
    calls = [
        {
            "index": index,
            "id": f"call_{number}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for index, call in enumerate(turn.calls)
    ]
    delta: dict[str, Any] = {"role": "assistant", "content": turn.text}
    delta |= {"tool_calls": calls} if calls else {}
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "model": "gpt-4.1"}
    reason = "tool_calls" if calls else "stop"
    tokens_in = turn.tokens_in + turn.cached
    usage = {
        "prompt_tokens": tokens_in,
        "completion_tokens": turn.tokens_out,
        "total_tokens": tokens_in + turn.tokens_out,
        "prompt_tokens_details": {"cached_tokens": turn.cached},
    }
    chunks: list[Mapping[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": usage},
    ]
    return [*(_event({**head, "created": 1, **chunk}) for chunk in chunks), _event("[DONE]")]


def _gemini(turn: Turn, number: int) -> list[str]:  # of the interface
    parts: list[Mapping[str, Any]] = [{"text": turn.text}] if turn.text else []
    parts += [{"functionCall": {"name": call.name, "args": call.arguments}} for call in turn.calls]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    tokens_in = turn.tokens_in + turn.cached
    usage = {
        "promptTokenCount": tokens_in,
        "candidatesTokenCount": turn.tokens_out,
        "cachedContentTokenCount": turn.cached,
        "totalTokenCount": tokens_in + turn.tokens_out,
    }
    return [_event({"candidates": [candidate], "usageMetadata": usage})]


@dataclass(frozen=True)
class _Form:
    """`reply`: a regular expression that a request has once for each reply of the model before."""

    events: Any
    reply: str


_FORMS = {
    "/messages": _Form(_anthropic, '"role": "assistant"'),
    "/responses": _Form(_responses, r'"function_call_output"[^}]*?"call_id": "call_\d+_0"'),
    "/chat/completions": _Form(_chat, '"role": "assistant"'),
    ":streamGenerateContent": _Form(_gemini, '"role": "model"'),
}
