"""Replies of models in each wire format: messages with tool calls, tokens, and what is no answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.messages import wire_messages
from agentevals_action.model.trace import list_calls
from agentevals_action.model.usage import Usage
from agentevals_action.targets.dialects.usage import read_usage
from tests.support.model_targets import FORMATS

DATA = json.loads(Path("tests/data/formats/replies.json").read_text(encoding="utf-8"))
CASES = [(name, case) for name, cases in DATA.items() for case in cases]


@pytest.mark.parametrize(("name", "case"), [case for case in CASES if "error" not in case[1]])
def test_from_wire__the_trace_of_a_reply(name: str, case: dict[str, Any]) -> None:
    reply = case["reply"]
    trace = FORMATS[name].from_wire(reply)
    assert wire_messages(trace.messages) == case["messages"]
    assert trace.usage == Usage(**case["usage"])
    assert trace.model == reply.get("model", reply.get("modelVersion"))
    assert trace.llm_call_count == 1
    assert trace.tool_calls == list_calls(trace.messages)


@pytest.mark.parametrize(("name", "case"), [case for case in CASES if "error" in case[1]])
def test_from_wire__anything_else_is_an_error(name: str, case: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^") as caught:
        FORMATS[name].from_wire(case["reply"])
    assert case["error"] in str(caught.value)


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
            {"input_tokens": 5, "cache_read_tokens": 2, "cache_write_tokens": 1},
            Usage(5, None, 2, 1),
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
