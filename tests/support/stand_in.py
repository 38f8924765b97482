"""A stand-in for a vendor's server, on loopback: scripted replies first, then what the vendor's
part makes of a request."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Received:
    """A request as it came in; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Sent:
    """One reply: `body` is JSON, or bytes that go out as they are. `drop` closes the connection
    without one; `hold` keeps the client waiting until the server is closed."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    hold: bool = False


class StandIn:
    """`with SomeServer(...) as server:` then `server.url` and `server.requests`. `script` answers
    the first requests, in order of arrival."""

    def __init__(self, script: Sequence[Sent] = ()) -> None:
        self.requests: list[Received] = []
        self._script = list(script)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = False
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, received: Received) -> Sent:
        with self._lock:
            self.requests.append(received)
            scripted = self._script.pop(0) if self._script else None
        reply = scripted or self.reply(received)
        if reply.hold:
            self._closing.wait()
        return reply

    def reply(self, received: Received) -> Sent:
        """What the vendor says to a request."""
        raise NotImplementedError


def _handler(server: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = (
            True  # or the body of a reply waits for the head to be acknowledged: 40 ms
        )
        timeout = 30

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            reply = server.answer(
                Received(
                    self.path,
                    {name.lower(): value for name, value in self.headers.items()},
                    json.loads(data),
                )
            )
            self.close_connection = True
            if reply.drop or reply.hold:
                return
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            headers = {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                "Connection": "close",
                **reply.headers,
            }
            self.send_response(reply.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: a test's output is its own."""

    return Handler
