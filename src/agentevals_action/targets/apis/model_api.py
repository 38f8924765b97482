"""What targets have in common that are models behind an HTTP API: the address, the fields of a
request, and one call of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from agentevals_action.entries.entry import Checked
from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.targets import base
from agentevals_action.targets.apis.http_client import HttpClient
from agentevals_action.targets.apis.http_errors import Service


def _is_url(url: str) -> str:
    if "${{" not in url:  # else it is looked at again once its variables are known
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write a URL that begins with http:// or https://")
        if parts.query or parts.fragment:
            raise ValueError("end the URL before its ? or #; paths are added to it")
    return url


#: The address of an API, as an options class declares it.
Url = Annotated[str, Checked(_is_url)]


def passed_on(config: dict[str, Any], own: Mapping[str, str]) -> dict[str, Any]:
    """`config` as it is; ValueError when it sets a field that is ours, with what `own` says to do
    instead."""
    for name, advice in own.items():
        if name in config:
            raise ValueError(f"`{name}` cannot be set in `config`; {advice}")
    return config


def key_of(given: str | None, usual: str | None) -> str:
    """The key given, else the usual variable's; a secret is easily stored with the end of its
    line."""
    return (given or usual or "").strip()


@dataclass(frozen=True)
class Wire:
    """How a vendor is asked: `path` below the endpoint's URL, the `body` that carries messages
    (ValueError or OSError when they cannot be sent), `least` the same for the shortest answer there
    is, and how the reply is read (ValueError when it is none)."""

    path: str
    body: Callable[[Sequence[Message]], dict[str, Any]]
    least: Callable[[Sequence[Message]], dict[str, Any]]
    read: Callable[[Any], Trace]


class ModelApi:
    """A connected model: the provider that an options class gives out."""

    def __init__(self, manner: Service, wire: Wire) -> None:
        self._endpoint = HttpClient(manner)
        self._wire = wire

    async def complete(self, request: base.Request) -> Trace:
        """One call."""
        reply = await self._ask(self._wire.body, request)
        try:
            return self._wire.read(reply)
        except ValueError as error:
            raise self._endpoint.reply_error(error) from None

    async def check(self, request: base.Request) -> None:
        """The shortest call; an answer cut short is one."""
        await self._ask(self._wire.least, request)

    async def close(self) -> None:
        """Closes the connections."""
        await self._endpoint.close()

    async def _ask(
        self, body: Callable[[Sequence[Message]], dict[str, Any]], request: base.Request
    ) -> Any:
        try:
            wired = body(request.messages)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be sent: {error}") from None
        return await self._endpoint.post(self._wire.path, wired, request.timeout)
