"""OpenAI's API, Azure's and that of compatible servers on loopback: scripted replies first, then
replies by pattern.

It validates requests as the vendors do. https://platform.openai.com/docs/api-reference and
https://learn.microsoft.com/azure/ai-foundry/openai/reference"""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support import stand_in

USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 3},
}
RESPONSES_USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 18,
}
_SAFE = {
    name: {"filtered": False, "severity": "safe"}
    for name in ("hate", "self_harm", "sexual", "violence")
}
_FEWEST = 16


@dataclass(frozen=True)
class Received(stand_in.Received):
    """A request of one of the two formats."""

    @property
    def asked(self) -> str:
        """What is asked for: `chat`, `responses`, or nothing that the vendors know."""
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        found = re.fullmatch(
            r"/(?:openai/)?v1/(chat/completions|responses)|/openai/(deployments/[^/]+/chat/completions|responses)",
            path,
        )
        if found is None or (found[2] and "api-version" not in query):
            return ""
        return "responses" if path.endswith("/responses") else "chat"

    @property
    def at_azure(self) -> bool:
        return self.path.startswith("/openai/")

    @property
    def model(self) -> str:
        """The model or deployment that the path names, else the body."""
        below = re.search(r"/deployments/([^/]+)/", self.path)
        return unquote(below[1]) if below else str(self.body.get("model"))

    @property
    def prompt(self) -> str:
        """The text of the last user message."""
        messages = self.body["messages" if "messages" in self.body else "input"]
        if isinstance(messages, str):
            return messages
        content = next(
            message["content"] for message in reversed(messages) if message.get("role") == "user"
        )
        return (
            content
            if isinstance(content, str)
            else "\n".join(part.get("text", "") for part in content)
        )


@dataclass(frozen=True)
class Reply(stand_in.Sent):
    """One answer. Without a `body` it has the format of the request: a completion from `text`,
    `message` and `finish_reason`, a response from `items` or `text`; `fields` replace its own."""

    text: str = ""
    message: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str = "stop"
    usage: Mapping[str, Any] | None = field(default_factory=lambda: USAGE)
    items: Sequence[Mapping[str, Any]] | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    def data(self, received: stand_in.Received) -> bytes:
        if self.body is not None or not isinstance(received, Received):
            return super().data(received)
        if received.asked == "responses":
            body = _response(self)
        else:
            body = _completion(self, received.at_azure)
        return json.dumps({**body, **self.fields}).encode()


def failure(
    status: int,
    message: str,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
    param: str | None = None,
) -> Reply:
    """A refusal in OpenAI's shape."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Reply(status=status, body={"error": error}, headers=headers or {})


def azure_failure(
    status: int, message: str, code: str, /, headers: Mapping[str, str] | None = None, **fields: Any
) -> Reply:
    """A refusal in Azure's shape."""
    return Reply(
        status=status,
        body={"error": {"code": code, "message": message, **fields}},
        headers=headers or {},
    )


def output_message(text: str, **fields: Any) -> Mapping[str, Any]:
    """An item of a response that is a message."""
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
        **fields,
    }


