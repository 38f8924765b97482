"""What we send to OpenAI is what the vendor's own client may send."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter

from agentevals_action.model.suite import Block, Message, ToolCall
from tests.support import targets
from tests.support.openai_server import (
    OpenAIServer,
)

if TYPE_CHECKING:
    # half a second's import, which each worker would do: the tests that need it have it imported
    pass

GIF = base64.b64encode(b"GIF89a").decode()
MESSAGES = (
    Message("system", "brief"),
    Message("user", (Block("text", "see"), Block("image", GIF))),
    Message(
        "assistant",
        "so",
        tool_calls=(ToolCall("look", {"x": 1}), ToolCall("look", output={"seen": 2})),
    ),
    Message("tool", "one"),
    Message("user", "and?"),
)


def sent(api_format: str) -> Any:
    async def asked(url: str) -> None:
        definition = {
            "provider": "openai",
            "model": "m",
            "base_url": url,
            "api_format": api_format,
            "config": {"temperature": 0.5},
        }
        provider = targets.options(definition).connect(targets.context({}))
        await provider.complete(targets.request(Path("/"), *MESSAGES))
        await provider.close()

    with OpenAIServer(otherwise="hi") as server:
        asyncio.run(asked(server.url))
    return server.requests[0].body


def whole(value: Any) -> Any:
    """What validation gives, its lazy parts read to their end, which is where they are
    validated."""
    if isinstance(value, Mapping):
        return {name: whole(part) for name, part in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [whole(part) for part in value]
    return value


@pytest.mark.parametrize("api_format", ["chat", "responses"])
def test_what_we_send__is_of_the_vendors_types(api_format: str) -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

    types: dict[str, Any] = {
        "chat": CompletionCreateParamsNonStreaming,
        "responses": ResponseCreateParamsNonStreaming,
    }
    body, adapter = sent(api_format), TypeAdapter(types[api_format])
    assert whole(adapter.validate_python(body)) == body
