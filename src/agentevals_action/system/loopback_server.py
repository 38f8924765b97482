"""HTTP servers on the loopback for child processes, each with a token of its own."""

import asyncio
import hmac
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus

#: Bytes of a request's head, and of a line of a chunked body.
MAX_HEAD = 64 * 1024

_HOST = "127.0.0.1"
#: Turns of the event loop in which it accepts a connection that waits in the socket's queue.
_ACCEPT_TURNS = 10
#: Bodies that are read at once: a child with many connections would fill the memory.
_READERS = 4
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")


@dataclass(frozen=True)
class HttpRequest:
    """A request: its path without the query, names of headers in lower case, the body as sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class HttpAnswer:
    """An answer with its complete body."""

    body: bytes = b""
    content_type: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


class RefusedRequest(Exception):
    """A request that gets an error status; the message is for the client."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def is_token(given: str, token: str) -> bool:
    """Whether a header has the token, in a time that does not depend on the difference."""
    return hmac.compare_digest(given.encode(), token.encode())


@dataclass(frozen=True)
class LoopbackServer:
    """A running server. `check` is called with the head of a request, before its body is read;
    `answer` with the complete request; `refuse` gives the answer for a RefusedRequest of either.
    A body has up to `max_body` bytes."""

    check: Callable[[HttpRequest], None]
    answer: Callable[[HttpRequest], Awaitable[HttpAnswer]]
    refuse: Callable[[RefusedRequest], HttpAnswer]
    max_body: int
    _connections: set[asyncio.Task[None]] = field(default_factory=set)
    _reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_READERS))

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[str]:
        """Listens on a free port and returns the URL, without a slash at the end; at the end it
        closes all connections. OSError if no port can be opened."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._serve(reader, writer))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            task.add_done_callback(lambda _: writer.transport.abort())
            if not server.is_serving():
                task.cancel()

        server = await asyncio.start_server(accept, _HOST, 0, limit=MAX_HEAD)
        try:
            yield f"http://{_HOST}:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def settle(self, seconds: float) -> None:
        """Waits until the requests that were sent are answered, up to `seconds`: another process
        may hold a connection open."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for _ in range(_ACCEPT_TURNS):
                    await asyncio.sleep(0)
                while self._connections:
                    await asyncio.wait(self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the one request of a connection. A slow client needs no time limit: all
        connections end with the server."""
        # The client may disconnect: nobody waits for the answer.
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                answer = await self.answer(await self._read(reader, writer))
            except RefusedRequest as error:
                answer = self.refuse(error)
            headers = {
                "Content-Type": answer.content_type,
                "Connection": "close",
                **answer.headers,
                "Content-Length": str(len(answer.body)),
            }
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            status = f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
            writer.write(f"{status}{lines}\r\n".encode("ascii") + answer.body)
            await writer.drain()
            # A connection that is closed with unread bytes is reset, and the client loses the
            # answer.
            writer.write_eof()
            while await reader.read(MAX_HEAD):
                pass

    async def _read(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> HttpRequest:
        request = await _read_head(reader)
        self.check(request)
        if request.headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await writer.drain()
        async with self._reading:
            body = await self._read_body(request.headers, reader)
        return HttpRequest(request.method, request.path, request.headers, body)

    async def _read_body(self, headers: Mapping[str, str], reader: asyncio.StreamReader) -> bytes:
        coding = headers.get("transfer-encoding")
        if coding is None:
            return await reader.readexactly(self._length(headers))
        if coding.lower() != "chunked":
            raise RefusedRequest(HTTPStatus.NOT_IMPLEMENTED, "send a Content-Length")
        return await self._read_chunks(reader)

    def _length(self, headers: Mapping[str, str]) -> int:
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, "Content-Length is not a valid number")
        if len(length) > len(str(self.max_body)) or int(length) > self.max_body:
            raise self._too_large()
        return int(length)

    async def _read_chunks(self, reader: asyncio.StreamReader) -> bytes:
        body = bytearray()
        while True:
            size = (await _read_line(reader)).partition(b";")[0].strip()
            if not _CHUNK_SIZE.fullmatch(size):
                raise RefusedRequest(HTTPStatus.BAD_REQUEST, "a chunk has no valid size")
            if len(body) + int(size, 16) > self.max_body:
                raise self._too_large()
            if int(size, 16) == 0:
                break
            body += await reader.readexactly(int(size, 16))
            if await reader.readexactly(2) != b"\r\n":
                raise RefusedRequest(HTTPStatus.BAD_REQUEST, "a chunk is longer than its size")
        while await _read_line(reader) != b"\r\n":  # trailers
            pass
        return bytes(body)

    def _too_large(self) -> RefusedRequest:
        message = f"the body is longer than {self.max_body} bytes"
        return RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)


async def _read_head(reader: asyncio.StreamReader) -> HttpRequest:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        raise RefusedRequest(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the head is longer than {MAX_HEAD} bytes"
        ) from None
    first, *lines = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise RefusedRequest(HTTPStatus.BAD_REQUEST, "this is not an HTTP/1.1 request")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return HttpRequest(words[0], words[1].partition("?")[0], headers)


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n")
    except asyncio.LimitOverrunError:
        message = f"a line of the body is longer than {MAX_HEAD} bytes"
        raise RefusedRequest(HTTPStatus.BAD_REQUEST, message) from None
