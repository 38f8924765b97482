"""An HTTP server on loopback that replaces a vendor's server or an agent: scripted replies first,
then injected failures, then the replies of a subclass."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import unquote, urlsplit

from tests.support.loopback import LoopbackServer, QuietHandler


@dataclass(frozen=True)
class Received:
    """A request: `path` with its query, header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    data: bytes

    @property
    def body(self) -> Any:
        """The data as JSON."""
        return json.loads(self.data)

    @property
    def route(self) -> str:
        """The method and the path without the query."""
        return f"{self.method} {unquote(urlsplit(self.path).path)}"


@dataclass(frozen=True)
class Sent:
    """One reply: `body` is JSON, or bytes that are sent unchanged. `drop` closes the connection
    without a reply; `hold` keeps the client waiting until the server is closed."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    hold: bool = False

    def data(self, received: Received) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class InjectedFailure:
    """What goes wrong `times` times where `route` (a regular expression over `METHOD /path`) is
    found. `body` is JSON or a text, by default an error with the `message`.

    With `after_write` the request is done before the reply goes wrong; `status` 0 closes the
    connection without a reply, and -1 never replies."""

    route: str
    status: int
    times: int = 1
    message: str = "Server Error"
    headers: Mapping[str, str] = field(default_factory=dict)
    after_write: bool = False
    body: Any = None

    def reply(self) -> Sent:
        """What the client gets."""
        body = {"message": self.message} if self.body is None else self.body
        body = body.encode() if isinstance(body, str) else body
        return Sent(body, self.status, self.headers, drop=self.status == 0, hold=self.status < 0)


Request = TypeVar("Request", bound=Received)
Reply = TypeVar("Reply", bound=Sent)


class StandIn(LoopbackServer, Generic[Request, Reply]):
    """`with SomeServer(...) as server:` then `server.url` and `server.requests`. `script` answers
    the first requests in the order of arrival."""

    request_type: ClassVar[type[Received]] = Received

    def __init__(self, script: Sequence[Reply] = ()) -> None:
        self.requests: list[Request] = []
        self._script = list(script)
        self._injected: list[InjectedFailure] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        super().__init__(_handler(self))
        self._server.daemon_threads = False

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        super().__exit__(*error)

    def break_route(self, injected: InjectedFailure) -> None:
        """Failures of a route come in the order they were given."""
        self._injected.append(injected)

    def routes(self, pattern: str = "") -> list[str]:
        """The routes of the requests that came, in which a regular expression is found."""
        return [request.route for request in self.requests if re.search(pattern, request.route)]

    def answer(self, received: Request) -> Sent:
        with self._lock:
            self.requests.append(received)
            scripted = self._script.pop(0) if self._script else None
        reply = scripted or self._fail(received) or self.reply(received)
        if reply.hold:
            self._closing.wait()
        return reply

    def _fail(self, received: Request) -> Sent | None:
        for failure in self._injected:
            if failure.times > 0 and re.search(failure.route, received.route):
                failure.times -= 1
                if failure.after_write:
                    self.reply(received)
                return failure.reply()
        return None

    def reply(self, received: Request) -> Reply:
        """The reply to a request."""
        raise NotImplementedError


def _handler(server: StandIn[Any, Any]) -> type[QuietHandler]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"
        # Otherwise the body of a reply waits 40 ms for the acknowledgement of the head.
        disable_nagle_algorithm = True
        timeout = 30

        def _reply(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            names = {name.lower(): value for name, value in self.headers.items()}
            received = server.request_type(self.command, self.path, names, data)
            reply = server.answer(received)
            self.close_connection = True
            if reply.drop or reply.hold:
                return
            body = reply.data(received)
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

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _reply

    return Handler
