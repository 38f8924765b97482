"""The prices of known models, from the dated table `table.json`.

A name is found without its vendor (`anthropic/claude-…`, `models/gemini-…`), in any case, with a
dot or a hyphen in its version, and, unless the table has the dated name itself, without a date
(`gpt-5-2025-08-07`, `claude-…@20250929`) or `-latest` at its end. Any other name is unknown: a
variant (`:free`, `ft:…`) or another host (`ollama/…`) has other prices."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from agentevals_action.model.target import Price
from agentevals_action.model.validation.file_model import FileModel

#: Parts before a slash that name the vendor, or a router that charges the vendor's prices.
VENDORS = frozenset({
    "anthropic", "azure", "cohere", "deepseek", "gemini", "google", "litellm_proxy", "mistral",
    "mistralai", "models", "openai", "openrouter", "vertex_ai", "x-ai", "xai",
})  # fmt: skip
_VERSION = re.compile(r"[-@](?:20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2}|latest)$")


class PriceTable(FileModel):
    """US dollars per million tokens by model; where and when (a date) they were taken from."""

    source: str
    date: str
    models: dict[str, Price]

    @property
    def name(self) -> str:
        """The table with its date, in a sentence."""
        return f"price table {self.date}"


@cache
def price_table() -> PriceTable:
    """The table that belongs to this version of the action."""
    text = files(__package__).joinpath("table.json").read_text(encoding="utf-8")
    return PriceTable.model_validate_json(text)


@cache
def _known() -> Mapping[str, Price]:
    return {normalized(name): price for name, price in price_table().models.items()}


def normalized(name: str) -> str:
    """The form of a name in which names of the same model are equal, except for dates."""
    *vendors, model = name.lower().split("/")
    return (model if VENDORS.issuperset(vendors) else "/".join([*vendors, model])).replace(".", "-")


def find_price(name: str, known: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model; None if it is unknown. `known` are prices by normalized names, those
    of the table by default."""
    known = _known() if known is None else known
    own = normalized(name)
    return known.get(own) or known.get(_VERSION.sub("", own))
