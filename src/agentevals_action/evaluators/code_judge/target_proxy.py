"""An HTTP proxy on the loopback through which one code judge calls targets without their keys."""

import asyncio
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Judges
from agentevals_action.model.field_errors import describe
from agentevals_action.model.json_values import parse_json
from agentevals_action.model.messages import wire_messages
from agentevals_action.model.suite import Message

#: Bytes of a request's head, and of its body.
MAX_HEAD, MAX_BODY = 64 * 1024, 10 * 1024 * 1024
#: Seconds in which a request must arrive.
ARRIVAL_SECONDS = 30.0
#: Seconds for which the rest of a refused request is read, so that the client gets the answer.
LINGER_SECONDS = 2.0

_HOST = "127.0.0.1"
_METHODS = {"/info": "GET", "/invoke": "POST", "/invokeBatch": "POST"}
#: Refusals that do not explain the failure of a judge.
_QUIET = (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)


class _RefusedRequest(Exception):
    """A request that gets an error status; the message is for the client."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Question(BaseModel):
    """The body of `/invoke`."""

    model_config = ConfigDict(strict=True)

    question: str = Field(min_length=1)
    system_prompt: str | None = Field(default=None, alias="systemPrompt")
    target: str | None = None

    def messages(self) -> Sequence[Message]:
        """The messages for the target."""
        question = Message("user", self.question)
        return (
            (Message("system", self.system_prompt), question) if self.system_prompt else (question,)
        )


class Batch(BaseModel):
    """The body of `/invokeBatch`."""

    model_config = ConfigDict(strict=True)

    requests: list[Question]


Body = TypeVar("Body", Question, Batch)


@dataclass
class TargetProxy:
    """A running proxy. `calls` counts the calls of targets; `last_error` is the last refusal that
    may explain the failure of a judge."""

    judges: Judges
    max_calls: int
    token: str
    url: str = ""
    calls: int = 0
    last_error: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the judge's program reads."""
        return {"AGENTV_TARGET_PROXY_URL": self.url, "AGENTV_TARGET_PROXY_TOKEN": self.token}

    async def answer(self, method: str, path: str, body: bytes) -> Mapping[str, Any]:
        """The answer to an authorised request."""
        if path not in _METHODS:
            known = ", ".join(_METHODS)
            raise _RefusedRequest(
                HTTPStatus.NOT_FOUND, f"there is no {path[:200]}; known are {known}"
            )
        if method != _METHODS[path]:
            raise _RefusedRequest(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} needs {_METHODS[path]}")
        if path == "/info":
            return {
                "targetName": self.judges.default,
                "maxCalls": self.max_calls,
                "callCount": self.calls,
                "availableTargets": list(self.judges.names),
            }
        if path == "/invoke":
            question = _read_body(Question, body)
            self._count((question,))
            return await self._call(question)
        questions = _read_body(Batch, body).requests
        self._count(questions)
        # One after the other, as in AgentV: a target may keep a conversation.
        return {"responses": [await self._call(question) for question in questions]}

    def _count(self, questions: Sequence[Question]) -> None:
        """Counts the calls before they are made, so that concurrent requests share the limit."""
        for question in questions:
            if question.target is not None and question.target not in self.judges.names:
                raise _RefusedRequest(
                    HTTPStatus.BAD_REQUEST,
                    f"there is no target {question.target[:200]!r}; "
                    f"known are {', '.join(self.judges.names)}",
                )
        if self.calls + len(questions) > self.max_calls:
            raise _RefusedRequest(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"the limit of {self.max_calls} calls is reached ({self.calls} made, "
                f"{len(questions)} asked for); `target.max_calls` raises it",
            )
        self.calls += len(questions)

    async def _call(self, question: Question) -> Mapping[str, Any]:
        name = question.target or self.judges.default
        try:
            trace = await self.judges.ask(name, question.messages())
        except AttemptError as error:
            raise _RefusedRequest(HTTPStatus.BAD_GATEWAY, str(error)) from None
        reply: dict[str, Any] = {"rawText": trace.output, "output": wire_messages(trace.messages)}
        if trace.input_tokens is not None and trace.output_tokens is not None:
            reply["tokenUsage"] = {"input": trace.input_tokens, "output": trace.output_tokens}
        return reply


