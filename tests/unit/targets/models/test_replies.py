"""Replies of models in each wire format: messages with tool calls, tokens, and what is no answer."""

from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.model.messages import wire_messages
from agentevals_action.model.trace import Usage, list_calls
from agentevals_action.targets.dialects.usage import read_usage
from tests.support import data
from tests.support.model_targets import FORMATS

DATA = data.read("formats/replies.json")
USAGES = data.read("formats/usages.yaml")
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


@pytest.mark.parametrize(("usage", "tokens", "cost"), USAGES)
def test_read_usage__what_is_not_reported_is_unknown(
    usage: Any, tokens: list[int | None], cost: float | None
) -> None:
    assert read_usage(usage) == replace(Usage(*tokens), cost_usd=cost)
