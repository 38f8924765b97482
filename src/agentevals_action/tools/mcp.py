"""The HTTP server of one attempt: MCP (streamable HTTP, for tools alone) in both eras of the
protocol (https://modelcontextprotocol.io/specification), and the questions of command stubs."""

import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from agentevals_action import __version__
from agentevals_action.model.tools import ToolAccess
from agentevals_action.system.loopback_server import (
    HttpAnswer,
    HttpRequest,
    LoopbackServer,
    RefusedRequest,
    is_token,
)
from agentevals_action.tools.commands import answer_stub, write_stub
from agentevals_action.tools.session import ToolSession, UnknownTool
from agentevals_action.validation.field_errors import invalid_json
from agentevals_action.validation.json_values import as_object, parse_json

#: The version without a handshake, and those that begin with `initialize`, the newest first.
MODERN, HANDSHAKE = "2026-07-28", ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
#: The keys that the `_meta` of every request of `MODERN` has.
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
#: The name of this program in the handshake.
IDENTITY = {"name": "agentevals-action", "version": __version__}
#: Codes of errors, of JSON-RPC and of MCP.
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022

#: Bytes of a request's body, and of all bodies of an attempt.
MAX_BODY, MAX_TOTAL = 10 * 1024**2, 64 * 1024**2
_MCP, _COMMANDS = "/mcp/", "/commands/"
#: Headers that an error status must have.
_HEADERS: Mapping[HTTPStatus, Mapping[str, str]] = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.METHOD_NOT_ALLOWED: {"Allow": "POST"},
}
#: The tools of an attempt do not change: milliseconds for which a client may keep their list.
_CACHING = {"ttlMs": 3_600_000, "cacheScope": "private"}
_CAPABILITIES: Mapping[str, Mapping[str, object]] = {"tools": {}}


