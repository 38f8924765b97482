"""The loopback target proxy of one code judge: a model for a program that has no key, over HTTP and
with a limit."""

import asyncio
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Judges
from agentevals_action.model.messages import wire_messages
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace

#: Bytes of a request's head, and of its body.
MAX_HEAD, MAX_BODY = 64 * 1024, 10 * 1024 * 1024
#: Seconds that a request may take to arrive.
ARRIVAL = 30.0
#: Seconds that a client gets to read a refusal while it still sends.
LINGER = 2.0

_HOST = "127.0.0.1"


class _Refused(Exception):
    """A request that is answered with an error status; the message is what the client is told."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class TargetProxy:
    """A running proxy. `calls` counts what was asked of targets so far; `failure` is in words what
    went wrong last, for the error of a judge that fails over it."""

    judges: Judges
    max_calls: int
    token: str
    url: str = ""
    calls: int = 0
    failure: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a judge finds the proxy."""
        return {"AGENTV_TARGET_PROXY_URL": self.url, "AGENTV_TARGET_PROXY_TOKEN": self.token}

    async def answer(self, method: str, path: str, body: bytes) -> Mapping[str, Any]:
        """What an authorised request is answered; `_Refused` with the status and the reason
        otherwise."""
        allowed = {"/info": "GET", "/invoke": "POST", "/invokeBatch": "POST"}
        if path not in allowed:
            raise _Refused(
                HTTPStatus.NOT_FOUND, f"there is no {path[:200]}; known are {', '.join(allowed)}"
            )
        if method != allowed[path]:
            raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} is asked with {allowed[path]}")
        if path == "/info":
            return self._info()
        data = _read_object(body)
        if path == "/invoke":
            question = self._question(data, "the request")
            self._take(1)
            return await self._ask(*question)
        questions = self._questions(data)
        self._take(len(questions))
        # One after the other, as the reference runner does: a target may keep a conversation, and
        # each has its own limits.
        return {"responses": [await self._ask(*question) for question in questions]}

    def _info(self) -> Mapping[str, Any]:
        return {
            "targetName": self.judges.default,
            "maxCalls": self.max_calls,
            "callCount": self.calls,
            "availableTargets": list(self.judges.names),
        }

    def _questions(self, data: Mapping[str, Any]) -> Sequence[tuple[str, Sequence[Message]]]:
        requests = data.get("requests")
        if not isinstance(requests, list):
            raise _Refused(HTTPStatus.BAD_REQUEST, "`requests` must be a list of requests")
        return [
            self._question(request, f"requests[{index}]") for index, request in enumerate(requests)
        ]

    def _question(self, data: Any, what: str) -> tuple[str, Sequence[Message]]:
        """The target that is asked, and the messages that it is sent."""
        if not isinstance(data, dict):
            raise _Refused(HTTPStatus.BAD_REQUEST, f"{what} must be an object with a `question`")
        question, system, name = data.get("question"), data.get("systemPrompt"), data.get("target")
        if not isinstance(question, str) or not question:
            raise _Refused(
                HTTPStatus.BAD_REQUEST, f"{what} needs a `question`, a string that is not empty"
            )
        if not isinstance(system, str | None) or not isinstance(name, str | None):
            raise _Refused(
                HTTPStatus.BAD_REQUEST, f"`systemPrompt` and `target` of {what} must be strings"
            )
        if name is not None and name not in self.judges.names:
            raise _Refused(
                HTTPStatus.BAD_REQUEST,
                f"there is no target {name[:200]!r}; known are {', '.join(self.judges.names)}",
            )
        asked = Message("user", question)
        return name or self.judges.default, (Message("system", system), asked) if system else (
            asked,
        )

    def _take(self, calls: int) -> None:
        """Counts calls before they are made, so that requests side by side cannot pass the limit
        together."""
        if self.calls + calls > self.max_calls:
            said = f"the limit of {self.max_calls} calls is reached ({self.calls} made, {calls} asked for); `target.max_calls` raises it"
            raise _Refused(HTTPStatus.TOO_MANY_REQUESTS, said)
        self.calls += calls

    async def _ask(self, name: str, messages: Sequence[Message]) -> Mapping[str, Any]:
        try:
            trace = await self.judges.ask(name, messages)
        except AttemptError as error:
            raise _Refused(HTTPStatus.BAD_GATEWAY, f"{error}") from None
        return _reply(trace)


