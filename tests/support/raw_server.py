"""A server that sends the bytes of a test and counts connections."""

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

TIMEOUT = 30  # seconds that a test may hang before it fails


@dataclass(frozen=True)
class Request:
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


class Connection:
    """One connection, from the server's side."""

    def __init__(self, server: "RawServer", connection: socket.socket) -> None:
        self._server, self.socket = server, connection
        self._ahead = b""

    def request(self) -> Request:
        """Waits for a request and keeps it; ConnectionError when the client closes instead."""
        while (end := self._ahead.find(b"\r\n\r\n")) < 0:
            self._more()
        first, *lines = self._ahead[:end].decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        self._ahead = self._ahead[end + 4 :]
        length = int(headers.get("content-length", 0))
        while len(self._ahead) < length:
            self._more()
        asked = Request(first, headers, self._ahead[:length])
        self._ahead = self._ahead[length:]
        self._server.requests.append(asked)
        return asked

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the client closed it")
        self._ahead += data

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def until_closed(self) -> None:
        """Waits for the client to close it."""
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(65536):
                pass


Script = Callable[[Connection], None]


def replies(*replies: bytes) -> Script:
    """Answers the requests of each connection with these replies in turn, then waits for the client
    to close it."""

    def script(connection: Connection) -> None:
        for reply in replies:
            connection.request()
            connection.send(reply)
        connection.until_closed()

    return script


def reply(body: bytes = b"hi", *headers: str, status: str = "200 OK") -> bytes:
    return (
        "\r\n".join(
            [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        ).encode()
        + body
    )


class RawServer:
    """`with RawServer(script) as server:`; `script` is called for each connection, in a thread of its
    own. `closed` counts those that are over, whoever closed them."""

    def __init__(self, script: Script) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.closed = threading.Semaphore(0)
        self._script = script
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(TIMEOUT)
        self._socket.close()

    def wait_closed(self) -> None:
        assert self.closed.acquire(timeout=TIMEOUT), "the connection was not closed"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # the server was shut down
                return
            self.connections += 1
            connection.settimeout(TIMEOUT)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, accepted: socket.socket) -> None:
        connection = Connection(self, accepted)
        try:
            with contextlib.suppress(ConnectionError):
                self._script(connection)
        finally:
            connection.socket.close()
            self.closed.release()
