"""OpenAI's API on loopback, in both formats: scripted replies first, then replies by pattern.

https://platform.openai.com/docs/api-reference"""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

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


@dataclass(frozen=True)
class Received(stand_in.Received):
    """A request of one of the two formats."""

    @property
    def prompt(self) -> str:
        """The text of the last user message."""
        messages = self.body["messages" if "messages" in self.body else "input"]
        if isinstance(messages, str):
            return messages
        content = next(
            message["content"] for message in reversed(messages) if message.get("role") == "user"
        )
        if isinstance(content, str):
            return content
        return "\n".join(part.get("text", "") for part in content)


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
        if self.body is not None:
            return super().data(received)
        make = _response if received.path.endswith("/responses") else _completion
        return json.dumps({**make(self), **self.fields}).encode()


def failure(
    status: int, message: str, code: str | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """A refusal in OpenAI's shape."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return Reply(status=status, body={"error": error}, headers=headers or {})


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
    """`with OpenAIServer({"pattern": "answer"}) as server:` then `server.url` and `server.requests`.

    The first pattern that matches the last user message, or `otherwise`, answers. Keys other than
    `key` are refused. Requests wait until `gather` of them are open; `busiest` is the greatest
    number of requests that were open at once."""

    request_type: ClassVar[type[stand_in.Received]] = Received

    def __init__(
        self,
        replies: Mapping[str, str | Reply] | None = None,
        *,
        script: Sequence[Reply] = (),
        otherwise: str | Reply | None = None,
        key: str | None = None,
        gather: int = 1,
    ) -> None:
        super().__init__(script)
        self.url = f"{self.url}/v1"
        self.busiest = 0
        self._replies = dict(replies or {})
        self._otherwise = otherwise
        self._key = key
        self._open = 0
        self._count_lock = threading.Lock()
        self._gathered = threading.Barrier(gather)

    def answer(self, received: Received) -> stand_in.Sent:
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
        if received.path not in ("/v1/chat/completions", "/v1/responses"):
            return failure(404, f"Invalid URL (POST {received.path})")
        key = received.headers.get("authorization", "").removeprefix("Bearer ")
        if self._key not in (None, key):
            return failure(401, "Incorrect API key provided", "invalid_api_key")
        matching = (
            reply for pattern, reply in self._replies.items() if re.search(pattern, received.prompt)
        )
        found = next(matching, self._otherwise)
        if found is None:
            return failure(400, "there is no answer to this")
        return Reply(text=found) if isinstance(found, str) else found


def _completion(reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.text, "refusal": None, **reply.message}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "test",
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
        "usage": reply.usage,
    }


def _response(reply: Reply) -> dict[str, Any]:
    content = [{"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": content}
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
        "output": [{**message, "status": "completed"}] if reply.items is None else reply.items,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": RESPONSES_USAGE if reply.usage == USAGE else reply.usage,
    }