def _read_object(body: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"the body is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise _Refused(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
    return data


def _reply(trace: Trace) -> Mapping[str, Any]:
    reply: dict[str, Any] = {"rawText": trace.output, "output": wire_messages(trace.messages)}
    if trace.input_tokens is not None and trace.output_tokens is not None:
        reply["tokenUsage"] = {"input": trace.input_tokens, "output": trace.output_tokens}
    return reply


@asynccontextmanager
async def target_proxy(judges: Judges, max_calls: int) -> AsyncIterator[TargetProxy]:
    """A proxy on a free port of the loopback; at the end it is closed, and the calls that are under
    way are cancelled.

    AttemptError of kind `evaluator` when nothing can listen there."""
    proxy = TargetProxy(judges, max_calls, secrets.token_urlsafe(32))
    serving: set[asyncio.Task[Any] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        try:
            if server.is_serving():
                serving.add(task)
                # A client that leaves, or its judge's end, is no failure of anybody here.
                with suppress(ConnectionError, asyncio.CancelledError):
                    await _serve(proxy, reader, writer)
        finally:
            serving.discard(task)
            writer.transport.abort()

    try:
        server = await asyncio.start_server(serve, _HOST, 0, limit=MAX_HEAD)
    except OSError as error:
        raise AttemptError(
            "evaluator", f"the judge's target proxy cannot listen on {_HOST}: {error.strerror}"
        ) from error
    proxy.url = f"http://{_HOST}:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        under_way = [task for task in serving if task is not None]
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)


async def _serve(
    proxy: TargetProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answers the one request of a connection."""
    try:
        async with asyncio.timeout(ARRIVAL):
            method, path, headers = await _read_head(reader)
            body = await _read_body(reader, writer, headers)
        given = headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {proxy.token}".encode()):
            raise _Refused(
                HTTPStatus.UNAUTHORIZED,
                "the bearer token of AGENTV_TARGET_PROXY_TOKEN is asked for",
            )
        status, data = HTTPStatus.OK, await proxy.answer(method, path, body)
    except TimeoutError:
        status, data = (
            HTTPStatus.REQUEST_TIMEOUT,
            {"error": f"the request did not arrive within {ARRIVAL:g} s"},
        )
    except _Refused as refused:
        if refused.status not in (
            HTTPStatus.UNAUTHORIZED,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.METHOD_NOT_ALLOWED,
        ):
            proxy.failure = str(refused)
        status, data = refused.status, {"error": str(refused)}
    await _write(writer, status, data)
    await _part(reader, writer)


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, str, Mapping[str, str]]:
    """Method, path without its query, and headers by their names in lower case."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        raise _Refused(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the head is longer than {MAX_HEAD} bytes"
        ) from None
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError("the client left") from error
    first, *lines = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Refused(HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request")
    pairs = (line.partition(":") for line in lines if line)
    return (
        words[0],
        words[1].partition("?")[0],
        {name.strip().lower(): value.strip() for name, _, value in pairs},
    )


async def _read_body(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: Mapping[str, str]
) -> bytes:
    if "transfer-encoding" in headers:
        raise _Refused(
            HTTPStatus.LENGTH_REQUIRED,
            "a body in chunks is not read; send it with its Content-Length",
        )
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise _Refused(HTTPStatus.BAD_REQUEST, "Content-Length is no number")
    if len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY:
        raise _Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {MAX_BODY} bytes"
        )
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
    try:
        return await reader.readexactly(int(length))
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError("the client left") from error


async def _write(writer: asyncio.StreamWriter, status: HTTPStatus, data: Mapping[str, Any]) -> None:
    # ASCII: an answer may hold half of a surrogate pair, which JSON can escape and UTF-8 cannot
    # hold.
    body = json.dumps(data).encode("ascii")
    challenge = "WWW-Authenticate: Bearer\r\n" if status is HTTPStatus.UNAUTHORIZED else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n{challenge}Content-Type: application/json\r\n"
    )
    writer.write(
        f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode("ascii") + body
    )
    await writer.drain()


async def _part(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says that this was all, and takes what still comes: closed with bytes unread, the system
    would throw the answer away."""
    writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            while await reader.read(MAX_HEAD):
                pass
