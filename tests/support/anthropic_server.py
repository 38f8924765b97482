"""Anthropic's Messages API on loopback: it validates requests as the API does, and replies by pattern.

https://platform.claude.com/docs/en/api/messages, https://platform.claude.com/docs/en/api/errors
and, for what a version takes and how a key is sent,
https://platform.claude.com/docs/en/api/migration-2026-10-21"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.stand_in import Received, Sent, StandIn

USAGE = {
    "input_tokens": 8,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 300,
    "output_tokens": 7,
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
} | {
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_FIELDS = {
    "model",
    "messages",
    "max_tokens",
    "system",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "tools",
    "tool_choice",
} | {
    "thinking",
    "metadata",
    "service_tier",
    "output_config",
}

#: For each version of the API what it took once and refuses now.
_REMOVED: Mapping[str, set[str]] = {
    "2023-06-01": set(),
    "2026-10-21": {"temperature", "top_p", "top_k"},
}


def failure(
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    details: Mapping[str, Any] | None = None,
) -> Sent:
    """A refusal in Anthropic's shape."""
    error = {
        "type": _TYPES[status],
        "message": message,
        **({"details": details} if details else {}),
    }
    return Sent(
        {"type": "error", "error": error, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"},
        status,
        headers or {},
    )


def message(
    *content: str | Mapping[str, Any],
    stop_reason: str = "end_turn",
    usage: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Mapping[str, Any]:
    """A message in Anthropic's shape; a string is a block of text."""
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": blocks,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": USAGE if usage is None else usage,
        **fields,
    }


def prompt(received: Received) -> str:
    """The text of the last user message."""
    content = next(
        message["content"]
        for message in reversed(received.body["messages"])
        if message["role"] == "user"
    )
    return (
        content
        if isinstance(content, str)
        else "\n".join(block.get("text", "") for block in content)
    )


class AnthropicServer(StandIn[Received, Sent]):
    """The first pattern found in the last user message, or `otherwise`, answers. With `key` every
    other one is refused, with `model` every other is unknown."""

    def __init__(
        self,
        replies: Mapping[str, str | Mapping[str, Any]] | None = None,
        *,
        script: Sequence[Sent] = (),
        otherwise: str | Mapping[str, Any] | None = None,
        key: str | None = None,
        model: str | None = None,
    ) -> None:
        super().__init__(script)
        self._replies = dict(replies or {})
        self._otherwise = otherwise
        self._key = key
        self._model = model

    def reply(self, received: Received) -> Sent:
        if received.path != "/v1/messages":
            return failure(404, "Not Found")
        if self._key is not None and _key(received) != self._key:
            return failure(401, "invalid x-api-key")
        problem = _error(received)
        if problem is not None:
            return failure(400, problem)
        if self._model is not None and received.body["model"] != self._model:
            return failure(404, f"model: {received.body['model']}")
        found = next(
            (
                reply
                for pattern, reply in self._replies.items()
                if re.search(pattern, prompt(received))
            ),
            self._otherwise,
        )
        if found is None:
            return failure(400, "there is no answer to this")
        return Sent(message(found) if isinstance(found, str) else found)


def _key(received: Received) -> str | None:
    """The key in either header: the API takes both, its own client has changed from one to the
    other."""
    bearer = received.headers.get("authorization", "").partition("Bearer ")[2]
    return received.headers.get("x-api-key") or bearer or None


def _error(received: Received) -> str | None:
    body = received.body
    version = received.headers.get("anthropic-version", "")
    if version not in _REMOVED:
        return (
            f'anthropic-version: "{version}" is not a valid version'
            if version
            else "anthropic-version: header is required"
        )
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            return f"{name}: Field required"
    strange = sorted(body.keys() - (_FIELDS - _REMOVED[version]))
    if strange:
        return f"{strange[0]}: Extra inputs are not permitted"
    thinking = body.get("thinking", {})
    if thinking.get("budget_tokens", 0) >= body["max_tokens"]:
        return "`max_tokens` must be greater than `thinking.budget_tokens`"
    if not body["messages"]:
        return "messages: at least one message is required"
    return next(
        (
            problem
            for index in range(len(body["messages"]))
            if (problem := _turn_error(body["messages"], index))
        ),
        None,
    )


def _turn_error(messages: Sequence[Mapping[str, Any]], index: int) -> str | None:
    turn = messages[index]
    if turn["role"] not in ("user", "assistant"):
        return f'messages.{index}: Unexpected role "{turn["role"]}"'
    if not turn["content"]:
        return f"messages.{index}: {turn['role']} messages must have non-empty content"
    blocks = turn["content"] if isinstance(turn["content"], list) else []
    if any(block["type"] == "text" and not block["text"] for block in blocks):
        return f"messages.{index}: text content blocks must be non-empty"
    before = messages[index - 1]["content"] if index else []
    called = {
        block["id"]
        for block in before
        if isinstance(block, Mapping) and block["type"] == "tool_use"
    }
    answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
    if answered - called:
        return f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {min(answered - called)}"
    if called - answered:
        return f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: {min(called - answered)}"
    return None
