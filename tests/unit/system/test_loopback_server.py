"""The HTTP server on the loopback: requests in each form that a client may send."""

import asyncio
from urllib.parse import urlsplit

import pytest

from agentevals_action.system.loopback_server import (
    MAX_HEAD,
    HttpAnswer,
    HttpRequest,
    LoopbackServer,
    RefusedRequest,
)


def exchange(sent: bytes) -> bytes:
    """What a server that repeats a body replies to these bytes."""

    async def repeat(request: HttpRequest) -> HttpAnswer:
        return HttpAnswer(request.body)

    def refuse(error: RefusedRequest) -> HttpAnswer:
        return HttpAnswer(str(error).encode(), status=error.status)

    async def run() -> bytes:
        server = LoopbackServer(lambda _: None, repeat, refuse, 100)
        async with server.listen() as url:
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
            writer.write(sent)
            reply = await reader.read()
            writer.close()
            return reply

    return asyncio.run(run())


def post(headers: str, body: bytes = b"") -> bytes:
    return f"POST /x?y=1 HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (post("Content-Length: 4", b"body"), 200),
        (post("Transfer-Encoding: chunked", b"4\r\nbody\r\n0\r\n\r\n"), 200),
        (post("Transfer-Encoding: chunked", b"-1\r\n"), 400),
        (post("Content-Length: 101", b"x" * 101), 413),
        (post(f"X: {'x' * 3 * MAX_HEAD}"), 431),
        (b"hello\r\n\r\n", 400),
        (post("Content-Length: 4\r\nExpect: 100-continue", b"body"), 100),
    ],
)
def test_request__gets_its_status(sent: bytes, status: int) -> None:
    reply = exchange(sent)
    assert int(reply.split()[1]) == status
    assert reply.endswith(b"body") or status not in (100, 200)
