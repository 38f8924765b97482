"""Google's Gemini API on loopback: it validates requests as the API does, and replies by pattern.

https://ai.google.dev/api/generate-content and https://ai.google.dev/gemini-api/docs/troubleshooting
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.support.stand_in import Received, Sent, StandIn

USAGE = {
    "promptTokenCount": 328,
    "cachedContentTokenCount": 300,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 40,
    "totalTokenCount": 375,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 328}],
}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
} | {
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_FIELDS = {
    "contents",
    "systemInstruction",
    "generationConfig",
    "tools",
    "toolConfig",
    "safetySettings",
    "cachedContent",
}
_CONFIG = {
    "temperature",
    "topP",
    "topK",
    "maxOutputTokens",
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "thinkingConfig",
    "seed",
}
_PATH = re.compile(r"/v1(?:beta)?/models/([^/:]+):generateContent")


def failure(
    status: int, message: str, *details: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Sent:
    """A refusal in Google's shape."""
    error = {
        "code": status,
        "message": message,
        "status": _STATUSES[status],
        **({"details": details} if details else {}),
    }
    return Sent({"error": error}, status, headers or {})


def bad_key() -> Sent:
    """What Google says to a key that it does not know: 400, not 401."""
    reason = {
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }
    problem = "API key not valid. Please pass a valid API key."
    localized = {
        "@type": "type.googleapis.com/google.rpc.LocalizedMessage",
        "locale": "en-US",
        "message": problem,
    }
    return failure(
        400, problem, {"@type": "type.googleapis.com/google.rpc.ErrorInfo", **reason}, localized
    )


def exhausted(delay: str) -> Sent:
    """What Google says when a quota is used up; the wait stands in the body."""
    violation = {
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
        "quotaValue": "10",
    }
    return failure(
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    )


def content(
    *parts: str | Mapping[str, Any],
    finish_reason: str | None = "STOP",
    usage: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Mapping[str, Any]:
    """Generated content in Google's shape; a string is a part of text, and without parts there is
    no content, as there."""
    wired = [{"text": part} if isinstance(part, str) else part for part in parts]
    candidate: dict[str, Any] = {
        "index": 0,
        **({"content": {"role": "model", "parts": wired}} if wired else {}),
        **fields,
    }
    if finish_reason is not None:
        candidate["finishReason"] = finish_reason
    used = USAGE if usage is None else usage
    return {
        "candidates": [candidate],
        "usageMetadata": used,
        "modelVersion": "gemini-test",
        "responseId": "Dj9LaPCjJsCvgLUPgeGuqAU",
    }


def prompt(received: Received) -> str:
    """The text of the last user content."""
    last = next(
        content for content in reversed(received.body["contents"]) if content["role"] == "user"
    )
    return "\n".join(part.get("text", "") for part in last["parts"])


class GeminiServer(StandIn[Received, Sent]):
    """The first pattern found in the last user content, or `otherwise`, answers. With `key` every
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
        found_path = _PATH.fullmatch(received.path)
        if found_path is None:
            return Sent(
                b"<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>",
                404,
                {"Content-Type": "text/html"},
            )
        if self._key is not None and "x-goog-api-key" not in received.headers:
            return failure(
                403,
                "Method doesn't allow unregistered callers (callers without established identity).",
            )
        if self._key is not None and received.headers["x-goog-api-key"] != self._key:
            return bad_key()
        model = found_path.group(1)
        if self._model is not None and model != self._model:
            unknown = f"models/{model} is not found for API version v1beta, or is not supported for generateContent."
            return failure(
                404,
                f"{unknown} Call ListModels to see the list of available models and their supported methods.",
            )
        problem = _error(received.body, model)
        if problem is not None:
            return failure(400, problem)
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
        return Sent(content(found) if isinstance(found, str) else found)


def _error(body: Mapping[str, Any], model: str) -> str | None:
    strange = sorted(body.keys() - _FIELDS)
    if strange:
        return f'Invalid JSON payload received. Unknown name "{strange[0]}": Cannot find field.'
    strange = sorted(body.get("generationConfig", {}).keys() - _CONFIG)
    if strange:
        return f"Invalid JSON payload received. Unknown name \"{strange[0]}\" at 'generation_config': Cannot find field."
    if not body.get("contents"):
        return "* GenerateContentRequest.contents: contents is not specified"
    return next(
        (problem for turn in body["contents"] if (problem := _turn_error(turn, model))), None
    ) or _count_error(body["contents"])


def _turn_error(turn: Mapping[str, Any], model: str) -> str | None:
    if turn["role"] not in ("user", "model"):
        return "Please use a valid role: user, model."
    if not turn["parts"]:
        return "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty."
    called = [part for part in turn["parts"] if "functionCall" in part]
    if called and model.startswith("gemini-3") and "thoughtSignature" not in called[0]:
        return "Function call is missing a thought_signature in functionCall parts."
    return None


def _count_error(contents: Sequence[Mapping[str, Any]]) -> str | None:
    for before, after in pairwise(contents):
        called = [part for part in before["parts"] if "functionCall" in part]
        answered = [part for part in after["parts"] if "functionResponse" in part]
        if len(called) != len(answered):
            return (
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function "
                "call turn."
            )
    return None
