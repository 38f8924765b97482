"""The tokens of a reply, in the formats of the vendors and of the common libraries."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentevals_action.model.validation.json_values import count, look_up
from agentevals_action.targets.reply_model import RouterUsage

#: Where each format has the tokens that were read, written, and taken from the vendor's cache:
#: OpenAI Chat and Responses, LangChain, Gemini, the AI SDK, AgentV.
_FORMATS = (
    ("prompt_tokens", "completion_tokens", "prompt_tokens_details.cached_tokens"),
    ("input_tokens", "output_tokens", "input_tokens_details.cached_tokens"),
    ("input_tokens", "output_tokens", "input_token_details.cache_read"),
    ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount"),
    ("inputTokens", "outputTokens", "cachedInputTokens"),
    ("promptTokens", "completionTokens", "cachedInputTokens"),
    ("input", "output", "cached"),
)
#: Parts of the input that Anthropic does not count as `input_tokens`.
_ANTHROPIC_CACHE = ("cache_read_input_tokens", "cache_creation_input_tokens")
_THOUGHTS = "thoughtsTokenCount"  # paid as output, and not among Gemini's candidates


@dataclass(frozen=True)
class Usage:
    """Numbers of tokens, None where unknown; those that were `cached`, or written to the vendor's
    cache, are part of the input. `cost_usd` is the price that a router reports."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cost_usd: float | None = None
    cache_write: int | None = None


def read_usage(data: Any) -> Usage:
    """The tokens of a vendor's usage; all unknown if it has none of the known formats."""
    if not isinstance(data, Mapping):
        return Usage()

    def at(path: str) -> int | None:
        return count(look_up(data, path.split(".")))

    known = [one for one in _FORMATS if at(one[0]) is not None or at(one[1]) is not None]
    if not known:
        return Usage()
    tokens_in, tokens_out = at(known[0][0]), at(known[0][1])
    cached = next((found for one in known if (found := at(one[2])) is not None), None)
    parts = [at(name) for name in _ANTHROPIC_CACHE]
    if any(part is not None for part in parts) and tokens_in is not None:
        tokens_in += sum(filter(None, parts))
        cached = parts[0] if cached is None else cached
    if tokens_out is not None:
        tokens_out += at(_THOUGHTS) or 0
    written = (
        at(path)
        for path in ("prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens")
    )
    cache_write = next((count for count in written if count is not None), None)
    cost_usd = RouterUsage.model_validate(data).cost_usd
    return Usage(tokens_in, tokens_out, cached, cost_usd, cache_write)