class _Error(Exception):
    """An error of the protocol."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class _Message(BaseModel):
    """A request or, without `id`, a notification."""

    model_config = ConfigDict(strict=True)

    jsonrpc: Literal["2.0"]
    method: str
    id: int | str = ""
    params: dict[str, Any] | None = None


class _Call(BaseModel):
    """The parameters of `tools/call`."""

    model_config = ConfigDict(strict=True)

    name: str
    arguments: dict[str, Any] | None = None


@asynccontextmanager
async def serve_tools(session: ToolSession) -> AsyncIterator[ToolAccess]:
    """Serves the tools and commands of an attempt on a free port of the loopback. OSError if no
    port can be opened."""
    token = secrets.token_urlsafe(32)
    handler = _Handler(session, token)
    server = LoopbackServer(handler.check, handler.answer, _refuse, MAX_BODY)
    async with server.listen() as url:
        stubs = {
            name: write_stub(name, url, token, reads_stdin=command.reads_stdin)
            for name, command in session.commands.items()
        }
        yield ToolAccess(url, token, session.servers, stubs)


@dataclass
class _Handler:
    """Answers the requests of those who have the token."""

    session: ToolSession
    token: str
    received: int = 0

    def check(self, request: HttpRequest) -> None:
        """RefusedRequest for a request that nobody answers."""
        if not is_token(request.headers.get("authorization", ""), f"Bearer {self.token}"):
            message = "the bearer token of this attempt of the test is required"
            raise RefusedRequest(HTTPStatus.UNAUTHORIZED, message)
        if not request.path.startswith((_MCP, _COMMANDS)):
            raise RefusedRequest(HTTPStatus.NOT_FOUND, f"known are {_MCP} and {_COMMANDS}")
        if request.method not in ("POST", "DELETE"):  # a session of MCP ends with DELETE
            raise RefusedRequest(HTTPStatus.METHOD_NOT_ALLOWED, "only POST is answered")

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        """The answer to a request; RefusedRequest."""
        self.received += len(request.body)
        if self.received > MAX_TOTAL:
            message = f"the agent has sent more than {MAX_TOTAL // 1024**2} MB to its tools"
            raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        if request.method == "DELETE":
            return HttpAnswer()
        if request.path.startswith(_MCP):
            return await _answer_message(self.session, request.path.removeprefix(_MCP), request)
        try:
            name = request.path.removeprefix(_COMMANDS)
            return await answer_stub(self.session, name, request.body)
        except ValidationError as error:
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, invalid_json(error)) from None
        except UnknownTool as error:
            raise RefusedRequest(HTTPStatus.NOT_FOUND, str(error)) from None


def _refuse(error: RefusedRequest) -> HttpAnswer:
    text = str(error).encode("ascii", "replace")
    return HttpAnswer(text, "text/plain", error.status, _HEADERS.get(error.status, {}))


async def _answer_message(session: ToolSession, server: str, request: HttpRequest) -> HttpAnswer:
    """The answer to the message in a request for one of the servers."""
    data: Any = None
    # In the older era, an error of an understood request has the status of a success.
    status = HTTPStatus.BAD_REQUEST
    try:
        try:
            data = parse_json(request.body)
            message = _Message.model_validate(data)
        except ValidationError as error:
            raise _Error(INVALID_REQUEST, invalid_json(error)) from None
        except ValueError as error:
            raise _Error(PARSE_ERROR, f"the body is not JSON: {error}") from None
        if "id" not in message.model_fields_set:
            return HttpAnswer(status=HTTPStatus.ACCEPTED)
        is_modern = _check_version(message, request.headers)
        if not is_modern:
            status = HTTPStatus.OK
        result = await _answer(session, server, message, is_modern)
    except _Error as error:
        if error.code == UNKNOWN_METHOD and status is HTTPStatus.BAD_REQUEST:
            status = HTTPStatus.NOT_FOUND
        problem = {"code": error.code, "message": str(error)}
        problem |= {"data": error.data} if error.data else {}
        given = as_object(data).get("id")
        return _encoded(given if type(given) in (int, str) else None, "error", problem, status)
    return _encoded(message.id, "result", result)


def _encoded(
    identity: object, kind: str, content: object, status: HTTPStatus = HTTPStatus.OK
) -> HttpAnswer:
    # ASCII: a reply may hold half of a surrogate pair, which UTF-8 cannot encode.
    data = json.dumps({"jsonrpc": "2.0", "id": identity, kind: content}, separators=(",", ":"))
    return HttpAnswer(data.encode("ascii"), status=status)


def _check_version(message: _Message, headers: Mapping[str, str]) -> bool:
    """Whether a request is of `MODERN`; _Error if it contradicts itself or is of a version that is
    unknown."""
    version = as_object((message.params or {}).get("_meta")).get(VERSION_KEY)
    header = headers.get("mcp-protocol-version", version)
    if version is None and header != MODERN and message.method != "server/discover":
        return False
    if not isinstance(version, str):
        raise _Error(INVALID_PARAMS, f"`params._meta` needs the version in {VERSION_KEY!r}")
    if header != version or headers.get("mcp-method", message.method) != message.method:
        problem = "MCP-Protocol-Version or Mcp-Method is not that of the message"
        raise _Error(HEADER_MISMATCH, problem)
    if version != MODERN:
        data = {"supported": [MODERN], "requested": version}
        raise _Error(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return True


async def _answer(
    session: ToolSession, server: str, message: _Message, is_modern: bool
) -> Mapping[str, object]:
    """The result of a request; _Error if there is none."""
    params = message.params or {}
    cached = _CACHING if is_modern else {}
    extra = {"resultType": "complete"} if is_modern else {}
    match message.method:
        case "server/discover":
            result = {"supportedVersions": [MODERN], "capabilities": _CAPABILITIES}
            return {**result, **cached, **extra}
        case "initialize" if not is_modern:
            asked = params.get("protocolVersion")
            version = asked if asked in HANDSHAKE else HANDSHAKE[0]
            facts = {"capabilities": _CAPABILITIES, "serverInfo": IDENTITY}
            return {"protocolVersion": version, **facts}
        case "ping" if not is_modern:
            return {}
        case "tools/list":
            return {"tools": session.list_tools(server), **cached, **extra}
        case "tools/call":
            return {**await _call(session, server, params), **extra}
    raise _Error(UNKNOWN_METHOD, f"Method not found: {message.method}")


async def _call(
    session: ToolSession, server: str, params: Mapping[str, Any]
) -> Mapping[str, object]:
    try:
        call = _Call.model_validate(params)
        done = await session.call(server, call.name, call.arguments or {})
    except ValidationError as error:
        raise _Error(INVALID_PARAMS, invalid_json(error)) from None
    except UnknownTool as error:
        raise _Error(INVALID_PARAMS, str(error)) from None
    content = [{"type": "text", "text": done.text}]
    structured = {} if done.structured is None else {"structuredContent": done.structured}
    return {"content": content, **structured, "isError": done.is_error}
