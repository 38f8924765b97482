"""An HTTP proxy on the loopback through which one code judge calls targets without their keys."""

import asyncio
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Judges
from agentevals_action.formatting import cut
from agentevals_action.model.field_errors import describe
from agentevals_action.model.json_values import parse_json
from agentevals_action.model.messages import wire_messages
from agentevals_action.model.suite import Message

#: Bytes of a request's head, and of its body.
MAX_HEAD, MAX_BODY = 64 * 1024, 10 * 1024 * 1024
_NAME = 200  # characters of a path or a name that an error quotes

_HOST = "127.0.0.1"
_METHODS = {"/info": "GET", "/invoke": "POST", "/invokeBatch": "POST"}
#: Refusals that do not explain the failure of a judge.
_QUIET = (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)


class _RefusedRequest(Exception):
    """A request that gets an error status; the message is for the client."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


_refuse = partial(_RefusedRequest, HTTPStatus.BAD_REQUEST)


class Question(BaseModel):
    """The body of `/invoke`."""

    model_config = ConfigDict(strict=True)

    question: str = Field(min_length=1)
    system_prompt: str | None = Field(default=None, alias="systemPrompt")
    target: str | None = None


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
            message = f"there is no {cut(path, _NAME)}; known are {', '.join(_METHODS)}"
            raise _RefusedRequest(HTTPStatus.NOT_FOUND, message)
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
            return (await self._ask([_read_body(Question, body)]))[0]
        return {"responses": await self._ask(_read_body(Batch, body).requests)}

    async def _ask(self, questions: Sequence[Question]) -> list[Mapping[str, Any]]:
        for question in questions:
            if question.target is not None and question.target not in self.judges.names:
                known = ", ".join(self.judges.names)
                raise _refuse(
                    f"there is no target {cut(question.target, _NAME)!r}; known are {known}"
                )
        if self.calls + len(questions) > self.max_calls:
            raise _RefusedRequest(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"the limit of {self.max_calls} calls is reached ({self.calls} made, "
                f"{len(questions)} asked for); `target.max_calls` raises it",
            )
        # Counted before they are made, so that concurrent requests share the limit.
        self.calls += len(questions)
        replies: list[Mapping[str, Any]] = []
        # One after the other, as in AgentV: a target may keep a conversation.
        for question in questions:
            messages = [Message("user", question.question)]
            if question.system_prompt:
                messages.insert(0, Message("system", question.system_prompt))
            try:
                trace = await self.judges.ask(question.target or self.judges.default, messages)
            except AttemptError as error:
                raise _RefusedRequest(HTTPStatus.BAD_GATEWAY, str(error)) from None
            reply: dict[str, Any] = {
                "rawText": trace.output,
                "output": wire_messages(trace.messages),
            }
            if trace.input_tokens is not None and trace.output_tokens is not None:
                reply["tokenUsage"] = {"input": trace.input_tokens, "output": trace.output_tokens}
            replies.append(reply)
        return replies


def _read_body(model: type[Body], body: bytes) -> Body:
    try:
        data = parse_json(body)
    except ValueError as error:
        raise _refuse(f"the body is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise _refuse("the body must be a JSON object")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _refuse(describe(error, data)) from None


@asynccontextmanager
async def target_proxy(judges: Judges, max_calls: int) -> AsyncIterator[TargetProxy]:
    """A proxy on a free port of the loopback; at the end it is closed, and its calls are cancelled.

    AttemptError of kind `evaluator` if no port can be opened."""
    proxy = TargetProxy(judges, max_calls, secrets.token_urlsafe(32))
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_serve(proxy, reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)
        task.add_done_callback(lambda _: writer.transport.abort())
        if not server.is_serving():
            task.cancel()

    try:
        server = await asyncio.start_server(accept, _HOST, 0, limit=MAX_HEAD)
    except OSError as error:
        raise AttemptError(
            "evaluator", f"the judge's target proxy cannot listen on {_HOST}: {error.strerror}"
        ) from error
    proxy.url = f"http://{_HOST}:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _serve(
    proxy: TargetProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answers the one request of a connection. A slow client needs no time limit: all connections
    end with the judge."""
    # The client may disconnect: nobody waits for the answer.
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        headers = "Content-Type: application/json\r\nConnection: close\r\n"
        try:
            method, path, body = await _read_request(proxy.token, reader, writer)
            status, data = HTTPStatus.OK, await proxy.answer(method, path, body)
        except _RefusedRequest as error:
            status, data = error.status, {"error": str(error)}
            if status is HTTPStatus.UNAUTHORIZED:
                headers += "WWW-Authenticate: Bearer\r\n"
            if status not in _QUIET:
                proxy.last_error = str(error)
        # ASCII: an answer may hold half of a surrogate pair, which UTF-8 cannot encode.
        content = json.dumps(data).encode("ascii")
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{headers}"
        writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode("ascii") + content)
        await writer.drain()
        # A connection that is closed with unread bytes is reset, and the client loses the answer.
        writer.write_eof()
        while await reader.read(MAX_HEAD):
            pass


async def _read_request(
    token: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[str, str, bytes]:
    """Method, path without query, and body of an authorised request."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        raise _RefusedRequest(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the head is longer than {MAX_HEAD} bytes"
        ) from None
    first, *lines = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _refuse("this is not an HTTP/1.1 request")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if "transfer-encoding" in headers:
        message = "a chunked body is not supported; send a Content-Length"
        raise _RefusedRequest(HTTPStatus.LENGTH_REQUIRED, message)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise _refuse("Content-Length is not a valid number")
    if len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY:
        message = f"the body is longer than {MAX_BODY} bytes"
        raise _RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
    body = await reader.readexactly(int(length))
    given = headers.get("authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        message = "the bearer token AGENTV_TARGET_PROXY_TOKEN is required"
        raise _RefusedRequest(HTTPStatus.UNAUTHORIZED, message)
    return words[0], words[1].partition("?")[0], body
