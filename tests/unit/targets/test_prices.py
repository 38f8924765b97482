"""Prices: the cost of an answer, counted by hand; the names that the table finds, and its update
from LiteLLM's list."""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.messages import Message
from agentevals_action.model.target import Price
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.targets.prices import (
    PriceTable,
    find_price,
    normalized,
    price_table,
    with_cost,
)
from tests.support import targets
from tests.support.model_targets import MODELS, chat_completion
from tests.support.stand_in import Sent

TABLE = f"price table {price_table().date}"
UNKNOWN = "write the target's `price`: that of "
LONG = "write the target's `price`: long prompts of this model have another one"
#: Tokens as GPT-5 reports them: 8 fresh ones, 3 cached ones.
USAGE = Usage(11, 7, 3)


def priced(usage: Usage, name: str, price: Price | None = None, **fields: Any) -> Trace:
    """A reply of a target with a model of this name."""
    target = targets.target({"provider": "openai", "model": name}, price=price)
    trace = Trace((Message("assistant", "hi"),), usage=usage, **fields)
    return with_cost(trace, target)


@pytest.mark.parametrize(
    ("trace", "millionths", "source"),
    [
        (priced(USAGE, "openai/gpt-5-2025-08-07"), 8 * 1.25 + 3 * 0.125 + 7 * 10, TABLE),
        # The model that answered comes before the alias in the target.
        (priced(USAGE, "gpt-5", model="gpt-5-mini"), 8 * 0.25 + 3 * 0.025 + 7 * 2, TABLE),
        (
            priced(Usage(2600, 40, 2000, 500), "claude-sonnet-4-5"),
            100 * 3 + 2000 * 0.3 + 500 * 3.75 + 40 * 15,
            TABLE,
        ),
        (priced(USAGE, "gpt-5", Price(input=2, output=10)), 11 * 2 + 7 * 10, "price of the target"),
        (
            priced(USAGE, "x", Price(input=2, output=10, cached_input=1)),
            8 * 2 + 3 * 1 + 7 * 10,
            "price of the target",
        ),
        (priced(Usage(1, 1, cost_usd=0.5), "gpt-5", Price(input=2, output=10)), 500_000, "reply"),
        (priced(Usage(cost_usd=0.0), "gpt-5", cost_source="spans"), 0, "spans"),
        (
            priced(
                Usage(2000, 0), "m", Price(input=1, output=9, max_prompt=1000), llm_call_count=2
            ),
            2000,
            None,
        ),
    ],
)
def test_with_cost__by_the_reply_the_target_or_the_table(
    trace: Trace, millionths: float, source: str | None
) -> None:
    assert trace.usage.cost_usd == pytest.approx(millionths / 1e6)
    assert trace.cost_source == (source or "price of the target")
    assert trace.cost_hint == ""


@pytest.mark.parametrize(
    ("trace", "hint"),
    [
        (priced(USAGE, "our-model"), UNKNOWN + '"our-model"'),
        (priced(USAGE, "gpt-5", model="test"), ""),
        (priced(Usage(), "gpt-5"), "the reply states neither tokens nor its cost"),
        (priced(Usage(1), "gpt-5"), "the reply states neither tokens nor its cost"),
        (
            priced(
                Usage(1001, 0), "m", Price(input=1, output=9, max_prompt=1000), llm_call_count=1
            ),
            LONG,
        ),
        (priced(Usage(1001, 0), "m", Price(input=1, output=9, max_prompt=1000)), LONG),
    ],
)
def test_with_cost__an_unknown_cost_states_what_to_write(trace: Trace, hint: str) -> None:
    assert (trace.usage.cost_usd is None) is bool(hint)
    assert trace.cost_hint.startswith(hint)


