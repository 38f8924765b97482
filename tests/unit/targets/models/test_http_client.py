"""Requests and replies of an `HttpClient`, and the reuse of its connections."""

import asyncio
import gzip
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace
from agentevals_action.targets.models.errors import Service
from agentevals_action.targets.models.http_client import (
    REPLY_LIMIT,
    HttpClient,
    HttpReply,
    encode,
)
from tests.support.raw_server import Connection, RawServer, Script, replies, reply

HI = reply()


T = TypeVar("T")


def during(server: RawServer, use: Callable[[HttpClient], Awaitable[T]], path: str = "") -> T:
    async def used() -> T:
        client = HttpClient(Service(url=f"{server.url}{path}/ask", key_hint=""))
        try:
            return await use(client)
        finally:
            await client.close()

    return asyncio.run(used())


async def ask(client: HttpClient, content: bytes = b"{}", timeout: float = 30) -> HttpReply:
    return await client.send("POST", content, timeout)


def failed(script: Script, kind: type[AttemptError] = AttemptError) -> AttemptError:
    with RawServer(script) as server, pytest.raises(AttemptError) as caught:
        during(server, ask)
    assert type(caught.value) is kind
    return caught.value


async def twice(client: HttpClient) -> None:
    for _ in range(2):
        await ask(client)


async def thrice(client: HttpClient) -> list[bytes]:
    return [(await ask(client)).body for _ in range(3)]


def test_connection__is_kept_for_the_next_request() -> None:
    with RawServer(replies(reply(b"1"), reply(b"2"), reply(b"3"))) as server:
        assert during(server, thrice) == [b"1", b"2", b"3"]
        server.wait_closed()
    assert server.connections == 1


def test_connection__one_for_each_request_at_once() -> None:
    meeting = threading.Barrier(3)

    def script(connection: Connection) -> None:
        while connection.request():
            meeting.wait(30)
            connection.send(HI)

    async def twice_three(client: HttpClient) -> None:
        for _ in range(2):
            await asyncio.gather(ask(client), ask(client), ask(client))

    with RawServer(script) as server:
        during(server, twice_three)
    assert (server.connections, len(server.requests)) == (3, 6)


def test_cookies__of_one_call_are_not_sent_with_the_next() -> None:
    script = replies(reply(b"hi", "Set-Cookie: session=1; Path=/"), HI)
    with RawServer(script) as server:
        during(server, twice)
    assert [("cookie" in asked.headers) for asked in server.requests] == [False, False]


def test_connection__closed_without_a_reply_is_worth_repeating_and_not_repeated_here() -> None:
    def script(connection: Connection) -> None:
        connection.request()
        connection.send(HI)
        connection.request()

    async def twice(client: HttpClient) -> None:
        await ask(client)
        with pytest.raises(TransientError, match="Server disconnected without sending a response"):
            await ask(client)
        assert (await ask(client)).body == b"hi"

    with RawServer(script) as server:
        during(server, twice)
    assert (server.connections, len(server.requests)) == (2, 3)


BOMB = gzip.compress(bytes(2 * REPLY_LIMIT), 1)


@pytest.mark.parametrize(
    ("encoding", "body", "words"),
    [
        ("br", b"{}", 'compressed with "br", which was not requested'),
        ("gzip", b"{}", "the reply cannot be read: Error -3 while decompressing"),
        ("gzip", BOMB, "the reply is over 10 MB"),
        ("identity", b"0" * (REPLY_LIMIT + 1), "the reply is over 10 MB"),
    ],
    ids=["unknown", "not packed", "a bomb", "large"],
)
def test_reply__that_cannot_be_unpacked(encoding: str, body: bytes, words: str) -> None:
    error = failed(replies(reply(body, f"Content-Encoding: {encoding}")))
    assert error.kind == "target"
    assert words in str(error)


def test_refusal__that_cannot_be_unpacked_is_still_one() -> None:
    error = failed(replies(reply(b"x", "Content-Encoding: br", status="503 Busy")), TransientError)
    assert 'answered 503: the reply is compressed with "br", which was not requested' in str(error)


