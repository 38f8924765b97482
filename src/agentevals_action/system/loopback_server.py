"""HTTP servers on the loopback for child processes, each with a token of its own."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus

import h11

#: Bytes of a request's head, and of one read from a connection.
MAX_HEAD = 64 * 1024

_HOST = "127.0.0.1"
#: Turns of the event loop in which it accepts a connection that waits in the socket's queue.
_ACCEPT_TURNS = 10
#: Bodies that are read at once: a child with many connections would fill the memory.
_READERS = 4


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

        server = await asyncio.start_server(accept, _HOST, 0)
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
        protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        with suppress(ConnectionError):  # the client may disconnect: nobody waits for the answer
            try:
                answer = await self.answer(await self._read(protocol, reader, writer))
            except RefusedRequest as error:
                answer = self.refuse(error)
            headers = {
                "Content-Type": answer.content_type,
                "Connection": "close",
                **answer.headers,
                "Content-Length": str(len(answer.body)),
            }
            head = h11.Response(
                status_code=answer.status,
                headers=list(headers.items()),
                reason=answer.status.phrase.encode(),
            )
            for event in (head, h11.Data(answer.body), h11.EndOfMessage()):
                writer.write(protocol.send(event) or b"")
            await writer.drain()
            writer.write_eof()
            # A connection that is closed with unread bytes is reset, and the answer is lost.
            while await reader.read(MAX_HEAD):
                pass

    async def _read(
        self, protocol: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> HttpRequest:
        head = await _next_event(protocol, reader)
        if not isinstance(head, h11.Request):
            raise ConnectionResetError
        method, target = head.method.decode("ascii"), head.target.decode("latin-1")
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        request = HttpRequest(method, target.partition("?")[0], headers)
        self.check(request)
        body = bytearray()
        async with self._reading:
            if protocol.they_are_waiting_for_100_continue:
                asked = h11.InformationalResponse(status_code=100, headers=[])
                writer.write(protocol.send(asked) or b"")
            while isinstance(data := await _next_event(protocol, reader), h11.Data):
                body += data.data
                if len(body) > self.max_body:
                    message = f"the body is longer than {self.max_body} bytes"
                    raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        return replace(request, body=bytes(body))


async def _next_event(protocol: h11.Connection, reader: asyncio.StreamReader) -> object:
    """The next event of a request. RefusedRequest for what is not HTTP, ConnectionError at the
    end."""
    while True:
        try:
            event = protocol.next_event()
        except h11.RemoteProtocolError as error:
            raise RefusedRequest(HTTPStatus(error.error_status_hint), str(error)) from None
        if event is not h11.NEED_DATA:
            return event
        if not (data := await reader.read(MAX_HEAD)):
            raise ConnectionResetError
        protocol.receive_data(data)
