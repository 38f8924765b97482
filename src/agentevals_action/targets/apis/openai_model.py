"""OpenAI's API in its two formats, for OpenAI, Azure and compatible servers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from agentevals_action.errors import TransientError
from agentevals_action.formatting import one_of
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.file_model import expected
from agentevals_action.targets.apis import openai_chat, openai_responses
from agentevals_action.targets.apis.http_errors import Service
from agentevals_action.targets.apis.model_api import ModelApi, WireFormat
from agentevals_action.targets.variables import names_in


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


@dataclass(frozen=True)
class OpenAIFormat:
    """One format: the fields of a request that are `reserved`, with advice; the `fields` that carry
    messages; the name of its `limit` on the reply."""

    path: str
    reserved: Mapping[str, str]
    fields: Callable[[Sequence[Message]], dict[str, Any]]
    limit: str
    read: Callable[[Any], Trace]


FORMATS: Mapping[str, OpenAIFormat] = {
    "chat": OpenAIFormat(
        path="chat/completions",
        reserved={
            "model": "use the field `model`",
            **dict.fromkeys(("messages", "stream", "n"), "leave it out"),
        },
        fields=lambda messages: {"messages": openai_chat.chat_messages(messages)},
        limit="max_completion_tokens",
        read=openai_chat.read_completion,
    ),
    "responses": OpenAIFormat(
        path="responses",
        reserved={
            "model": "use the field `model`",
            "instructions": "write a system message",
            **dict.fromkeys(("input", "stream", "background"), "leave it out"),
        },
        fields=openai_responses.conversation,
        limit="max_output_tokens",
        read=openai_responses.read_response,
    ),
}


class OpenAIModel(ModelApi):
    """A connected model: `model` and `config` are fields of each request."""

    def __init__(
        self,
        service: Service,
        api_format: OpenAIFormat,
        path: str,
        model: str,
        config: Mapping[str, Any],
    ) -> None:
        self._api_format, self._model, self._config = api_format, model, config
        super().__init__(service, WireFormat(path, self._body, self._read))

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        return {**self._config, "model": self._model, **self._api_format.fields(messages)}

    def _read(self, reply: Any) -> Trace:
        try:
            return self._api_format.read(reply)
        except openai_responses.TemporaryFailure as error:
            problem = str(self._client.reply_error(error))
            raise TransientError(problem, limited=error.limited) from None
