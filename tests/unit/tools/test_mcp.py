"""The MCP server of an attempt: each message gets the answer of its era, and nonsense the error of
the protocol. Every answer passes the models of MCP's SDK."""

import asyncio
import json
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from agentevals_action.tools import mcp
from agentevals_action.tools.mcp import MODERN, VERSION_KEY, serve_tools
from tests.support.tool_sessions import ORDER, Answer, ask, calls, message, shop_session

CALL = {"name": "find_order", "arguments": {"id": 2077}}
COMPACT = json.dumps(ORDER, separators=(",", ":"), ensure_ascii=False)
TEXT = {"type": "text", "text": COMPACT}


def answer(body: Any, **headers: str) -> Answer:
    async def run() -> Answer:
        async with serve_tools(shop_session()) as access, httpx.AsyncClient() as client:
            return await ask(client, access, body, **headers)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        (MODERN, "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
        (None, "2025-11-25"),
        ([], "2025-11-25"),
    ],
)
def test_initialize__agrees_on_a_version(asked: Any, answered: str) -> None:
    found = answer(message("initialize", {"protocolVersion": asked}))
    assert found.status == 200
    assert found.content["protocolVersion"] == answered
    assert found.content["capabilities"] == {"tools": {}}


@pytest.mark.parametrize("modern", [False, True])
def test_request__is_answered_in_its_era(modern: bool) -> None:
    listed = answer(message("tools/list", modern=modern))
    assert listed.content["tools"] == shop_session().list_tools("shop")
    called = answer(message("tools/call", CALL, modern=modern))
    assert called.content["content"] == [TEXT]
    assert called.content["structuredContent"] == ORDER
    assert called.content["isError"] is False
    refused = answer(message("tools/call", {"name": "refund"}, modern=modern))
    assert refused.content["content"] == [{"type": "text", "text": "needs approval"}]
    assert refused.content["isError"] is True
    assert "structuredContent" not in refused.content
    unstructured = answer(message("tools/call", {"name": "refund", "arguments": {"id": 1}}))
    assert unstructured.content["content"] == [TEXT]
    assert "structuredContent" not in unstructured.content
    marks = [found.content.get("resultType") for found in (listed, called, refused)]
    assert marks == [("complete" if modern else None)] * 3


def test_server__is_discovered() -> None:
    found = answer(message("server/discover", modern=True), mcp_method="server/discover")
    assert found.content["supportedVersions"] == [MODERN]


def test_notification__is_accepted() -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert answer(body) == Answer(202, None)


def test_ping__is_answered() -> None:
    assert answer(message("ping")) == Answer(200, {})


BAD = 400
META = {"_meta": {VERSION_KEY: MODERN}}


@pytest.mark.parametrize(
    ("body", "headers", "code", "status"),
    [
        (b"", {}, -32700, BAD),
        (b"{", {}, -32700, BAD),
        (b"\xff\xfe\x00", {}, -32700, BAD),
        (b"[" * 100_000, {}, -32700, BAD),
        (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', {}, -32700, BAD),
        (b"null", {}, -32600, BAD),
        ([], {}, -32600, BAD),
        ([message("ping"), message("ping")], {}, -32600, BAD),
        ({}, {}, -32600, BAD),
        (message("ping", jsonrpc="1.0"), {}, -32600, BAD),
        (message("ping", id=None), {}, -32600, BAD),
        (message("ping", id=True), {}, -32600, BAD),
        (message("ping", id=[1]), {}, -32600, BAD),
        ({**message("ping"), "method": 7}, {}, -32600, BAD),
        (message("tools/call", ["find_order"]), {}, -32600, BAD),
        (message("tools/call", "find_order"), {}, -32600, BAD),
        (message("tools/call", {}), {}, -32602, 200),
        (message("tools/call", {"name": ["find_order"]}), {}, -32602, 200),
        (message("tools/call", {"name": "find_order", "arguments": []}), {}, -32602, 200),
        (message("tools/call", {"name": "find_order", "arguments": "x"}), {}, -32602, 200),
        (message("tools/call", {"name": "nosuch"}), {}, -32602, 200),
        (message("tools/call", {"name": "nosuch"}, modern=True), {}, -32602, BAD),
        (message("resources/list"), {}, -32601, 200),
        (message("resources/list", modern=True), {}, -32601, 404),
        (message("ping", modern=True), {}, -32601, 404),
        (message("server/discover"), {}, -32602, BAD),
        (message("tools/list"), {"mcp_protocol_version": MODERN}, -32602, BAD),
        (message("tools/list", {"_meta": {VERSION_KEY: 3}}), {}, -32602, BAD),
        (message("tools/list", META), {"mcp_protocol_version": "2025-11-25"}, -32020, BAD),
        (message("tools/list", META), {"mcp_method": "tools/call"}, -32020, BAD),
        (message("tools/list", {"_meta": {VERSION_KEY: "2031-01-01"}}), {}, -32022, BAD),
    ],
)
def test_nonsense__gets_the_error_of_the_protocol(
    body: Any, headers: dict[str, str], code: int, status: int
) -> None:
    found = answer(body, **headers)
    assert (found.content["code"], found.status) == (code, status)
    assert found.content["message"]


def test_unknown_version__names_those_that_are_supported() -> None:
    found = answer(message("tools/list", {"_meta": {VERSION_KEY: "2031-01-01"}}))
    assert found.content["data"] == {"supported": [MODERN], "requested": "2031-01-01"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/mcp/shop", 405),
        ("PUT", "/mcp/shop", 405),
        ("DELETE", "/mcp/shop", 200),
        ("POST", "/", 404),
        ("POST", "/.well-known/oauth-protected-resource", 404),
    ],
)
def test_other_requests__get_their_status(method: str, path: str, status: int) -> None:
    async def run() -> httpx.Response:
        async with serve_tools(shop_session()) as access, httpx.AsyncClient() as client:
            return await client.request(method, access.url + path, headers=access.headers)

    response = asyncio.run(run())
    assert response.status_code == status
    assert response.headers.get("allow") == ("POST" if status == 405 else None)


