"""Requests and replies of an `HttpClient`, and the reuse of its connections."""

import asyncio
import gzip
import threading
import zlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.targets.http.client import REPLY_LIMIT, HttpClient, HttpReply
from agentevals_action.targets.http.errors import Service
from tests.support.raw_server import Connection, RawServer, Script, replies, reply

HI = reply()


T = TypeVar("T")


def during(server: RawServer, use: Callable[[HttpClient], Awaitable[T]], path: str = "") -> T:
    async def used() -> T:
        client = HttpClient(Service(url=f"{server.url}{path}/", key_hint=""))
        try:
            return await use(client)
        finally:
            await client.close()

    return asyncio.run(used())


async def ask(client: HttpClient, content: bytes = b"{}", timeout: float = 30) -> HttpReply:
    return await client.send("POST", "ask", content, timeout)


def answered(script: Script) -> bytes:
    with RawServer(script) as server:
        return during(server, ask).body


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


def test_request__a_url_of_another_server_is_not_asked() -> None:
    with (
        RawServer(replies(HI)) as server,
        pytest.raises(AttemptError, match="leads to another server"),
    ):
        during(server, lambda client: client.send("GET", "http://127.0.0.2/", None, 30))
    assert server.connections == 0


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


BODY = b'{"said": "' + b"hi" * 1000 + b'"}'


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(BODY)),
        ("deflate", zlib.compress(BODY)),
        ("deflate", zlib.compress(BODY, wbits=-15)),
        ("identity", BODY),
    ],
    ids=["gzip", "zlib", "bare", "as it is"],
)
def test_reply__packed(encoding: str, body: bytes) -> None:
    assert answered(replies(reply(body, f"Content-Encoding: {encoding}"))) == BODY


@pytest.mark.parametrize(
    ("encoding", "make_body", "words"),
    [
        ("br", lambda: BODY, "which was not requested"),
        ("gzip, gzip", lambda: gzip.compress(gzip.compress(BODY)), "which was not requested"),
        ("gzip", lambda: BODY, "the reply cannot be read: Error -3 while decompressing"),
        ("deflate", lambda: BODY, "the reply cannot be read: Error -3 while decompressing"),
        ("gzip", lambda: gzip.compress(b"0" * 200_000_000, 1), "the reply is over 10 MB"),
        ("deflate", lambda: zlib.compress(b"0" * (REPLY_LIMIT + 1)), "the reply is over 10 MB"),
        ("identity", lambda: b"0" * (REPLY_LIMIT + 1), "the reply is over 10 MB"),
    ],
    ids=[
        "unknown",
        "twice",
        "not packed",
        "not packed either",
        "a bomb",
        "just over",
        "large as it is",
    ],
)
def test_reply__that_cannot_be_unpacked(
    encoding: str, make_body: Callable[[], bytes], words: str
) -> None:
    error = failed(replies(reply(make_body(), f"Content-Encoding: {encoding}")))
    assert error.kind == "target"
    assert words in str(error)


def test_refusal__that_cannot_be_unpacked_is_still_one() -> None:
    error = failed(replies(reply(b"x", "Content-Encoding: br", status="503 Busy")), TransientError)
    assert 'answered 503: the reply is compressed with "br", which was not requested' in str(error)


def test_refusal__without_a_body_is_told_by_its_reason() -> None:
    assert "answered 400: Too Shy" in str(failed(replies(reply(b"", status="400 Too Shy"))))
    assert "answered 400: Bad Request" in str(failed(replies(reply(b"", status="400 "))))


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


def test_send__an_event_stream_that_stays_open_ends_with_done() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    with RawServer(replies(head + b"data: hi\n\ndata: [DONE]\n\n")) as server:
        found = during(server, ask)
    assert (found.body, found.is_event_stream) == (b"data: hi\n\ndata: [DONE]\n\n", True)