def test_redirect__is_not_followed() -> None:
    with RawServer(replies(HI)) as other:
        moved = reply(b"moved", f"Location: {other.url}/", status="307 Moved")
        assert "answered 307: moved" in str(failed(replies(moved)))
    assert other.connections == 0


def post(server: RawServer, body: Any, **fields: Any) -> Trace:
    async def posted() -> Trace:
        url = f"{server.url}/v1/a/b%20c?d=e"
        client = HttpClient(Service(**{"url": url, "key_hint": "", **fields}))
        try:
            return await client.ask("POST", encode(body), 30, read)
        finally:
            await client.close()

    def read(reply: HttpReply) -> Trace:
        return Trace((Message("assistant", reply.json()["text"]),))

    return asyncio.run(posted())


def test_ask__json_in_both_directions_and_the_cost_in_a_header() -> None:
    answer = reply(b'{"text": "hi"}', "x-litellm-response-cost: 0.25")
    with RawServer(replies(answer)) as server:
        found = post(server, {"ä": ["\ud800", 1.5]}, headers={"X-Key": "k"})
    assert (found.output, found.usage.cost_usd) == ("hi", 0.25)
    (received,) = server.requests
    assert received.line == "POST /v1/a/b%20c?d=e HTTP/1.1"
    assert json.loads(received.body) == {"ä": ["?", 1.5]}
    assert (received.headers["content-type"], received.headers["x-key"]) == (
        "application/json",
        "k",
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [(b"<html>", ""), (b"[" * 100_000, ".*nested more than 200 levels")],
    ids=["text", "too deep"],
)
def test_ask__a_reply_that_is_no_json(body: bytes, words: str) -> None:
    with (
        RawServer(replies(reply(body))) as server,
        pytest.raises(AttemptError, match=f"the reply is not valid JSON{words}"),
    ):
        post(server, {})


@pytest.mark.parametrize("key", ["sk-0123\n456", "sk-0123456789ü"])
def test_ask__a_key_that_cannot_be_sent(key: str) -> None:
    problem = "the key has characters that no header can"
    with (
        RawServer(replies(HI)) as server,
        pytest.raises(AttemptError, match=problem) as caught,
    ):
        post(server, {}, headers={"X-Key": key})
    assert (caught.value.kind, server.connections) == ("configuration", 0)
    assert "sk-" not in caught.value.sentence


@pytest.mark.parametrize("url", ["socks5://me:hush@127.0.0.1:1080", "http://me:hush@a:hush"])
def test_proxy__that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("ALL_PROXY", url)
    with (
        RawServer(replies(HI)) as server,
        pytest.raises(AttemptError, match="HTTPS_PROXY or ALL_PROXY names cannot be") as caught,
    ):
        post(server, {})
    assert caught.value.kind == "configuration"
    assert "hush" not in caught.value.sentence


@pytest.mark.parametrize(
    "begun",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi"],
    ids=["nothing came", "half came"],
)
def test_time_limit__closes_the_connection_and_the_next_is_a_new_one(begun: bytes) -> None:
    def script(connection: Connection) -> None:
        asked = connection.request()
        connection.send(begun if asked.body == b"slow" else HI)
        connection.until_closed()

    async def both(client: HttpClient) -> None:
        with pytest.raises(AttemptError, match=r"no answer within 0\.2 s") as caught:
            await ask(client, b"slow", 0.2)
        assert caught.value.kind == "timeout"
        await asyncio.to_thread(server.wait_closed)
        assert (await ask(client)).body == b"hi"

    with RawServer(script) as server:
        during(server, both)
    assert server.connections == 2


def test_cancellation__closes_the_connection_and_the_next_is_a_new_one() -> None:
    arrived = threading.Event()

    def script(connection: Connection) -> None:
        if connection.request().body == b"slow":
            arrived.set()
        else:
            connection.send(HI)
        connection.until_closed()

    async def both(client: HttpClient) -> None:
        call = asyncio.create_task(ask(client, b"slow"))
        await asyncio.to_thread(arrived.wait, 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(server.wait_closed)
        assert (await ask(client)).body == b"hi"

    with RawServer(script) as server:
        during(server, both)
    assert server.connections == 2
