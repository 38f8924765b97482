"""The cost of an answer: as the reply states it, else by the target's price, else by the dated
table `prices.json` of known models.

A model is found in the table without its vendor (`anthropic/claude-…`, `models/gemini-…`), in any
case, with a dot or a hyphen in its version, and, unless the table has the dated name itself,
without a date (`gpt-5-2025-08-07`, `claude-…@20250929`) or `-latest` at its end. Any other name is
unknown: a variant (`:free`, `ft:…`) or another host (`ollama/…`) has other prices."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from agentevals_action.formatting import quoted
from agentevals_action.model.target import Price, Target
from agentevals_action.model.trace import Trace
from agentevals_action.validation.file_model import FileModel

TABLE_FILE = "prices.json"
#: Parts before a slash that name the vendor, or a router that charges the vendor's prices.
VENDORS = frozenset({
    "anthropic", "azure", "cohere", "deepseek", "gemini", "google", "litellm_proxy", "mistral",
    "mistralai", "models", "openai", "openrouter", "vertex_ai", "x-ai", "xai",
})  # fmt: skip
_VERSION = re.compile(r"[-@](?:20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2}|latest)$")


class PriceTable(FileModel):
    """Prices by model, their unit, and where and when (a date) they were taken from."""

    source: str
    date: str
    unit: str
    models: dict[str, Price]

    @property
    def name(self) -> str:
        """The table with its date, in a sentence."""
        return f"price table {self.date}"


@cache
def price_table() -> PriceTable:
    """The table that belongs to this version of the action."""
    text = files("agentevals_action.targets").joinpath(TABLE_FILE).read_text(encoding="utf-8")
    return PriceTable.model_validate_json(text)


@cache
def _known_models() -> Mapping[str, Price]:
    return {normalized(name): price for name, price in price_table().models.items()}


def normalized(name: str) -> str:
    """The form of a name in which names of the same model are equal, except for dates."""
    *vendors, model = name.lower().split("/")
    return (model if VENDORS.issuperset(vendors) else "/".join([*vendors, model])).replace(".", "-")


def find_price(name: str, known: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model; None if it is unknown. `known` are prices by normalized names, those
    of the table by default."""
    known = _known_models() if known is None else known
    model = normalized(name)
    return known.get(model) or known.get(_VERSION.sub("", model))


def known_price(target: Target, models: Sequence[str]) -> tuple[Price | None, str]:
    """The price of a target and where it is from: its own, else the price of the first of its
    models that is in the table; None and an empty text if it is unknown."""
    if target.price:
        return target.price, "price of the target"
    price = next(filter(None, map(find_price, models)), None)
    return price, price_table().name if price else ""


def with_cost(trace: Trace, target: Target) -> Trace:
    """The trace with its cost and where that is from, or with what to write if it is unknown.

    In the table, the name that the reply gives comes before the name in the target: it has the
    version, and names the model behind an alias of a proxy."""
    if trace.usage.cost_usd is not None:
        return replace(trace, cost_source=trace.cost_source or "reply")
    names = [name for name in (trace.model, target.priced_model()) if name]
    price, source = known_price(target, names)
    cost = None if price is None else compute_cost(trace, price)
    if cost is not None:
        return replace(trace, usage=replace(trace.usage, cost_usd=cost), cost_source=source)
    hint = "write the target's `price`: the model is unknown"
    if trace.usage.total_tokens is None:
        hint = "the reply states neither tokens nor its cost"
    elif price is not None:
        hint = "write the target's `price`: long prompts of this model have another one"
    elif names:
        hint = f"write the target's `price`: that of {quoted(names[0])} is unknown"
    return replace(trace, cost_hint=hint)


def compute_cost(trace: Trace, price: Price) -> float | None:
    """The cost of a trace in US dollars; None if its tokens are unknown, or if the mean prompt of
    its calls is longer than `max_prompt`."""
    usage = trace.usage
    total, received = usage.input_tokens, usage.output_tokens
    if total is None or received is None:
        return None
    if price.max_prompt is not None and total > price.max_prompt * (trace.llm_call_count or 1):
        return None
    read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    millionths = (
        max(total - read - written, 0) * price.input
        + read * (price.input if price.cached_input is None else price.cached_input)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + received * price.output
    )
    return millionths / 1_000_000
