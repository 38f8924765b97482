"""Replies of models in each wire format: messages with tool calls, tokens, and what is no answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.messages import wire_messages
from agentevals_action.model.usage import Usage
from agentevals_action.targets.formats import anthropic, gemini, openai_chat, openai_responses
from agentevals_action.targets.formats.base import read_usage

READERS = {
    "anthropic": anthropic.read_reply,
    "gemini": gemini.read_reply,
    "openai_chat": openai_chat.read_reply,
    "openai_responses": openai_responses.read_reply,
}
DATA = json.loads(Path("tests/data/formats/replies.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in DATA.items() for case in cases]
)
def test_read_reply(name: str, case: dict[str, Any]) -> None:
    reply = case["reply"]
    trace = READERS[name](reply)
    assert wire_messages(trace.messages) == case["messages"]
    assert trace.usage == Usage(**case["usage"])
    assert trace.model == reply.get("model", reply.get("modelVersion"))
    assert trace.llm_call_count == 1
    assert trace.tool_calls == tuple(
        call for message in trace.messages for call in message.tool_calls
    )


def chat(finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish_reason}]}


def claude(*content: Any, **fields: Any) -> dict[str, Any]:
    return {"content": list(content), "stop_reason": "end_turn", **fields}


def google(*parts: Any, reason: str = "STOP", **fields: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": parts}, "finishReason": reason, **fields}]}


def response(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"object": "response", "status": "completed", "output": list(items), **fields}


PARTLY = {"type": "message", "content": "partly"}
NO_ANSWER: list[tuple[str, Any, str]] = [
    ("openai_chat", [], "is not a chat completion"),
    ("openai_chat", {"choices": []}, "is not a chat completion"),
    ("openai_chat", {"choices": [5]}, "`choices[0]` is not an object"),
    ("openai_chat", {"choices": [{"message": None}]}, "is not a chat completion"),
    ("openai_chat", chat("content_filter", content="partly"), "content filter"),
    ("openai_chat", chat(content=5), "a content is not a text"),
    ("openai_chat", chat(content="x", tool_calls={}), "`tool_calls` is not a list"),
    ("openai_chat", chat(content="x", tool_calls=["y"]), "`tool_calls[0]` is not an object"),
    ("openai_chat", chat(tool_calls=[{"function": {"arguments": ""}}]), "has no name"),
    ("openai_chat", chat(tool_calls=[{"custom": {"input": ""}}]), "has no name"),
    ("openai_chat", chat("length", content=None), "empty (finish_reason 'length')"),
    ("openai_chat", chat(content=""), "empty (finish_reason 'stop')"),
    ("openai_responses", [], "is not a response"),
    ("openai_responses", {"object": "chat.completion", "output": []}, "is not a response"),
    ("openai_responses", {"output": 5}, "`output` is not a list"),
    ("openai_responses", {"output": ["x"]}, "`output[0]` is not an object"),
    ("openai_responses", response({**PARTLY, "content": 5}), "a content is not a text"),
    ("openai_responses", response({"type": "function_call"}), "tool call of the reply has no name"),
    (
        "openai_responses",
        response(PARTLY, incomplete_details={"reason": "content_filter"}),
        "content filter",
    ),
    ("openai_responses", response(), "empty (status 'completed')"),
    (
        "openai_responses",
        response(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "empty (status 'incomplete', max_output_tokens)",
    ),
    ("openai_responses", response(PARTLY, status="queued"), "not completed (status 'queued')"),
    (
        "openai_responses",
        response(status="failed", error={"code": "invalid_prompt", "message": "no"}),
        "(status 'failed'): invalid_prompt: no",
    ),
    ("anthropic", None, "is not a message"),
    ("anthropic", {"content": "text"}, "is not a message"),
    ("anthropic", claude("text"), "`content[0]` is not an object"),
    ("anthropic", claude(), "empty (stop_reason 'end_turn')"),
    ("anthropic", claude(stop_reason="max_tokens"), "'max_tokens'); raise `max_tokens`"),
    ("anthropic", claude({"type": "tool_use", "id": "1"}), "a tool call of the reply has no name"),
    ("anthropic", claude(stop_reason="pause_turn"), "paused the turn"),
    ("anthropic", claude(stop_reason="refusal"), "refused to answer (stop_reason 'refusal')"),
    ("gemini", [{}], "is not generated content"),
    ("gemini", {"candidates": []}, "is not generated content"),
    ("gemini", {"promptFeedback": {"blockReason": "OTHER"}}, "blocked the prompt (OTHER)"),
    ("gemini", google(reason="SAFETY"), "stopped the reply (SAFETY)"),
    ("gemini", google(reason="SPII", finishMessage="a name"), "stopped the reply (SPII): a name"),
    ("gemini", google(reason="NEW"), "empty (finishReason 'NEW')"),
    ("gemini", google(reason="MAX_TOKENS"), "'MAX_TOKENS'); raise `maxOutputTokens`"),
    ("gemini", google({"text": "hm", "thought": True}), "the reply is empty"),
    ("gemini", {"candidates": [{"content": {"parts": ["x"]}}]}, "parts[0]` is not an object"),
    ("gemini", google({"functionCall": {"args": {}}}), "a tool call of the reply has no name"),
]


@pytest.mark.parametrize(("name", "data", "problem"), NO_ANSWER)
def test_read_reply__anything_else_is_an_error(name: str, data: Any, problem: str) -> None:
    data = json.loads(json.dumps(data))
    with pytest.raises(ValueError, match=r"^") as caught:
        READERS[name](data)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        (None, Usage()),
        ([], Usage()),
        ({"prompt_tokens": "11", "completion_tokens": True}, Usage()),
        ({"input_tokens": None, "output_tokens": -1, "input_tokens_details": None}, Usage()),
        ({"prompt_tokens": 3, "cost": 0.5}, Usage(3, cost_usd=0.5)),
        ({"cost": "free"}, Usage()),
        ({"prompt_tokens": 0, "completion_tokens": 0, "cost": 0.5}, Usage(cost_usd=0.5)),
        ({"cost": 0.5, "is_byok": True}, Usage()),
        (
            {"input_tokens": 5, "input_token_details": {"cache_read": 2, "cache_creation": 1}},
            Usage(5, None, 2, 1),
        ),
        (
            {
                "input_tokens": 5,
                "output_tokens": 4,
                "cache_read_tokens": 2,
                "cache_write_tokens": 1,
            },
            Usage(5, 4, 2, 1),
        ),
        (
            {"inputTokens": 5, "cacheReadInputTokens": 2, "cacheCreationInputTokens": 1},
            Usage(8, None, 2, 1),
        ),
        ({"input_tokens": 5, "cached_input_tokens": 2, "output_tokens": 4}, Usage(5, 4, 2)),
    ],
)
def test_read_usage__what_is_not_reported_is_unknown(usage: Any, wanted: Usage) -> None:
    assert read_usage(usage) == wanted
