"""The list of tools of an MCP server that is a program: in both eras, and each way in which there
is none."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.tools import Tool
from agentevals_action.system.program import Program
from agentevals_action.tools import server_list
from agentevals_action.tools.server_list import list_server_tools
from tests.support import mcp_shop

#: A server that reads lines; `answer` gives the result of a request, or raises an error's text.
SERVER = """
import json, sys
def answer(message):
    method, params = message["method"], message["params"]
{body}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    try:
        content = {{"result": answer(message)}}
    except ValueError as error:
        content = {{"error": {{"code": -32000, "message": str(error)}}}}
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **content}}), flush=True)
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}}
INITIALIZE = f"    if method == 'initialize': return {HELLO}\n"
SCHEMA = {"type": "object"}
SDK = """
from mcp.server import MCPServer
server = MCPServer("shop")
@server.tool(title="Find", annotations={"readOnlyHint": True})
def find_order(id: int) -> dict[str, str]:
    "Finds an order."
server.run("stdio")
"""


def listed(*words: str, code: str = "") -> list[Tool]:
    command = words or (sys.executable, "-c", code)
    program = Program(command, Path.cwd(), {"PATH": os.environ["PATH"]}, hint="the hint")
    return [*asyncio.run(list_server_tools(program))]


def refused(*words: str, code: str = "") -> str:
    with pytest.raises(AttemptError) as caught:
        listed(*words, code=code)
    assert caught.value.kind == "prepare"
    return caught.value.sentence


def test_handshake_server__is_listed() -> None:
    tool, *_ = listed(sys.executable, mcp_shop.__file__)
    own = mcp_shop.TOOLS[0]
    assert (tool.name, tool.description) == (own["name"], own["description"])
    assert (tool.parameters, tool.annotations) == (own["inputSchema"], own["annotations"])


def test_server_of_the_sdk__is_listed() -> None:
    (tool,) = listed(code=SDK)
    assert (tool.name, tool.title, tool.description) == ("find_order", "Find", "Finds an order.")
    assert tool.output_schema is not None


def test_server_of_the_newest_version_alone__is_listed() -> None:
    code = f"""
    if params.get("_meta", {{}}).get("io.modelcontextprotocol/protocolVersion") != "2026-07-28":
        raise ValueError("Unsupported protocol version")
    return {{"tools": [{{"name": method, "inputSchema": {SCHEMA}}}]}}"""
    assert [tool.name for tool in listed(code=SERVER.format(body=code))] == ["tools/list"]


def test_list__has_pages_and_drops_what_plain_clients_cannot_use() -> None:
    code = f"""{INITIALIZE}
    tool = {{"inputSchema": {SCHEMA}, "execution": {{}}, "icons": [], "_meta": {{}}}}
    if "cursor" not in params: return {{"tools": [{{"name": "a", **tool}}], "nextCursor": "2"}}
    return {{"tools": [{{"name": "b" + params["cursor"], **tool}}]}}"""
    assert [tool.name for tool in listed(code=SERVER.format(body=code))] == ["a", "b2"]


def test_lines_that_are_no_reply__are_skipped() -> None:
    code = f"""{INITIALIZE}
    print("started")
    print("[1]")
    print(json.dumps({{"method": "notifications/tools/list_changed"}}))
    print(json.dumps({{"id": message["id"], "method": "roots/list"}}), flush=True)
    refusal = json.loads(sys.stdin.readline())
    return {{"tools": [{{"name": str(refusal["error"]["code"]), "inputSchema": {SCHEMA}}}]}}"""
    assert [tool.name for tool in listed(code=SERVER.format(body=code))] == ["-32601"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("no-such-program",), "`no-such-program` cannot be started: there is no command"),
        ((sys.executable, "-c", "import sys; sys.exit('API_KEY is missing')"),
         "ended with exit code 1: API_KEY is missing; the hint"),
        ((sys.executable, "-c", "print('hello')"), "ended with exit code 0"),
        ((sys.executable, "-c", "import os, signal; os.kill(os.getpid(), 9)"), "by signal 9"),
    ],
)  # fmt: skip
def test_server_that_ends__is_an_error_with_its_words(
    words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in refused(*words)


@pytest.mark.parametrize("program", ["cat", "sleep 60"])
def test_server_that_never_answers__is_ended(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_list, "_START_SECONDS", 0.1)
    problem = refused(*program.split())
    assert f"the MCP server `{program}` did not answer; if it is installed at its start" in problem


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        ("raise ValueError('no database')", "no usable list of tools: no database"),
        ("return {'tools': [{'inputSchema': {}}]}", "a tool of its list is not valid: `name`"),
        ("return {'tools': ['find']}", "a tool of its list is not valid"),
        ("return {'tools': [{'name': 'a', 'inputSchema': []}]}", "not valid: `inputSchema`"),
    ],
)
def test_list_that_is_none__is_an_error(result: str, sentence: str) -> None:
    assert sentence in refused(code=SERVER.format(body=f"{INITIALIZE}    {result}"))


def test_list_without_an_end__is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_list, "_LIST_SECONDS", 0.1)
    body = f"{INITIALIZE}    return {{'tools': [], 'nextCursor': 'again'}}"
    assert "did not answer" in refused(code=SERVER.format(body=body))