def function_call(name: str, arguments: str, call_id: str) -> Mapping[str, Any]:
    """An item of a response that calls a function."""
    return {
        "id": "fc_1",
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


class OpenAIServer(stand_in.StandIn[Received, Reply]):
    """`with OpenAIServer({"pattern": "answer"}) as server:` then `server.url` (or `azure_url`) and
    `server.requests`.

    The first pattern that matches the last user message, or `otherwise`, answers. Keys other than
    `key` are refused, models other than `model` are unknown; fields of a request in `refused` are
    not supported. Requests wait until `gather` of them are open; `busiest` is the greatest number
    of requests that were open at once."""

    request_type: ClassVar[type[stand_in.Received]] = Received

    def __init__(
        self,
        replies: Mapping[str, str | Reply] | None = None,
        *,
        script: Sequence[Reply] = (),
        otherwise: str | Reply | None = None,
        key: str | None = None,
        gather: int = 1,
        model: str | None = None,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(script)
        self.busiest = 0
        self._replies = dict(replies or {})
        self._otherwise = otherwise
        self._key = key
        self._model = model
        self._refused = refused
        self._open = 0
        self._count_lock = threading.Lock()
        self._gathered = threading.Barrier(gather)
        #: The URL of an Azure resource.
        self.azure_url = self.url
        self.url = f"{self.azure_url}/v1"

    def answer(self, received: Received) -> Reply:
        with self._count_lock:
            self._open += 1
            self.busiest = max(self.busiest, self._open)
        try:
            self._gathered.wait(timeout=30)
            return super().answer(received)
        finally:
            with self._count_lock:
                self._open -= 1

    def reply(self, received: Received) -> Reply:
        return self._refusal(received) or self._matching(received)

    def _refusal(self, received: Received) -> Reply | None:
        azure = received.at_azure
        if not received.asked:
            message = f"Invalid URL (POST {received.path})"
            return (
                azure_failure(404, "Resource not found", "404") if azure else failure(404, message)
            )
        if self._key is not None and self._key not in _keys(received):
            message = "Access denied due to invalid subscription key or wrong API endpoint."
            return (
                azure_failure(401, message, "401")
                if azure
                else failure(401, "Incorrect API key provided", "invalid_api_key")
            )
        if self._model is not None and received.model != self._model:
            message = "The API deployment for this resource does not exist."
            unknown = failure(
                404, f"The model `{received.model}` does not exist", "model_not_found"
            )
            return azure_failure(404, message, "DeploymentNotFound") if azure else unknown
        for name in self._refused:
            if name in received.body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                return failure(400, message, "unsupported_parameter", param=name)
        problem = next(
            _chat_errors(received.body)
            if received.asked == "chat"
            else _responses_errors(received.body),
            None,
        )
        return failure(400, problem) if problem else None

    def _matching(self, received: Received) -> Reply:
        for pattern, reply in self._replies.items():
            if re.search(pattern, received.prompt):
                return _as_reply(reply)
        if self._otherwise is None:
            return failure(400, "there is no answer to this")
        return _as_reply(self._otherwise)


class AzureServer(OpenAIServer):
    """The same server, its `url` the one of an Azure resource."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.url = self.azure_url


def _keys(received: Received) -> tuple[str | None, ...]:
    bearer = received.headers.get("authorization", "").removeprefix("Bearer ")
    if not received.at_azure:
        return (bearer,)
    return (
        received.headers.get("api-key"),
        bearer if received.path.startswith("/openai/v1/") else None,
    )


def _chat_errors(body: Mapping[str, Any]) -> Iterator[str]:
    if not body.get("messages"):
        yield "Missing required parameter: 'messages'."
        return
    if "input" in body or "instructions" in body:
        yield "Unrecognized request arguments supplied: input"
    waiting: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            waiting.discard(message["tool_call_id"])
        else:
            if waiting:
                break
            waiting = {call["id"] for call in message.get("tool_calls", ())}
    if waiting:
        yield f"The following tool_call_ids did not have response messages: {', '.join(sorted(waiting))}"


def _responses_errors(body: Mapping[str, Any]) -> Iterator[str]:
    if "messages" in body:
        yield "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'."
    if "input" not in body:
        yield "Missing required parameter: 'input'."
        return
    if body.get("max_output_tokens", _FEWEST) < _FEWEST:
        yield f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {_FEWEST}."
    items = [] if isinstance(body["input"], str) else body["input"]
    called = {item["call_id"] for item in items if item.get("type") == "function_call"}
    answered = {item["call_id"] for item in items if item.get("type") == "function_call_output"}
    yield from (
        f"No tool call found for function call output with call_id {name}."
        for name in sorted(answered - called)
    )
    yield from (
        f"No tool output found for function call {name}." for name in sorted(called - answered)
    )


def _as_reply(reply: str | Reply) -> Reply:
    return Reply(text=reply) if isinstance(reply, str) else reply


def _completion(reply: Reply, azure: bool) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.text, "refusal": None, **reply.message}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": reply.finish_reason,
    }
    data = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "test",
        "choices": [choice],
        "usage": reply.usage,
    }
    if azure:
        choice["content_filter_results"] = _SAFE
        data["prompt_filter_results"] = [{"prompt_index": 0, "content_filter_results": _SAFE}]
    return data


def _response(reply: Reply) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "test",
        "output": [output_message(reply.text)] if reply.items is None else list(reply.items),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": RESPONSES_USAGE if reply.usage == USAGE else reply.usage,
    }
