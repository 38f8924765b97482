"""Prices: the cost of an answer, counted by hand; the names that the table finds, and its update
from LiteLLM's list."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.messages import Message
from agentevals_action.model.target import Price
from agentevals_action.model.trace import Trace, Usage
from agentevals_action.targets.prices import (
    PriceTable,
    find_price,
    normalized,
    price_table,
    with_cost,
)
from tests.support import data, targets
from tests.support.model_targets import MODELS, chat_completion
from tests.support.stand_in import Sent

DATA = data.read("prices.yaml")


@pytest.mark.parametrize("case", DATA["costs"])
def test_with_cost__by_the_reply_the_target_or_the_table(case: dict[str, Any]) -> None:
    price = Price(**case["price"]) if "price" in case else None
    target = targets.target({"provider": "openai", "model": case["target"]}, price=price)
    usage = replace(Usage(*case["tokens"]), cost_usd=case.get("cost"))
    messages, source = (Message("assistant", "hi"),), case.get("cost_source", "")
    calls, model = case.get("calls"), case.get("model")
    reply = Trace(messages, usage=usage, model=model, llm_call_count=calls, cost_source=source)
    trace = with_cost(reply, target)
    if "hint" in case:
        assert (trace.usage.cost_usd, trace.cost_source) == (None, "")
        assert trace.cost_hint == case["hint"]
        return
    assert trace.usage.cost_usd == pytest.approx(case["millionths"] / 1e6)
    wanted = case["source"].replace("price table", f"price table {price_table().date}")
    assert (trace.cost_source, trace.cost_hint) == (wanted, "")


@pytest.mark.parametrize(("header", "cost"), DATA["headers"].items())
def test_complete__the_cost_in_a_header_comes_before_that_in_the_body(
    header: str, cost: float
) -> None:
    reply = {**chat_completion("hi"), "usage": {"prompt_tokens": 11, "cost": 0.5}}
    sent = Sent(reply, headers={"x-litellm-response-cost": header})
    with MODELS["openai"].server(script=[sent]) as server:
        assert MODELS["openai"].ask(server).usage.cost_usd == cost


@pytest.mark.parametrize(("name", "price"), DATA["names"].items())
def test_find_price__of_names_with_vendor_and_date(name: str, price: dict[str, Any] | None) -> None:
    assert find_price(name) == (price and Price(**price))


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
