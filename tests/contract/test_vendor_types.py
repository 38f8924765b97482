"""The requests in the formats of OpenAI and Google have the types of the vendors' own libraries,
each of which is imported for seconds. (The types of Anthropic's cannot be validated.)"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from tests.support import data

REQUESTS = data.read("formats/requests.json")

pytestmark = pytest.mark.slow


def of_openai_chat(request: Any) -> Any:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

    return validated(CompletionCreateParamsNonStreaming, {"model": "m", **request})


def of_openai_responses(request: Any) -> Any:
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

    return validated(ResponseCreateParamsNonStreaming, {"model": "m", **request})


def of_gemini(request: Any) -> Any:
    from google.genai import types

    class Request(BaseModel):
        systemInstruction: types.Content
        contents: list[types.Content]

    model = Request.model_validate(request)
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


VALIDATED: Mapping[str, Callable[[Any], Any]] = {
    "gemini": of_gemini,
    "openai_chat": of_openai_chat,
    "openai_responses": of_openai_responses,
}


def validated(type_: Any, data: Any) -> Any:
    # The lazy parts of the result need the adapter: without it, pydantic-core panics.
    adapter = TypeAdapter(type_)
    return whole(adapter.validate_python(data))


def whole(value: Any) -> Any:
    """The result of a validation; lazy parts are validated when they are read."""
    if isinstance(value, Mapping):
        return {name: whole(part) for name, part in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [whole(part) for part in value]
    return value


@pytest.mark.parametrize("name", VALIDATED)
def test_request__has_the_vendors_types(name: str) -> None:
    request = REQUESTS[name]
    assert VALIDATED[name](request).items() >= request.items()
