"""`openai`: a model behind OpenAI's API in its two formats, or a compatible server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from agentevals_action.formatting import one_of
from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.file_model import expected
from agentevals_action.targets.base import Provider, ProviderContext
from agentevals_action.targets.formats import openai_chat, openai_responses
from agentevals_action.targets.http.client import HttpClient
from agentevals_action.targets.http.errors import Service
from agentevals_action.targets.http.model_api import ModelApi, ModelOptions
from agentevals_action.targets.variables import names_in


@dataclass(frozen=True)
class OpenAIFormat:
    """A format: the `reserved` fields of a request, with advice, and the functions that write the
    messages of a request and read a reply."""

    path: str
    reserved: Mapping[str, str]
    to_wire: Callable[[Sequence[Message]], dict[str, Any]]
    read: Callable[[Any], Trace]


FORMATS: Mapping[str, OpenAIFormat] = {
    "chat": OpenAIFormat(
        path="chat/completions",
        reserved={
            "model": "use the field `model`",
            **dict.fromkeys(("messages", "stream", "n"), "leave it out"),
        },
        to_wire=openai_chat.to_wire,
        read=openai_chat.read_reply,
    ),
    "responses": OpenAIFormat(
        path="responses",
        reserved={
            "model": "use the field `model`",
            "instructions": "write a system message",
            **dict.fromkeys(("input", "stream", "background"), "leave it out"),
        },
        to_wire=openai_responses.to_wire,
        read=openai_responses.read_reply,
    ),
}


def _check_format(name: str) -> str:
    if name not in FORMATS and not names_in(name):
        raise expected(one_of(FORMATS))
    return name


#: The name of a format, or a `${{ VARIABLE }}` with it.
ApiFormat = Annotated[str, AfterValidator(_check_format)]
Config = Annotated[
    dict[str, Any],
    Field(
        description="Fields of the request, passed on unchanged: temperature, "
        "max_completion_tokens, tools, …"
    ),
]


def reserved_fields(fields: Mapping[str, Any]) -> Mapping[str, str]:
    """The fields of a request that `config` cannot set; a format from a variable is not known
    yet."""
    return FORMATS.get(fields.get("api_format", "chat"), FORMATS["chat"]).reserved


def openai_model(
    service: Service, api_format: str, path: str, model: str, config: Mapping[str, Any]
) -> ModelApi:
    """A model behind a server; `config` are more fields of each request."""
    used = FORMATS[api_format]
    return ModelApi(
        HttpClient(service),
        path,
        body=lambda messages: {**config, "model": model, **used.to_wire(messages)},
        read=used.read,
    )


class OpenAI(ModelOptions):
    """A model behind OpenAI's API, or a compatible server."""

    provider: ClassVar[str] = "openai"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    vendor_url: ClassVar[str] = "https://api.openai.com/v1"

    api_format: ApiFormat = Field(
        "chat",
        description="`chat` (chat completions, which every compatible server offers) or "
        "`responses` (the Responses API).",
    )
    config: Config = Field(default_factory=dict)

    @classmethod
    def reserved(cls, fields: Mapping[str, Any]) -> Mapping[str, str]:
        """Those of the format."""
        return reserved_fields(fields)

    def connect(self, context: ProviderContext) -> Provider:
        """The model, with the given key or the usual variable's."""
        key = self.key(context)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        service = self.service(f"{self.url}/", key, headers, frozenset({"model_not_found"}))
        used = FORMATS[self.api_format]
        return openai_model(service, self.api_format, used.path, self.model, self.config)
