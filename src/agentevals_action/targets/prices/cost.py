"""The cost of an answer: as the reply states it, else by the target's price, else by the table."""

from collections.abc import Sequence
from dataclasses import replace

from agentevals_action.formatting import quoted
from agentevals_action.model.target import Price, Target
from agentevals_action.model.trace import Trace
from agentevals_action.targets.base import ProviderOptions
from agentevals_action.targets.prices.table import find_price, price_table

_NO_TOKENS = "the reply states neither tokens nor its cost"
_NO_MODEL = "write the target's `price`: the model is unknown"
_LONG = "write the target's `price`: long prompts of this model have another one"


def with_cost(trace: Trace, target: Target, options: ProviderOptions) -> Trace:
    """The trace with its cost and where that is from, or with what to write if it is unknown.

    In the table, the name that the reply gives comes before the name in the target: it has the
    version, and names the model behind an alias of a proxy."""
    usage = trace.usage
    if usage.cost_usd is not None:
        return replace(trace, cost_source=trace.cost_source or "reply")
    names = [name for name in (trace.model, options.priced_model()) if name]
    price, source = known_price(target, names)
    cost = None if price is None else cost_of(trace, price)
    if cost is not None:
        return replace(trace, usage=replace(usage, cost_usd=cost), cost_source=source)
    if usage.total_tokens is None:
        hint = _NO_TOKENS
    elif price is not None:
        hint = _LONG
    elif names:
        hint = f"write the target's `price`: that of {quoted(names[0])} is unknown"
    else:
        hint = _NO_MODEL
    return replace(trace, cost_hint=hint)


def known_price(target: Target, models: Sequence[str]) -> tuple[Price | None, str]:
    """The price of a target and where it is from: its own, else that of the first of its models
    that the table has; None and an empty text if it is unknown."""
    if target.price:
        return target.price, "price of the target"
    price = next(filter(None, map(find_price, models)), None)
    return price, price_table().name if price else ""


def cost_of(trace: Trace, price: Price) -> float | None:
    """The cost of a trace in US dollars; None if its tokens are unknown, or if the mean prompt of
    its calls is longer than `max_prompt`."""
    usage = trace.usage
    total, written, read = (
        usage.input_tokens,
        usage.cache_write_tokens or 0,
        usage.cached_tokens or 0,
    )
    if total is None or usage.output_tokens is None:
        return None
    if price.max_prompt is not None and total > price.max_prompt * (trace.llm_call_count or 1):
        return None
    millionths = (
        max(total - read - written, 0) * price.input
        + read * (price.input if price.cached_input is None else price.cached_input)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + usage.output_tokens * price.output
    )
    return millionths / 1_000_000
