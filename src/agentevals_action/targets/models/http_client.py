"""HTTP requests to one server: connections, proxies, TLS, limits on time and size."""

import asyncio
import functools
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx

from agentevals_action import __version__
from agentevals_action.errors import AttemptError
from agentevals_action.model.trace import Trace, Usage
from agentevals_action.system.redaction import redact
from agentevals_action.targets.models.errors import Service, connection_error, host, refusal
from agentevals_action.validation.json_values import amount_in, describe_json, parse_json

#: Maximum size of a decoded reply, in bytes.
REPLY_LIMIT: Final = 10 * 1024 * 1024
_ENCODINGS = ("gzip", "deflate")
_IDLE_SECONDS = 60.0  # an unused connection is closed after this time


@dataclass(frozen=True)
class HttpReply:
    """A reply with status 2xx and its decoded body. `cost_usd` are the US dollars that a proxy
    (LiteLLM) states in a header, None without it."""

    body: bytes
    cost_usd: float | None = None

    def json(self) -> Any:
        """The body as JSON; ValueError if it is not valid JSON."""
        try:
            return parse_json(self.body.decode("utf-8-sig"))
        except ValueError as error:
            raise ValueError(f"the reply is not valid JSON: {error}") from None


def encode(body: Any) -> bytes:
    """The body of a request in JSON; ValueError for NaN, TypeError for what JSON does not have."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def check_url(text: str) -> str:
    """The URL itself; ValueError, which never quotes it, unless it is an http(s) URL with a
    host."""
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):  # their messages may quote a password
        raise ValueError("it is not a valid URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("write a URL that begins with http:// or https://")
    return text


def get_origin(url: str) -> str:
    """Scheme, host and port of a URL, which may be a template after its host; the text itself if it
    is not a valid URL."""
    try:
        parts = urlsplit(url)
        origin = httpx.URL(f"{parts.scheme}://{parts.netloc}/")
    except (httpx.InvalidURL, ValueError):
        return url
    return str(origin.copy_with(userinfo=b""))


class HttpClient:
    """Sends requests to one server and keeps connections for later requests.

    Each call in flight borrows an `httpx.AsyncClient` with one connection: httpx's own pool scans
    all its connections for each request: 1000 calls, 50 at once, take 17 s in place of 3 s."""

    def __init__(self, service: Service) -> None:
        self.service, self._url = service, httpx.URL(service.url)
        self._has_proxy = not service.is_local and bool(getproxies())
        self._idle: list[httpx.AsyncClient] = []

    async def ask(
        self, method: str, body: bytes, timeout: float, read: Callable[[HttpReply], Trace]
    ) -> Trace:
        """Sends a JSON body; the trace that `read` finds in the reply, with the cost that a header
        states. Raises as `send` does, and AttemptError for a ValueError of `read`."""
        reply = await self.send(method, body, timeout)
        try:
            trace = read(reply)
        except ValueError as error:
            raise self._error(error) from None
        return replace(trace, usage=Usage(cost_usd=reply.cost_usd).or_else(trace.usage))

    def _error(self, error: ValueError) -> AttemptError:
        """The error for a reply with an unexpected structure."""
        return AttemptError("target", f"{host(self._url)}: {self.service.quote(str(error))}")

    async def send(self, method: str, body: bytes | None, timeout: float) -> HttpReply:
        """One request to the URL of the service; `timeout` is in seconds and covers all of it.

        Raises AttemptError of kind `timeout`; TransientError for a failed connection, 408, 409, 429
        and 5xx; TargetDead for 401, 403 and the vendor's permanent errors; AttemptError for any
        other refusal."""
        limit = asyncio.timeout(timeout)
        try:
            async with limit, self._client() as client:
                # A request that the client made would have the cookies of another attempt.
                asked = httpx.Request(method, self._url, headers=client.headers, content=body)
                async with aclosing(await client.send(asked, stream=True)) as response:
                    content = await _read_body(response)
        except (httpx.TransportError, OSError) as error:  # TimeoutError is an OSError
            if limit.expired():
                raise AttemptError("timeout", f"no answer within {timeout:g} s") from None
            raise connection_error(self.service, self._url, error) from None
        except _UnreadableBody as error:
            raise self._error(error) from None
        text = redact(content.decode("utf-8", "surrogateescape"))
        content = text.encode("utf-8", "surrogateescape")
        if response.is_success:
            cost = amount_in(response.headers.get("x-litellm-response-cost", ""))
            return HttpReply(content, cost)
        raise refusal(self.service, response, content)

    async def close(self) -> None:
        """Closes the connections; a later call opens new ones."""
        while self._idle:
            await self._idle.pop().aclose()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        client = self._idle.pop() if self._idle else self._open()
        try:
            yield client
        except BaseException:
            await client.aclose()
            raise
        self._idle.append(client)

    def _open(self) -> httpx.AsyncClient:
        for value in self.service.headers.values():
            if not (value.isascii() and value.isprintable()):  # not quoted: it may be a key
                problem = "the key has characters that no header can carry"
                raise AttemptError("configuration", problem)
        uses_tls = self._url.scheme == "https" or self._has_proxy
        try:
            client = httpx.AsyncClient(
                headers={
                    "User-Agent": f"agentevals-action/{__version__}",
                    "Accept-Encoding": ", ".join(_ENCODINGS),
                    "Content-Type": "application/json",
                },
                trust_env=self._has_proxy,  # it reads all variables of the environment
                verify=_tls_context(ssl.get_default_verify_paths(), uses_tls),
                timeout=None,  # noqa: S113  # `send` limits the time of a call
                limits=httpx.Limits(max_connections=1, keepalive_expiry=_IDLE_SECONDS),
            )
        except (ImportError, ValueError, httpx.InvalidURL):  # the messages may quote a password
            raise AttemptError(
                "configuration",
                "the proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names cannot be used",
                "write http://host:port, or add the server to NO_PROXY",
            ) from None
        client.headers.update(self.service.headers)
        return client


class _UnreadableBody(ValueError):
    """A reply that is too large, a stream of events, or whose encoding is wrong."""


async def _read_body(response: httpx.Response) -> bytes:
    """The decoded body, which httpx decodes in pieces of at most 64 KB of input: a bomb is refused
    as soon as its output is too large. The body of an error status never hides the status."""
    try:
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in ("", "identity", *_ENCODINGS):
            raise _UnreadableBody(
                f"the reply is compressed with {describe_json(encoding)}, which was not requested"
            )
        if response.headers.get("Content-Type", "").lower().startswith("text/event-stream"):
            raise _UnreadableBody("it is a stream of events; ask the server for one reply")
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > REPLY_LIMIT:
                raise _UnreadableBody(f"the reply is over {REPLY_LIMIT // 1024**2} MB")
    except (httpx.DecodingError, _UnreadableBody) as error:
        if response.is_success:
            raise _UnreadableBody(f"the reply cannot be read: {error}") from None
        return str(error).encode()
    return bytes(body)


@functools.cache
def _tls_context(_paths: ssl.DefaultVerifyPaths, uses_tls: bool) -> ssl.SSLContext:
    """The trusted authorities: the system's, or those of SSL_CERT_FILE and SSL_CERT_DIR. To read
    them takes 50 ms; a context that is not used trusts nobody."""
    return ssl.create_default_context() if uses_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
