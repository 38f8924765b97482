"""The table of prices: the names that it finds, and its update from LiteLLM's list."""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.target import Price
from agentevals_action.targets.prices.table import (
    PriceTable,
    find_price,
    normalized,
    price_table,
)

GPT_5 = Price(1.25, 10, cached_input=0.125)
SONNET = Price(3, 15, cached_input=0.3, cache_write=3.75)


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
        ("models/gemini-2.5-flash", Price(0.3, 2.5, cached_input=0.03)),
        # A version that the vendor retired, which the undated name would price wrongly.
        ("gpt-4o-2024-05-13", Price(5, 15)),
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
    program = Path(__file__).parents[4] / ".ci/update_prices.py"
    subprocess.run([sys.executable, str(program), str(listing), str(table)], check=True)
    written = PriceTable.model_validate_json(table.read_text())
    assert written.source == "list.json"
    assert written.models == {
        "other": Price(1.25, 10, 0.125, 2, 200_000),
        "new": Price(1, 2),
        "new-2027-01-02": Price(5, 6),
        "new-2028-01-02": Price(3, 4),
    }
