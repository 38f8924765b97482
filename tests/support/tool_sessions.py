"""A session of tools for tests of its server, and questions of a client to it."""

import json
from dataclasses import dataclass
from typing import Any

import httpx
from mcp_types import jsonrpc
from mcp_types.methods import serialize_server_result

from agentevals_action.model.tools import Command, Tool, ToolAccess, ToolSet, combine_tools
from agentevals_action.model.trace import Trace, list_calls
from agentevals_action.tools.mcp import HANDSHAKE, MODERN, VERSION_KEY
from agentevals_action.tools.session import ToolSession

ORDER = {"state": "sent", "note": "naïve 🚀"}
_ENTRIES: list[dict[str, Any]] = [
    {
        "name": "find_order",
        "in": "shop",
        "description": "Finds an order.",
        "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}},
        "output_schema": {"type": "object", "properties": {"state": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
        "replies": [{"reply": ORDER}],
    },
    {
        "name": "refund",
        "in": "shop",
        "parameters": {},
        "replies": [{"when": {"id": 1}, "reply": ORDER}, {"error": "needs approval"}],
    },
]
_COMMANDS: list[dict[str, Any]] = [
    {
        "name": "gh",
        "replies": [
            {"when": {"line": "pr view 7"}, "stdout": "seven\n", "stderr": "warned\n", "exit": 3},
            {"when": {"line": "'a b' '' ü \"$'\""}, "stdout": "ünder"},
        ],
    },
    {"name": "wc", "replies": [{"when": {"stdin": "ü"}, "stdout": "1\n"}, {"stdout": "?\n"}]},
]


def shop_session() -> ToolSession:
    tools = [Tool.model_validate(entry, context=None) for entry in _ENTRIES]
    commands = [Command.model_validate(entry, context=None) for entry in _COMMANDS]
    return ToolSession(
        ToolSet(combine_tools(tools), {command.name: command for command in commands})
    )


def calls(session: ToolSession) -> list[tuple[str, Any]]:
    """The calls that arrived."""
    trace = session.merge(Trace(()))
    return [(call.name, call.arguments) for call in list_calls(trace.messages)]


@dataclass(frozen=True)
class Answer:
    """What a server answered: the status, and the result or the error."""

    status: int
    content: Any


async def ask(client: httpx.AsyncClient, access: ToolAccess, body: Any, **headers: str) -> Answer:
    """The answer to a body, checked against the models of the SDK of MCP."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    headers = {**access.headers, **names}
    response = await client.post(access.address("shop"), content=data, headers=headers)
    if not response.content:
        return Answer(response.status_code, None)
    assert response.headers["content-type"] == "application/json"
    answer = response.json()
    if "error" in answer:
        error = jsonrpc.JSONRPCError.model_validate(answer)
        return Answer(response.status_code, error.error.model_dump(exclude_none=True))
    jsonrpc.JSONRPCResponse.model_validate(answer)
    meta = body.get("params", {}).get("_meta", {})
    version = meta.get(VERSION_KEY) or answer["result"].get("protocolVersion", HANDSHAKE[0])
    made = serialize_server_result(body["method"], version, answer["result"])
    assert made == answer["result"], "a field that the version does not have"
    return Answer(response.status_code, answer["result"])


def message(method: str, params: Any = None, *, modern: bool = False, **others: Any) -> Any:
    """A request of either era."""
    params = {} if params is None else params
    if modern:
        meta = {VERSION_KEY: MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
        params = {**params, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **others}
