"""OpenAI's API in its two formats, as OpenAI itself, Azure and compatible servers speak it: a
connected model, and its shortest call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.targets import base
from agentevals_action.targets.apis import openai_chat, openai_responses
from agentevals_action.targets.apis.http_errors import Service
from agentevals_action.targets.apis.model_api import ModelApi, Wire

ApiFormat = Literal["chat", "responses"]
#: The fewest tokens that every model lets itself be limited to; some refuse a limit under it.
_FEWEST = 16
_LEFT_OUT = "leave it out"


@dataclass(frozen=True)
class Format:
    """One format: its `path`, what to do about the fields of a request that are `own` to us, the
    `fields` that carry messages, the names of its `limits` on a reply (the one to be tried first
    leads), and how the reply is read."""

    path: str
    own: Mapping[str, str]
    fields: Callable[[Sequence[Message]], dict[str, Any]]
    limits: tuple[str, ...]
    read: Callable[[Any], Trace]


FORMATS: Mapping[ApiFormat, Format] = {
    "chat": Format(
        path="chat/completions",
        own={
            "model": "use the field `model`",
            "messages": _LEFT_OUT,
            "stream": _LEFT_OUT,
            "n": _LEFT_OUT,
        },
        fields=lambda messages: {"messages": openai_chat.chat_messages(messages)},
        # Reasoning models refuse the older name, other servers do not know the newer one.
        limits=("max_completion_tokens", "max_tokens"),
        read=openai_chat.read_completion,
    ),
    "responses": Format(
        path="responses",
        own={
            "model": "use the field `model`",
            "input": _LEFT_OUT,
            "instructions": "write a system message",
            "stream": _LEFT_OUT,
            "background": _LEFT_OUT,
        },
        fields=openai_responses.conversation,
        limits=("max_output_tokens",),
        read=openai_responses.read_response,
    ),
}


class OpenAIModel(ModelApi):
    """A connected model: `model` is what a request names, `config` what it carries beside the
    messages, `path` below the manner's URL."""

    def __init__(
        self, manner: Service, form: Format, path: str, model: str, config: Mapping[str, Any]
    ) -> None:
        self._form, self._model, self._config = form, model, config
        super().__init__(manner, Wire(path, self._body, self._body, self._read))

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        return {**self._config, "model": self._model, **self._form.fields(messages)}

    def _read(self, reply: Any) -> Trace:
        try:
            return self._form.read(reply)
        except openai_responses.PassingFailure as error:
            raise TransientError(
                str(self._endpoint.reply_error(error)), limited=error.limited
            ) from None

    async def check(self, request: base.Request) -> None:
        """The shortest call; an answer cut short, or one that finds no room, is one."""
        for limit in self._form.limits:
            try:
                reply = await self._ask(partial(self._limited, limit=limit), request)
                self._read(reply)
            except openai_chat.EmptyReply:
                pass
            except (TargetDead, TransientError):
                raise
            except AttemptError as error:
                if limit != self._form.limits[-1] and limit in str(error):
                    continue
                if "output limit was reached" not in str(
                    error
                ):  # what a reasoning model says to a limit that it thinks beyond
                    raise
            except ValueError as error:
                raise self._endpoint.reply_error(error) from None
            return

    def _limited(self, messages: Sequence[Message], limit: str) -> dict[str, Any]:
        return {
            **{
                name: value
                for name, value in self._body(messages).items()
                if name not in self._form.limits
            },
            limit: _FEWEST,
        }
