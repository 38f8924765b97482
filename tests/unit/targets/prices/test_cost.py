"""The cost of an answer: the reply's own, the target's price, the table; counted by hand."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.suite import Message
from agentevals_action.model.target import Price, Target
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.targets.prices.cost import cost_of
from agentevals_action.targets.prices.table import price_table
from tests.support import targets
from tests.support.agent_server import AgentServer, Answer
from tests.support.anthropic_server import AnthropicServer, message
from tests.support.gemini_server import GeminiServer
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.stand_in import Sent

TABLE = f"price table {price_table().date}"
SPENT = (Message("assistant", "hi"),)


def ask(target: Target) -> Trace:
    async def asked() -> Trace:
        calls = targets.calls({})
        try:
            return await calls.complete(target, targets.request(Path("/"), "hello"))
        finally:
            await calls.close()

    return asyncio.run(asked())


def model(url: str, name: str, price: Price | None = None, **fields: Any) -> Target:
    definition = {"provider": "openai", "model": name, "base_url": url, **fields}
    return targets.target(definition, price=price)


def test_complete__a_known_model_has_the_price_of_the_table() -> None:
    # 11 tokens in, 3 of them cached, 7 out; a million gpt-5 tokens cost $1.25, $0.125 and $10.
    with OpenAIServer(otherwise="hi") as server:
        trace = ask(model(server.url, "openai/gpt-5-2025-08-07"))
    assert trace.usage.cost_usd == pytest.approx((8 * 1.25 + 3 * 0.125 + 7 * 10) / 1e6)
    assert trace.cost_source == TABLE


def test_complete__the_model_that_answered_comes_before_the_alias_in_the_target() -> None:
    answered = Reply(text="hi", fields={"model": "gpt-5-mini-2025-08-07"})
    with OpenAIServer(otherwise=answered) as server:
        trace = ask(model(server.url, "gpt-5"))
    assert trace.usage.cost_usd == pytest.approx((8 * 0.25 + 3 * 0.025 + 7 * 2) / 1e6)


def test_complete__what_anthropic_writes_to_its_cache_has_its_own_price() -> None:
    usage = {
        "input_tokens": 100,
        "cache_read_input_tokens": 2000,
        "cache_creation_input_tokens": 500,
        "output_tokens": 40,
    }
    with AnthropicServer(script=[Sent(message("hi", usage=usage))]) as server:
        definition = {"provider": "anthropic", "model": "claude-sonnet-4-5", "api_key": "k"}
        trace = ask(targets.target({**definition, "base_url": server.url}))
    by_hand = (100 * 3 + 2000 * 0.3 + 500 * 3.75 + 40 * 15) / 1e6
    assert trace.usage.input_tokens == 2600
    assert trace.usage.cost_usd == pytest.approx(by_hand)


def test_complete__the_version_of_gemini_that_answered_has_its_price() -> None:
    answer = {
        "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 10},
        "modelVersion": "gemini-2.5-flash-lite",
    }
    with GeminiServer(script=[Sent(answer)]) as server:
        definition = {"provider": "gemini", "model": "gemini-flash", "api_key": "k"}
        trace = ask(targets.target({**definition, "base_url": server.url}))
    assert trace.usage.cost_usd == pytest.approx((1000 * 0.1 + 10 * 0.4) / 1e6)


def test_complete__the_price_of_the_target_comes_before_the_table() -> None:
    with OpenAIServer(otherwise="hi") as server:
        trace = ask(model(server.url, "gpt-5", Price(2, 10, cached_input=1)))
        plain = ask(model(server.url, "gpt-5", Price(2, 10)))
    assert trace.usage.cost_usd == pytest.approx((8 * 2 + 3 * 1 + 7 * 10) / 1e6)
    assert trace.cost_source == "price of the target"
    assert plain.usage.cost_usd == pytest.approx((11 * 2 + 7 * 10) / 1e6)


@pytest.mark.parametrize(
    ("headers", "usage", "cost"),
    [
        ({"x-litellm-response-cost": "0.00125"}, {}, 0.00125),
        ({"x-litellm-response-cost": "0.00125"}, {"cost": 0.5}, 0.00125),
        ({}, {"cost": 0.5}, 0.5),
        # With a key of one's own, OpenRouter's cost is only its fee.
        ({}, {"cost": 0.05, "is_byok": True, "cost_details": {"upstream_inference_cost": 1}}, 1.05),
        ({"x-litellm-response-cost": "0.0"}, {}, 0),
    ],
)
def test_complete__the_cost_in_a_reply_comes_before_every_price(
    headers: dict[str, str], usage: dict[str, Any], cost: float
) -> None:
    tokens = {"prompt_tokens": 11, "completion_tokens": 7, **usage}
    with OpenAIServer(otherwise=Reply(text="hi", usage=tokens, headers=headers)) as server:
        trace = ask(model(server.url, "gpt-5", Price(2, 10)))
    assert trace.usage.cost_usd == pytest.approx(cost)
    assert trace.cost_source == "reply"


@pytest.mark.parametrize("stated", ["", "None", "nan", "inf", "-1", "a lot"])
def test_complete__a_cost_that_is_no_amount_counts_as_not_stated(stated: str) -> None:
    answer = Reply(text="hi", headers={"x-litellm-response-cost": stated})
    with OpenAIServer(otherwise=answer) as server:
        assert ask(model(server.url, "gpt-5", Price(1, 1))).cost_source == "price of the target"


def test_complete__the_cost_in_the_header_of_a_service_counts() -> None:
    answer = Answer({"text": "hi"}, headers={"x-litellm-response-cost": "0.25"})
    with AgentServer(answer) as server:
        trace = ask(targets.target({"provider": "http", "url": server.url}))
    assert (trace.usage.cost_usd, trace.cost_source) == (0.25, "reply")


def test_complete__an_envelope_names_its_model() -> None:
    usage = {"input": 2600, "cached": 2000, "output": 40}
    name = "anthropic/claude-sonnet-4.5"
    reply = json.dumps({"output": "hi", "model": name, "token_usage": usage})
    trace = ask(targets.target({"provider": "cli", "command": ["echo", reply]}))
    by_hand = (600 * 3 + 2000 * 0.3 + 40 * 15) / 1e6
    assert (trace.usage.input_tokens, trace.cost_source) == (2600, TABLE)
    assert trace.usage.cost_usd == pytest.approx(by_hand)


def test_complete__an_unknown_cost_states_what_to_write() -> None:
    with OpenAIServer(otherwise="hi") as server:
        unknown = ask(model(server.url, "our-model"))
    with OpenAIServer(otherwise=Reply(text="hi", usage=None)) as server:
        uncounted = ask(model(server.url, "gpt-5"))
    text = ask(targets.target({"provider": "cli", "command": ["echo", "hi"]}))
    assert [one.usage.cost_usd for one in (unknown, uncounted, text)] == [None] * 3
    assert unknown.cost_hint == 'write the target\'s `price`: that of "test" is unknown'
    assert uncounted.cost_hint == text.cost_hint == "the reply states neither tokens nor its cost"


@pytest.mark.parametrize(
    ("tokens", "calls", "cost"),
    [(1000, 1, 0.001), (1001, 1, None), (2000, 2, 0.002), (1000, None, 0.001), (1001, None, None)],
)
def test_cost_of__longer_prompts_than_the_table_knows_have_no_cost(
    tokens: int, calls: int | None, cost: float | None
) -> None:
    spent = Trace(SPENT, usage=Usage(tokens, 0), llm_call_count=calls)
    assert cost_of(spent, Price(1, 10, max_prompt=1000)) == cost
    assert cost_of(spent, Price(1, 10)) == tokens / 1e6


def test_complete__a_long_prompt_needs_the_price_of_the_target() -> None:
    usage = {"prompt_tokens": 900_000, "completion_tokens": 1}
    with OpenAIServer(otherwise=Reply(text="hi", usage=usage)) as server:
        trace = ask(model(server.url, "gpt-5.6-sol"))
        priced = ask(model(server.url, "gpt-5.6-sol", Price(2, 10)))
    assert (trace.output, trace.usage.cost_usd) == ("hi", None)
    assert trace.cost_hint == (
        "write the target's `price`: long prompts of this model have another one"
    )
    assert priced.usage.cost_usd == pytest.approx((900_000 * 2 + 10) / 1e6)


def test_cost_of__unknown_tokens_have_no_cost() -> None:
    assert cost_of(Trace(SPENT, usage=Usage(output_tokens=1)), Price(1, 1)) is None
    assert cost_of(Trace(SPENT, usage=Usage(1)), Price(1, 1)) is None