def _read_body(model: type[Body], body: bytes) -> Body:
    try:
        data = parse_json(body)
    except ValueError as error:
        raise _RefusedRequest(
            HTTPStatus.BAD_REQUEST, f"the body is not valid JSON: {error}"
        ) from None
    if not isinstance(data, dict):
        raise _RefusedRequest(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _RefusedRequest(HTTPStatus.BAD_REQUEST, describe(error, data)) from None


@asynccontextmanager
async def target_proxy(judges: Judges, max_calls: int) -> AsyncIterator[TargetProxy]:
    """A proxy on a free port of the loopback; at the end it is closed, and its calls are cancelled.

    AttemptError of kind `evaluator` if no port can be opened."""
    proxy = TargetProxy(judges, max_calls, secrets.token_urlsafe(32))
    connections: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        try:
            if task is not None and server.is_serving():
                connections.add(task)
                # The client disconnects, or the judge ends: nobody waits for the answer.
                with suppress(ConnectionError, asyncio.CancelledError):
                    await _serve_request(proxy, reader, writer)
        finally:
            if task is not None:
                connections.discard(task)
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
        open_connections = tuple(connections)
        for task in open_connections:
            task.cancel()
        await asyncio.gather(*open_connections, return_exceptions=True)


async def _serve_request(
    proxy: TargetProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answers the one request of a connection."""
    try:
        async with asyncio.timeout(ARRIVAL_SECONDS):
            method, path, headers = await _read_head(reader)
            body = await _receive_body(reader, writer, headers)
        given = headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {proxy.token}".encode()):
            raise _RefusedRequest(
                HTTPStatus.UNAUTHORIZED, "the bearer token AGENTV_TARGET_PROXY_TOKEN is required"
            )
        status, data = HTTPStatus.OK, await proxy.answer(method, path, body)
    except TimeoutError:
        status = HTTPStatus.REQUEST_TIMEOUT
        data = {"error": f"the request did not arrive within {ARRIVAL_SECONDS:g} s"}
    except _RefusedRequest as error:
        status, data = error.status, {"error": str(error)}
        if status not in _QUIET:
            proxy.last_error = str(error)
    await _send(writer, status, data)
    # A connection that is closed with unread bytes is reset, and the client loses the answer.
    writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while await reader.read(MAX_HEAD):
                pass


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, str, Mapping[str, str]]:
    """Method, path without query, and headers by their names in lower case."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        raise _RefusedRequest(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the head is longer than {MAX_HEAD} bytes"
        ) from None
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError("the client disconnected") from error
    first, *lines = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _RefusedRequest(HTTPStatus.BAD_REQUEST, "this is not an HTTP/1.1 request")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return words[0], words[1].partition("?")[0], headers


async def _receive_body(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: Mapping[str, str]
) -> bytes:
    if "transfer-encoding" in headers:
        raise _RefusedRequest(
            HTTPStatus.LENGTH_REQUIRED, "a chunked body is not supported; send a Content-Length"
        )
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise _RefusedRequest(HTTPStatus.BAD_REQUEST, "Content-Length is not a valid number")
    if len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY:
        raise _RefusedRequest(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {MAX_BODY} bytes"
        )
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
    try:
        return await reader.readexactly(int(length))
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError("the client disconnected") from error


async def _send(writer: asyncio.StreamWriter, status: HTTPStatus, data: Mapping[str, Any]) -> None:
    # ASCII: an answer may hold half of a surrogate pair, which UTF-8 cannot encode.
    body = json.dumps(data).encode("ascii")
    challenge = "WWW-Authenticate: Bearer\r\n" if status is HTTPStatus.UNAUTHORIZED else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n{challenge}Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode("ascii") + body)
    await writer.drain()
