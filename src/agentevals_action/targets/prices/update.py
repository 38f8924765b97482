"""The table of prices from the list that LiteLLM maintains
(`model_prices_and_context_window.json`)."""

import json
import re
from collections.abc import Mapping
from typing import Any

from agentevals_action.model.target import Price
from agentevals_action.targets.prices.table import find_price, normalized

_VENDORS = ("anthropic", "cohere", "cohere_chat", "deepseek", "gemini", "mistral", "openai", "xai")
#: Models that have other prices than those of text, or are no versions to rely on.
_LEFT_OUT = re.compile(
    r"audio|realtime|image|tts|live|search|transcribe|robotics|beta|experimental|^ft:"
)
_FIELDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached_input": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "cache_write_1h": "cache_creation_input_token_cost_above_1hr",
}
_LONG = re.compile(r"input_cost_per_token_above_([0-9]+)k_tokens")


def make_table(listed: Mapping[str, Any], source: str, date: str) -> str:
    """The text of the table with the prices of well-known vendors' chat models in LiteLLM's list.

    A model that the search finds without an entry of its own has none, and one that the vendor
    retired before `date` has one only if the search would find another price for it."""
    prices: dict[str, Price] = {}
    names: dict[str, str] = {}
    retired = set()
    for listed_name, entry in sorted(listed.items(), key=lambda item: (len(item[0]), item[0])):
        price = _price(listed_name, entry)
        name = listed_name.rpartition("/")[2]
        if price is None or prices.setdefault(normalized(name), price) != price:
            continue
        names.setdefault(normalized(name), name)
        if (entry.get("deprecation_date") or date) < date:
            retired.add(normalized(name))
    for key in sorted(prices, key=len, reverse=True):
        others = {other: price for other, price in prices.items() if other != key}
        found = find_price(key, others)
        if found == prices[key] or (found is None and key in retired):
            prices = others
    rows = ",\n".join(
        f"    {json.dumps(names[key])}: {json.dumps(_row(prices[key]))}" for key in sorted(prices)
    )
    head = {"source": source, "date": date, "unit": "US dollars per million tokens"}
    return f'{json.dumps(head, indent=2)[:-2]},\n  "models": {{\n{rows}\n  }}\n}}\n'


def _price(name: str, entry: Mapping[str, Any]) -> Price | None:
    is_chat = entry.get("mode") in ("chat", "responses")
    if not is_chat or entry.get("litellm_provider") not in _VENDORS or _LEFT_OUT.search(name):
        return None
    limit = next((found for key in entry if (found := _LONG.fullmatch(key))), None)
    long = None if limit is None else _read(entry, f"_above_{limit[1]}k_tokens")
    price = _read(entry, "")
    if price is None or long is None or limit is None:
        return price
    return Price(**_row(price), long_above=int(limit[1]) * 1000, long=long)


def _read(entry: Mapping[str, Any], ending: str) -> Price | None:
    """The prices in the fields with this ending; None without those of input and output."""
    found = {
        name: round(value * 1_000_000, 6)
        for name, field in _FIELDS.items()
        if (value := entry.get(f"{field}{ending}"))
    }
    return Price(**found) if {"input", "output"} <= found.keys() else None


def _row(price: Price) -> dict[str, Any]:
    row = {name: value for name, value in vars(price).items() if value is not None}
    return {**row, "long": _row(price.long)} if price.long else row
