"""Requests and replies of an `HttpClient`, and the reuse of its connections."""

import asyncio
import gzip
import re
import socket
import threading
import zlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.targets.apis.http_client import REPLY_LIMIT, HttpClient, HttpReply
from agentevals_action.targets.apis.http_errors import Service
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


def test_request__as_it_is_written() -> None:
    with RawServer(replies(HI, HI)) as server:

        async def both(client: HttpClient) -> None:
            await client.send("GET", "/a b/%20/ü?q=1 2#part", None, 30)
            await client.send("PUT", "x", None, 30, {"accept": "text/plain"})

        during(server, both, "/v1")
    got, put = server.requests
    assert got.line == "GET /v1/a%20b/%20/%C3%BC?q=1%202 HTTP/1.1"
    assert got.headers["host"] == server.netloc
    assert got.headers["accept-encoding"] == "gzip, deflate"
    assert "content-length" not in got.headers
    assert (put.headers["content-length"], put.headers["accept"]) == ("0", "text/plain")


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


@pytest.mark.parametrize("in_loop", [True, False], ids=["before the loop knows", "while idle"])
def test_connection__that_the_server_closed_is_not_used(in_loop: bool) -> None:
    def script(connection: Connection) -> None:
        connection.request()
        connection.send(HI)

    async def asked(client: HttpClient) -> None:
        await ask(client)
        if in_loop:
            server.wait_closed()
        else:
            await asyncio.to_thread(server.wait_closed)
        await ask(client)

    with RawServer(script) as server:
        during(server, asked)
    assert (server.connections, len(server.requests)) == (2, 2)


@pytest.mark.parametrize(
    "ending",
    [
        reply(b"hi", "Connection: close"),
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ],
    ids=["told", "HTTP/1.0"],
)
def test_connection__that_the_server_will_close_is_not_used(ending: bytes) -> None:
    with RawServer(replies(ending, ending)) as server:
        assert during(server, thrice) == [b"hi"] * 3
    assert server.connections == 3


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


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"


def test_reply__in_chunks_and_again() -> None:
    with RawServer(replies(CHUNKED, CHUNKED, CHUNKED)) as server:
        assert during(server, thrice) == [b"hello"] * 3
    assert server.connections == 1


def test_reply__byte_by_byte() -> None:
    def script(connection: Connection) -> None:
        connection.request()
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        for byte in CHUNKED:
            connection.send(bytes([byte]))
        connection.until_closed()

    assert answered(script) == b"hello"


def test_reply__until_the_connection_closes() -> None:
    def script(connection: Connection) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\nhel")
        connection.send(b"lo")

    assert answered(script) == b"hello"


def test_reply__after_replies_that_are_not_yet_one() -> None:
    assert (
        answered(
            replies(
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + HI
            )
        )
        == b"hi"
    )


def test_reply__before_all_of_the_request_was_taken() -> None:
    def script(connection: Connection) -> None:
        connection.socket.recv(1024)
        connection.send(reply(b"enough", status="413 Content Too Large"))
        connection.until_closed()

    async def much(client: HttpClient) -> None:
        with pytest.raises(AttemptError, match="answered 413: enough"):
            await ask(client, b"x" * 30_000_000)

    with RawServer(script) as server:
        during(server, much)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "Server disconnected without sending a response"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "Server disconnected without sending a response"),
        (b"HTTP/1.1 200 OK\r\nContent-", "Server disconnected without sending a response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi", "received 2 bytes, expected 10"),
        (CHUNKED[:-6], "peer unexpectedly closed connection"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "illegal status line"),
        (b"HTTP/1.1 " + b"x" * 50_000 + b"\r\n\r\n", "illegal status line"),
        (
            b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\nhi",
            "Receive buffer too long",
        ),
        (
            b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 50_000 + b"\r\nhi",
            "Receive buffer too long",
        ),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "Received server _SWITCH_UPGRADE event"),
    ],
    ids=[
        "nothing",
        "not yet",
        "head cut",
        "body cut",
        "chunks cut",
        "another protocol",
        "long status",
        "long header",
        "many headers",
        "protocol switched",
    ],
)
def test_reply__that_is_no_whole_one_is_worth_repeating(data: bytes, words: str) -> None:
    def script(connection: Connection) -> None:
        connection.request()
        connection.send(data)

    error = failed(script, TransientError)
    assert re.match(r"the connection to 127\.0\.0\.1:\d+ failed: ", str(error))
    assert words in str(error)
    assert len(str(error)) <= 500


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


def test_reply__packed_and_empty() -> None:
    assert answered(replies(reply(b"", "Content-Encoding: gzip"))) == b""


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


def test_reply__as_large_as_it_may_be() -> None:
    assert (
        len(answered(replies(reply(gzip.compress(b"0" * REPLY_LIMIT), "Content-Encoding: gzip"))))
        == REPLY_LIMIT
    )


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


def test_address__of_ipv6() -> None:
    try:
        server = RawServer(replies(HI), host="::1")
    except OSError:
        pytest.skip("there is no IPv6 here")
    with server:
        assert during(server, ask).body == b"hi"
    assert server.requests[0].headers["host"] == server.netloc == f"[::1]:{server.port}"


def test_address__with_a_password_is_asked_with_it() -> None:
    with RawServer(replies(HI)) as server:

        async def asked() -> None:
            client = HttpClient(
                Service(
                    url=server.url.replace("//", "//me:h%40sh@"),
                    key_hint="",
                    headers={"Authorization": "Bearer k"},
                )
            )
            await ask(client)
            await client.close()

        asyncio.run(asked())
    (only,) = server.requests
    assert (only.headers["authorization"], only.headers["host"]) == (
        "Basic bWU6aEBzaA==",
        server.netloc,
    )
