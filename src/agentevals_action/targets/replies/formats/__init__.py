"""The registry of conversations' formats: one file and one line each. The first one whose structure
a list of messages has reads it."""

from collections.abc import Mapping

from agentevals_action.targets.replies.formats import (
    anthropic,
    langchain,
    openai_chat,
    openai_responses,
    pydantic_ai,
)
from agentevals_action.targets.replies.formats.base import Read

FORMATS: Mapping[str, Read] = {
    "pydantic_ai": pydantic_ai.read,
    "langchain": langchain.read,
    "openai_responses": openai_responses.read,
    "anthropic": anthropic.read,
    "openai_chat": openai_chat.read,
}
