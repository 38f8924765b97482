"""Writes the table of prices anew, from the list that LiteLLM maintains:

uv run --with litellm python .ci/update_prices.py [LIST [TABLE]]

LIST is a copy of LiteLLM's model_prices_and_context_window.json; by default that of the installed
package litellm, which is not imported."""

import json
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from agentevals_action.model.target import Price
from agentevals_action.targets import prices
from agentevals_action.targets.prices import TABLE_FILE, find_price, normalized

_PACKAGED = "litellm/model_prices_and_context_window_backup.json"
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
}
_LONG = re.compile(r"input_cost_per_token_above_([0-9]+)k_tokens")


def make_table(listed: Mapping[str, Any], source: str, date: str) -> str:
    """The text of the table with the prices of well-known vendors' chat models.

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
        f"    {json.dumps(names[key])}: {json.dumps(prices[key].model_dump(exclude_none=True))}"
        for key in sorted(prices)
    )
    head = {"source": source, "date": date, "unit": "US dollars per million tokens"}
    return f'{json.dumps(head, indent=2)[:-2]},\n  "models": {{\n{rows}\n  }}\n}}\n'


def _price(name: str, entry: Mapping[str, Any]) -> Price | None:
    is_chat = entry.get("mode") in ("chat", "responses")
    if not is_chat or entry.get("litellm_provider") not in _VENDORS or _LEFT_OUT.search(name):
        return None
    found: dict[str, Any] = {
        price: round(value * 1_000_000, 6)
        for price, field in _FIELDS.items()
        if (value := entry.get(field))
    }
    if not {"input", "output"} <= found.keys():
        return None
    limit = next((match for key in entry if (match := _LONG.fullmatch(key))), None)
    if limit:
        found["max_prompt"] = int(limit[1]) * 1000
    return Price(**found)


def main(path: str = "", to: str = "") -> None:
    """Writes the table of the package, or another file."""
    source, listing = Path(path).name, Path(path)
    if not path:
        package = distribution("litellm")
        source = f"litellm {package.version}"
        listing = Path(str(package.locate_file(_PACKAGED)))
    listed = json.loads(listing.read_bytes())
    text = make_table(listed, source, datetime.now(UTC).date().isoformat())
    written = Path(to) if to else Path(prices.__file__).with_name(TABLE_FILE)
    written.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