@pytest.mark.parametrize(
    ("header", "cost"),
    [("0.00125", 0.00125), ("0.0", 0), ("None", 0.5), ("nan", 0.5), ("-1", 0.5), ("a lot", 0.5)],
)
def test_complete__the_cost_in_a_header_comes_before_that_in_the_body(
    header: str, cost: float
) -> None:
    reply = {**chat_completion("hi"), "usage": {"prompt_tokens": 11, "cost": 0.5}}
    sent = Sent(reply, headers={"x-litellm-response-cost": header})
    with MODELS["openai"].server(script=[sent]) as server:
        assert MODELS["openai"].ask(server).usage.cost_usd == cost


GPT_5 = Price(input=1.25, output=10, cached_input=0.125)
SONNET = Price(input=3, output=15, cached_input=0.3, cache_write=3.75)


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("gpt-5", GPT_5),
        ("GPT-5", GPT_5),
        ("gpt-5-2025-08-07", GPT_5),
        ("openai/gpt-5", GPT_5),
        ("openrouter/openai/gpt-5", GPT_5),
        ("claude-sonnet-4-5-20250929", SONNET),
        ("claude-sonnet-4-5@20250929", SONNET),
        ("anthropic/claude-sonnet-4.5", SONNET),
        ("claude-sonnet-4-5-latest", SONNET),
        ("models/gemini-2.5-flash", Price(input=0.3, output=2.5, cached_input=0.03)),
        # A version that the vendor retired, which the undated name would price wrongly.
        ("gpt-4o-2024-05-13", Price(input=5, output=15)),
    ],
)
def test_find_price__finds_names_with_vendor_and_date(name: str, price: Price) -> None:
    assert find_price(name) == price


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5-turbo",
        "my-gpt-5",
        "ollama/deepseek-r1",
        "deepseek/deepseek-r1:free",
        "ft:gpt-4o-mini:acme::1",
        "gpt-5-2025",
        "",
    ],
)
def test_find_price__other_names_are_unknown(name: str) -> None:
    assert find_price(name) is None


def test_price_table__states_its_date_and_source_and_finds_each_of_its_models() -> None:
    table = price_table()
    assert date.fromisoformat(table.date)
    assert table.source.startswith("litellm ")
    names = [normalized(name) for name in table.models]
    assert len(set(names)) == len(names) > 100
    for name, price in table.models.items():
        assert find_price(name) == price
        # The cheapest are a few cents, the dearest a few hundred dollars: never per token.
        assert 0.01 <= price.input <= price.output <= 500


def entry(given: float, taken: float, **fields: Any) -> dict[str, Any]:
    prices = {"input_cost_per_token": given / 1e6, "output_cost_per_token": taken / 1e6}
    return {"litellm_provider": "openai", "mode": "chat", **prices, **fields}


def test_update__has_what_a_cost_needs_and_no_more(tmp_path: Path) -> None:
    models = {
        "gemini/other": entry(
            1.25,
            10,
            cache_read_input_token_cost=1.25e-07,
            cache_creation_input_token_cost=2e-06,
            input_cost_per_token_above_200k_tokens=2.5e-06,
        ),
        "new": entry(1, 2),
        "new-2029-01-02": entry(1, 2),
        "new-2028-01-02": entry(3, 4),
        "openai/new": entry(1, 2),
        "old": entry(1, 2, deprecation_date="2020-01-01"),
        "new-2027-01-02": entry(5, 6, deprecation_date="2020-01-01"),
        "new-audio": entry(1, 2),
        "free": entry(0, 0),
        "embed": entry(1, 2, mode="embedding"),
        "elsewhere": entry(1, 2, litellm_provider="somebody"),
    }
    listing, table = tmp_path / "list.json", tmp_path / "table.json"
    listing.write_text(json.dumps(models))
    program = Path(__file__).parents[3] / ".ci/update_prices.py"
    subprocess.run([sys.executable, str(program), str(listing), str(table)], check=True)
    written = PriceTable.model_validate_json(table.read_text())
    assert written.source == "list.json"
    assert written.models == {
        "other": Price(
            input=1.25, output=10, cached_input=0.125, cache_write=2, max_prompt=200_000
        ),
        "new": Price(input=1, output=2),
        "new-2027-01-02": Price(input=5, output=6),
        "new-2028-01-02": Price(input=3, output=4),
    }
