"""Tokens and cost, as the replies of all APIs, frameworks and agents state them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentevals_action.model.trace import Usage
from agentevals_action.validation.json_values import as_amount, as_count, as_object, look_up

#: The paths of each count in the formats of OpenAI (chat and Responses), Anthropic, Gemini,
#: LangChain, pydantic-ai and the agents.
_PATHS: Mapping[str, Sequence[Sequence[str]]] = {
    name: [path.split(".") for path in paths.split()]
    for name, paths in {
        "input_tokens": "prompt_tokens input_tokens promptTokenCount inputTokens",
        "output_tokens": "completion_tokens output_tokens candidatesTokenCount outputTokens",
        "cached_tokens": "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens "
        "input_token_details.cache_read cache_read_input_tokens cache_read_tokens "
        "cachedContentTokenCount cached_input_tokens cacheReadInputTokens",
        "cache_write_tokens": "prompt_tokens_details.cache_write_tokens "
        "input_tokens_details.cache_write_tokens input_token_details.cache_creation "
        "cache_creation_input_tokens cache_write_tokens cacheCreationInputTokens",
    }.items()
}
#: Counts beside the input or the output that are not part of it, but have its price. Anthropic's
#: input tokens are those after the last cache breakpoint
#: (https://platform.claude.com/docs/en/build-with-claude/prompt-caching); Gemini pays thoughts as
#: output, and results of its own tools as input
#: (https://ai.google.dev/api/generate-content#UsageMetadata).
_MORE_INPUT = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cacheCreationInputTokens",
    "cacheReadInputTokens",
    "toolUsePromptTokenCount",
)
_MORE_OUTPUT = "thoughtsTokenCount"


def read_usage(data: Any) -> Usage:
    """The tokens and the cost in the usage of a reply, in any of the formats. A count that is
    missing or not valid is unknown."""
    if not (data := as_object(data)):
        return Usage()
    counts = {name: _first_count(data, paths) for name, paths in _PATHS.items()}
    if counts["input_tokens"] is not None:
        counts["input_tokens"] += sum(as_count(data.get(name)) or 0 for name in _MORE_INPUT)
    if thoughts := as_count(data.get(_MORE_OUTPUT)):
        counts["output_tokens"] = (counts["output_tokens"] or 0) + thoughts
    # OpenRouter's: with a key of the user's own it is the fee of the router alone.
    # https://openrouter.ai/docs/use-cases/usage-accounting
    cost = None if data.get("is_byok") is True else as_amount(data.get("cost"))
    return reported(Usage(**counts, cost_usd=cost))


def _first_count(data: Mapping[str, Any], paths: Sequence[Sequence[str]]) -> int | None:
    counts = (as_count(look_up(data, path)) for path in paths if path[0] in data)
    return next((number for number in counts if number is not None), None)


def reported(usage: Usage) -> Usage:
    """The usage of a call as it was reported: a call always has input tokens, so that zero means
    that the vendor reported no tokens."""
    return Usage(cost_usd=usage.cost_usd) if usage.input_tokens == 0 else usage
