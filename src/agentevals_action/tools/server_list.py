"""MCP servers that are programs (stdio): their lists of tools, in both eras of the protocol, and
their results for the recorder."""

import asyncio
import itertools
import json
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import cut_line, quoted
from agentevals_action.model.tools import Tool
from agentevals_action.system.program import Program, child_error
from agentevals_action.system.redaction import redact
from agentevals_action.system.workers import Worker, WorkerEnded
from agentevals_action.tools.mcp import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    IDENTITY,
    MODERN,
    UNKNOWN_METHOD,
    VERSION_KEY,
)
from agentevals_action.validation.field_errors import invalid_json
from agentevals_action.validation.json_schema import find_schema_problems
from agentevals_action.validation.json_values import as_object, decode_json

#: Seconds for a start, for a list, and for the end when the input ends.
_START_SECONDS, _LIST_SECONDS, _END_SECONDS = 20.0, 20.0, 3.0
_SHOWN = 200  # characters of the name of a server, and of an error
_SLOW = "if it is installed at its start (`npx`, `uvx`), install it in the input `setup`"
#: What is kept of a tool: its icons and tasks are not for plain clients.
_KEPT = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
#: Requests of `MODERN` have these facts, other versions get them once, in the handshake. A list may
#: depend on the capabilities of a client: ours has none.
_META = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
_CLIENT = {"protocolVersion": HANDSHAKE[0], "capabilities": {}, "clientInfo": IDENTITY}


class ServerError(Exception):
    """An error that a server answers with."""


class StdioServer:
    """A running server, without capabilities of a client; `stdio_server` starts it."""

    def __init__(self, worker: Worker) -> None:
        self._worker, self._is_modern = worker, False
        self._numbers, self._lock = itertools.count(1), asyncio.Lock()

    async def connect(self) -> None:
        """Agrees on a version. A server of `MODERN` alone refuses the handshake, and needs none."""
        try:
            await self.ask("initialize", _CLIENT)
            self._send({"method": "notifications/initialized"})
        except ServerError:
            self._is_modern = True

    async def list_tools(self) -> list[Tool]:
        """All tools that it lists. ServerError if one of them is not valid, TimeoutError."""
        tools, page = list[Tool](), dict[str, Any]()
        async with asyncio.timeout(_LIST_SECONDS):
            while True:
                result = await self.ask("tools/list", page)
                tools += map(_read_tool, result.get("tools") or ())
                if not (cursor := result.get("nextCursor")):
                    return tools
                page = {"cursor": cursor}

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of a request. ServerError, WorkerEnded."""
        async with self._lock:
            number = next(self._numbers)
            meta = {"_meta": _META} if self._is_modern else {}
            self._send({"id": number, "method": method, "params": {**params, **meta}})
            while True:
                # Programs also write logs there, or what they read.
                line = redact((await self._worker.next_line()).decode("utf-8", "replace"))
                message = as_object(decode_json(line))
                is_echo = message.get("method") == method
                if "method" in message and "id" in message and not is_echo:
                    refusal = {"code": UNKNOWN_METHOD, "message": "the client has no such method"}
                    self._send({"id": message["id"], "error": refusal})
                elif "method" not in message and message.get("id") == number:
                    break
        if "error" in message:
            raise ServerError(str(as_object(message["error"]).get("message", "")))
        return as_object(message.get("result"))

    def _send(self, message: Mapping[str, Any]) -> None:
        self._worker.send(json.dumps({"jsonrpc": "2.0", **message}).encode("ascii"))


def _read_tool(listed: Any) -> Tool:
    kept = {name: as_object(listed).get(name) for name in _KEPT}
    given = {name: value for name, value in kept.items() if value is not None}
    try:
        return Tool.model_validate(given, context=None)
    except ValidationError as error:
        raise ServerError(f"a tool of its list is not valid: {invalid_json(error)}") from None


@asynccontextmanager
async def stdio_server(program: Program) -> AsyncIterator[StdioServer]:
    """A server that is started with this program. AttemptError of kind `prepare` if it cannot be
    started or does not answer, also to a request in the block."""
    subject = f"the MCP server `{cut_line(shlex.join(program.words), _SHOWN)}`"
    try:
        worker = await Worker.start(program, subject)
    except OSError as error:
        raise program.start_error("prepare", subject, error) from None
    try:
        server = StdioServer(worker)
        async with asyncio.timeout(_START_SECONDS):
            await server.connect()
        yield server
    except TimeoutError:
        raise child_error("prepare", f"{subject} did not answer", worker.errors, _SLOW) from None
    except WorkerEnded as error:
        raise child_error("prepare", str(error), worker.errors, program.hint) from None
    except ServerError as error:
        problem = f"{subject} has no usable list of tools: {cut_line(str(error), _SHOWN)}"
        raise child_error("prepare", problem, worker.errors, program.hint) from None
    finally:
        await worker.end(_END_SECONDS)


async def list_server_tools(program: Program) -> Sequence[Tool]:
    """The tools that a server lists when it is started for that alone. AttemptError of kind
    `prepare` if there is no valid list."""
    async with stdio_server(program) as server:
        listed = await server.list_tools()
    for tool in listed:
        for schema in (tool.parameters, tool.output_schema):
            for problem in find_schema_problems(schema or {}).values():
                text = f"the server lists the tool {quoted(tool.name)} with a wrong schema"
                raise AttemptError("prepare", f"{text}: {problem.partition('; ')[0]}")
    return listed
