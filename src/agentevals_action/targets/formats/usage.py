"""What the wire formats share: the messages of a conversation, texts of parts, tokens, and strict
reading of what decides about tool calls."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace, calls_of
from agentevals_action.model.usage import Usage
from agentevals_action.model.validation.json_values import amount, count, decoded, look_up, members

Item = Mapping[str, Any]


@dataclass(frozen=True)
class WireMessage:
    """A message as a format has it, with the usage and the model of the reply that it is.
    `continues`: it belongs to the same reply as the message before it. `refused`: it answers a call
    that was not made. `unread` are the kinds of its parts that are not known, each of which may be
    a call; `waiting` the ids of its calls that need a person's approval."""

    message: Message
    usage: Usage = Usage()  # noqa: RUF009  # frozen
    model: str | None = None
    continues: bool = False
    refused: bool = False
    unread: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class HistoryFormat(Protocol):
    """A module that reads lists of messages."""

    def matches(self, items: Sequence[Item]) -> bool:
        """Whether the items have the structure of this format."""
        ...

    def from_wire(self, items: Sequence[Item]) -> Sequence[WireMessage]:
        """The messages. ValueError if one of them is not valid."""
        ...


def reply_trace(messages: Sequence[Message], usage: Usage, model: Any) -> Trace:
    """The trace of one call of a model that answered with these messages."""
    return Trace(
        messages=tuple(messages),
        tool_calls=calls_of(messages),
        llm_call_count=1,
        usage=usage,
        model=optional_text(model),
    )


def text_of_parts(content: Any, separator: str = "") -> str:
    """The text of a message: a string, or the parts of a list that are text, without thoughts.
    ValueError for anything else."""
    if not isinstance(content, str | list | None):
        raise ValueError("the reply is not valid: a content is not a text or a list of parts")
    if isinstance(content, list):
        return separator.join(filter(None, map(_part_text, content)))
    return content or ""


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    part = members(part)
    text = part.get("refusal") if part.get("type") == "refusal" else part.get("text")
    return text if isinstance(text, str) and part.get("thought") is not True else ""


def output_text(output: Any) -> str:
    """The output of a tool as text: a string, text parts, or data as JSON."""
    if output is None or isinstance(output, str):
        return output or ""
    text = text_of_parts(output) if isinstance(output, list) else ""
    return text or json.dumps(output, ensure_ascii=False)


def optional_text(value: Any) -> str | None:
    """A string; None for anything else, as a missing name."""
    return value if isinstance(value, str) and value else None


def decode_arguments(text: Any) -> Any:
    """A tool call's arguments as data. Broken JSON is the model's error, which evaluators judge: it
    stays a text."""
    return {} if isinstance(text, str) and not text.strip() else decoded(text)


def objects(data: Item, *path: str) -> Sequence[Item]:
    """The objects of a list, none if it is missing or null. ValueError if it is anything else: a
    tool call must not be lost."""
    value: Any = data
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    name = ".".join(path)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"the reply is not valid: `{name}` is not a list")
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise ValueError(f"the reply is not valid: `{name}[{index}]` is not an object")
    return value


#: The paths of each count in the formats of OpenAI (chat and Responses), Anthropic, Gemini,
#: LangChain, pydantic-ai and the agents.
_PATHS: Mapping[str, Sequence[str]] = {
    "input_tokens": ("prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens"),
    "output_tokens": (
        "completion_tokens",
        "output_tokens",
        "candidatesTokenCount",
        "outputTokens",
    ),
    "cached_tokens": (
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "input_token_details.cache_read",
        "cache_read_input_tokens",
        "cache_read_tokens",
        "cachedContentTokenCount",
        "cached_input_tokens",
        "cacheReadInputTokens",
    ),
    "cache_write_tokens": (
        "prompt_tokens_details.cache_write_tokens",
        "input_tokens_details.cache_write_tokens",
        "input_token_details.cache_creation",
        "cache_creation_input_tokens",
        "cache_write_tokens",
        "cacheCreationInputTokens",
    ),
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
_MORE_OUTPUT = ("thoughtsTokenCount",)


def read_usage(data: Any) -> Usage:
    """The tokens and the cost in the usage of a reply, in any of the formats. A count that is
    missing or not valid is unknown."""
    data = members(data)

    def first(paths: Sequence[str]) -> int | None:
        counts = (count(look_up(data, path.split("."))) for path in paths)
        return next((number for number in counts if number is not None), None)

    counts = {name: first(paths) for name, paths in _PATHS.items()}
    more_input = sum(count(data.get(name)) or 0 for name in _MORE_INPUT)
    more_output = sum(count(data.get(name)) or 0 for name in _MORE_OUTPUT)
    if counts["input_tokens"] is not None:
        counts["input_tokens"] += more_input
    if more_output:
        counts["output_tokens"] = (counts["output_tokens"] or 0) + more_output
    # OpenRouter's: with a key of the user's own it is the fee of the router alone.
    # https://openrouter.ai/docs/use-cases/usage-accounting
    cost = None if data.get("is_byok") is True else amount(data.get("cost"))
    return reported(Usage(**counts, cost_usd=cost))


def reported(usage: Usage) -> Usage:
    """The usage of a call as it was reported: a call always has input tokens, so that zero means
    that the vendor reported no tokens."""
    return Usage(cost_usd=usage.cost_usd) if usage.input_tokens == 0 else usage
