"""`openai`: a model behind OpenAI's API in its two formats, or a compatible server."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from agentevals_action.formatting import one_of
from agentevals_action.model.target import Provider, ProviderContext
from agentevals_action.model.validation.file_model import expected
from agentevals_action.targets.formats import openai_chat, openai_responses
from agentevals_action.targets.http.client import HttpClient
from agentevals_action.targets.http.errors import Service
from agentevals_action.targets.http.model_api import ModelApi, ModelTarget
from agentevals_action.targets.variables import names_in

#: The paths of the formats.
PATHS: Mapping[str, str] = {"chat": "chat/completions", "responses": "responses"}
#: The fields of a request that `config` cannot set, with advice.
RESERVED: Mapping[str, str] = {
    "model": "use the field `model`",
    "instructions": "write a system message",
    **dict.fromkeys(("messages", "input", "stream", "background", "n"), "leave it out"),
}


def _check_format(name: str) -> str:
    if name not in PATHS and not names_in(name):
        raise expected(one_of(PATHS))
    return name


#: The name of a format, or a `${{ VARIABLE }}` with it.
ApiFormat = Annotated[
    str,
    AfterValidator(_check_format),
    Field(
        description="`chat` (chat completions, which every compatible server offers) or "
        "`responses` (the Responses API)."
    ),
]


def openai_model(
    service: Service, api_format: str, path: str, model: str, config: Mapping[str, Any]
) -> ModelApi:
    """A model behind a server; `config` are more fields of each request."""
    used = openai_chat if api_format == "chat" else openai_responses
    return ModelApi(
        HttpClient(service),
        path,
        body=lambda messages: {**config, "model": model, **used.to_wire(messages)},
        read=used.read_reply,
    )


class OpenAI(ModelTarget):
    """A model behind OpenAI's API, or a compatible server."""

    provider: ClassVar[str] = "openai"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    vendor_url: ClassVar[str] = "https://api.openai.com/v1"
    reserved: ClassVar[Mapping[str, str]] = RESERVED

    api_format: ApiFormat = "chat"

    def connect(self, context: ProviderContext) -> Provider:
        """The model, with the given key or the usual variable's."""
        key = self.key(context)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        service = self.service(f"{self.url}/", key, headers, frozenset({"model_not_found"}))
        path = PATHS[self.api_format]
        return openai_model(service, self.api_format, path, self.model, self.config)
