"""A stand-in for an agent behind a service, on loopback: it keeps what it was asked and answers by
script, or what a test computes."""

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Asked:
    """A request as it came in: `target` is path and query, header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body decoded."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """One answer: text and bytes go out as they are, anything else as JSON. `hold` keeps the client
    waiting until the server closes."""

    body: Any = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hold: bool = False

    def data(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class AgentServer:
    """`with AgentServer(reply) as server:` then `server.url` and `server.requests`.

    `reply` is given to every request that `script` has no answer for, or is a function of the
    request. With `key` every other bearer token is refused."""

    def __init__(
        self,
        reply: Answer | Callable[[Asked], Any] | Any = "hello",
        *,
        script: Sequence[Answer] = (),
        key: str = "",
    ) -> None:
        self.requests: list[Asked] = []
        self._reply = reply
        self._script = list(script)
        self._key = key
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = False
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )

    @classmethod
    def matching(cls, replies: Mapping[str, str]) -> "AgentServer":
        """Answers by the first pattern that is found in the `prompt` of a JSON body; any other is
        refused."""

        def chosen(asked: Asked) -> Answer:
            found = (
                reply
                for pattern, reply in replies.items()
                if re.search(pattern, asked.json["prompt"])
            )
            return next(
                (Answer(reply) for reply in found),
                Answer("the stand-in has no answer to this", status=400),
            )

        return cls(chosen)

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

    def answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.requests.append(asked)
            scripted = self._script.pop(0) if self._script else None
        if (
            scripted is None
            and self._key
            and asked.headers.get("authorization") != f"Bearer {self._key}"
        ):
            scripted = Answer({"error": {"message": "who are you?"}}, status=401)
        reply = scripted or (self._reply(asked) if callable(self._reply) else self._reply)
        answer = reply if isinstance(reply, Answer) else Answer(reply)
        if answer.hold:
            self._closing.wait()
        return answer


def _handler(server: AgentServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = (
            True  # or the body of a reply waits for the head to be acknowledged: 40 ms
        )
        timeout = 30

        def _any(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            asked = Asked(
                self.command,
                self.path,
                {name.lower(): value for name, value in self.headers.items()},
                data,
            )
            answer = server.answer(asked)
            self.close_connection = True
            if answer.hold:
                return
            body = answer.data()
            self.send_response(answer.status)
            for name, value in {
                "Content-Length": str(len(body)),
                "Connection": "close",
                **answer.headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: a test's output is its own."""

    return Handler