def test_token_of_another_sample__is_refused() -> None:
    async def run() -> list[int]:
        session = shop_session()
        async with (
            serve_tools(session) as own,
            serve_tools(shop_session()) as other,
            httpx.AsyncClient() as client,
        ):
            body = message("tools/call", CALL)
            found = [
                await client.post(own.address("shop"), json=body, headers=headers)
                for headers in (other.headers, {}, {"Authorization": own.token})
            ]
            assert calls(session) == []
            return [response.status_code for response in found]

    assert asyncio.run(run()) == [401, 401, 401]


def test_call_after_the_end__is_not_answered() -> None:
    async def run() -> None:
        session = shop_session()
        async with httpx.AsyncClient() as client:
            async with serve_tools(session) as access:
                assert (await ask(client, access, message("tools/call", CALL))).status == 200
            with pytest.raises(httpx.ConnectError):
                await ask(client, access, message("tools/call", CALL))
        assert calls(session) == [("mcp__shop__find_order", {"id": 2077})]

    asyncio.run(run())


def test_agent_that_sends_too_much__is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    body = message("tools/call", CALL)
    monkeypatch.setattr(mcp, "MAX_TOTAL", 3 * len(json.dumps(body)))

    async def run() -> None:
        async with serve_tools(shop_session()) as access, httpx.AsyncClient() as client:
            url, data = access.address("shop"), json.dumps(body)
            sent = [await client.post(url, content=data, headers=access.headers) for _ in "12345"]
            assert [response.status_code for response in sent] == [200, 200, 200, 413, 413]
            assert "the agent has sent more than" in sent[-1].text

    asyncio.run(run())


@pytest.mark.parametrize("mode", ["auto", "legacy", MODERN])
def test_client_of_the_sdk__lists_and_calls(mode: Any) -> None:
    async def run() -> None:
        async with (
            serve_tools(shop_session()) as access,
            httpx2.AsyncClient(headers=access.headers) as http,
            Client(
                streamable_http_client(access.address("shop"), http_client=http), mode=mode
            ) as client,
        ):
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == ["find_order", "refund"]
            called = await client.call_tool("find_order", {"id": 1})
            assert called.structured_content == ORDER
            refused = await client.call_tool("refund", {})
            assert refused.is_error
            with pytest.raises(MCPError, match="Unknown tool: nosuch"):
                await client.call_tool("nosuch", {})

    asyncio.run(run())


def test_many_samples_at_once__each_get_their_own_answers() -> None:
    async def sample(number: int) -> bool:
        session = shop_session()
        async with serve_tools(session) as access, httpx.AsyncClient() as client:
            call = {"name": "find_order", "arguments": {"id": number}}
            for _ in range(4):
                assert (await ask(client, access, message("tools/call", call))).status == 200
        return calls(session) == [("mcp__shop__find_order", {"id": number})] * 4

    async def run() -> list[bool]:
        return await asyncio.gather(*map(sample, range(50)))

    assert asyncio.run(run()) == [True] * 50
