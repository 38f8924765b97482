"""A stand-in for an OpenAI-compatible server, on loopback: scripted failures first, then answers by pattern."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, "prompt_tokens_details": {"cached_tokens": 3}}


@dataclass(frozen=True)
class Received:
    """A request as it came in; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def prompt(self) -> str:
        """The text of the last user message."""
        content = next(message["content"] for message in reversed(self.body["messages"]) if message["role"] == "user")
        return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


@dataclass(frozen=True)
class Reply:
    """One answer. `drop` closes the connection without one; `hold` keeps the client waiting until the server is closed; `body` goes
    out as it is, else a completion is made from `text` and `message`."""

    text: str = ""
    message: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str = "stop"
    usage: Mapping[str, Any] | None = field(default_factory=lambda: USAGE)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    drop: bool = False
    hold: bool = False


def failure(status: int, message: str, code: str | None = None, headers: Mapping[str, str] | None = None) -> Reply:
    """A refusal in OpenAI's shape."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return Reply(status=status, body={"error": error}, headers=headers or {})


class OpenAIServer:
    """`with OpenAIServer({"pattern": "answer"}) as server:` then `server.url` and `server.requests`.

    `script` answers the first requests, in order of arrival; then the first pattern found in the last user message, or `otherwise`.
    With `key` every other bearer token is refused. `busiest` is the greatest number of requests that were open at once.
    """

    def __init__(
        self,
        replies: Mapping[str, str | Reply] | None = None,
        *,
        script: Sequence[Reply] = (),
        otherwise: str | Reply | None = None,
        key: str | None = None,
        gather: int = 1,
    ) -> None:
        self.requests: list[Received] = []
        self.busiest = 0
        self._replies = dict(replies or {})
        self._script = list(script)
        self._otherwise = otherwise
        self._key = key
        self._open = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._gathered = threading.Barrier(gather)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, received: Received) -> Reply:
        with self._lock:
            self.requests.append(received)
            self._open += 1
            self.busiest = max(self.busiest, self._open)
            scripted = self._script.pop(0) if self._script else None
        try:
            # A server that gathers answers nobody before so many have asked: that many calls are surely open at once.
            self._gathered.wait(timeout=30)
            reply = scripted or self._chosen(received)
            if reply.hold:
                self._closing.wait()
            return reply
        finally:
            with self._lock:
                self._open -= 1

    def _chosen(self, received: Received) -> Reply:
        if received.path != "/v1/chat/completions":
            return failure(404, f"Invalid URL (POST {received.path})")
        if self._key is not None and received.headers.get("authorization") != f"Bearer {self._key}":
            return failure(401, "Incorrect API key provided", "invalid_api_key")
        for pattern, reply in self._replies.items():
            if re.search(pattern, received.prompt):
                return _reply(reply)
        if self._otherwise is None:
            return failure(400, "the stand-in has no answer to this")
        return _reply(self._otherwise)


def _reply(reply: str | Reply) -> Reply:
    return Reply(reply) if isinstance(reply, str) else reply


def _body(reply: Reply) -> bytes:
    if isinstance(reply.body, bytes):
        return reply.body
    if reply.body is not None:
        return json.dumps(reply.body).encode()
    message = {"role": "assistant", "content": reply.text, "refusal": None, **reply.message}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
    data = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test", "choices": [choice], "usage": reply.usage}
    return json.dumps(data).encode()


def _handler(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            reply = server.answer(Received(self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(data)))
            self.close_connection = True
            if reply.drop or reply.hold:
                return
            body = _body(reply)
            self.send_response(reply.status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                "Connection": "close",
                **reply.headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: a test's output is its own."""

    return Handler
