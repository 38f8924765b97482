"""The providers of models, and a server that answers them in the format of their vendor."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace
from agentevals_action.targets.models.model_api import ApiTarget
from tests.support import targets
from tests.support.stand_in import Received, Sent, StandIn


class VendorServer(StandIn[Received, Sent]):
    """The first pattern that is found in a text of the request, or `otherwise`, answers; `write`
    makes the body of a reply. With `key`, requests without it in a header are refused."""

    def __init__(
        self,
        write: Callable[[str], Any],
        replies: Mapping[str, str] | None = None,
        *,
        otherwise: str | None = None,
        script: Sequence[Sent] = (),
        key: str = "",
    ) -> None:
        super().__init__(script)
        self._write, self._replies = write, replies or {}
        self._otherwise, self._key = otherwise, key

    def reply(self, received: Received) -> Sent:
        if not any(self._key in value for value in received.headers.values()):
            return Sent({"error": {"message": "the key is unknown"}}, 401)
        texts = list(_texts(received.body))
        matching = (
            answer
            for pattern, answer in self._replies.items()
            if any(re.search(pattern, text) for text in texts)
        )
        text = next(matching, self._otherwise)
        if text is None:
            return Sent({"error": {"message": "there is no answer to this"}}, 400)
        return Sent(self._write(text))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


@dataclass(frozen=True)
class ModelTarget:
    """A provider with its shortest definition, the field that holds the URL, the path of its API
    below the server, and the body of a reply with a text."""

    definition: Mapping[str, Any]
    url_field: str
    write: Callable[[str], Any]
    path: str = ""

    def server(self, *replies: Mapping[str, str], **options: Any) -> VendorServer:
        return VendorServer(self.write, *replies, **options)

    def ask(
        self,
        server: VendorServer,
        *messages: Message | str,
        variables: Mapping[str, str] | None = None,
        request: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Trace:
        definition = {**self.definition, self.url_field: server.url + self.path, **fields}
        around = targets.context(variables=variables)
        return targets.ask(definition, Path("/"), *messages, around=around, **(request or {}))

    def refused(self, reply: Sent, **fields: Any) -> AttemptError:
        """The error of a call that gets this reply."""
        with self.server(script=[reply]) as server, pytest.raises(AttemptError) as caught:
            self.ask(server, **fields)
        return caught.value


def chat_completion(text: str, **fields: Any) -> Mapping[str, Any]:
    """A reply in OpenAI's chat format."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, **fields}
    return {"choices": [{"finish_reason": "stop", **choice}]}


def message(text: str, **fields: Any) -> Mapping[str, Any]:
    """A reply in Anthropic's format."""
    content = [{"type": "text", "text": text}] if text else []
    return {"type": "message", "content": content, "stop_reason": "end_turn", **fields}


def generated(text: str, finish_reason: str = "STOP", **fields: Any) -> Mapping[str, Any]:
    """A reply in Gemini's format."""
    content = {"role": "model", "parts": [{"text": text}] if text else []}
    return {"candidates": [{"content": content, "finishReason": finish_reason}], **fields}


MODELS = {
    "anthropic": ModelTarget({"provider": "anthropic", "model": "m"}, "base_url", message),
    "azure": ModelTarget(
        {"provider": "azure", "deployment": "my gpt"}, "endpoint", chat_completion
    ),
    "gemini": ModelTarget({"provider": "gemini", "model": "m"}, "base_url", generated),
    "openai": ModelTarget(
        {"provider": "openai", "model": "m"}, "base_url", chat_completion, path="/v1"
    ),
}


def api_target(name: str, **fields: Any) -> ApiTarget:
    """A target of a provider with its shortest definition."""
    target = targets.target({**MODELS[name].definition, **fields})
    assert isinstance(target, ApiTarget)
    return target


#: A target of each wire format.
FORMATS: Mapping[str, ApiTarget] = {
    "anthropic": api_target("anthropic"),
    "gemini": api_target("gemini", model="gemini-2.5-flash"),
    "openai_chat": api_target("openai"),
    "openai_responses": api_target("openai", api_format="responses"),
}
