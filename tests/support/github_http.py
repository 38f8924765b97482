"""The HTTP side of the stand-in for GitHub: requests in, replies and failures out."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True)
class Request:
    """One request as it came; `path` without the prefix of an Enterprise Server (it stands in
    `prefix`) and without the query."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    headers: Mapping[str, str]
    prefix: str = ""

    @property
    def route(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class InjectedFailure:
    """What goes wrong `times` times where `route` (a regular expression over `METHOD /path`) is
    found.

    With `after_write` the request is done before the answer goes wrong; `status` 0 closes the
    connection without an answer."""

    route: str
    status: int
    times: int = 1
    message: str = "Server Error"
    headers: Mapping[str, str] = field(default_factory=dict)
    after_write: bool = False
    html: str | None = None


Answer = tuple[int, Any, dict[str, str]]


def handler(answer: Callable[[Request], Answer | InjectedFailure]) -> type[BaseHTTPRequestHandler]:
    """Reads requests, has them answered, and carries out what is to go wrong."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = (
            True  # or the body of a reply waits for the head to be acknowledged: 40 ms
        )
        timeout = 30

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_PATCH(self) -> None:
            self._serve()

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            path = unquote(parts.path)
            prefix = "/api/v3" if path.startswith("/api/v3/") else ""
            path = path.removeprefix(prefix)
            path = "/graphql" if path == "/api/graphql" else path
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            given = answer(
                Request(
                    self.command, path, query, json.loads(raw) if raw else None, headers, prefix
                )
            )
            if isinstance(given, InjectedFailure):
                self._go_wrong(given)
            else:
                status, body, extra = given
                self._send(
                    status, json.dumps(body).encode(), "application/json; charset=utf-8", extra
                )

        def _go_wrong(self, injected: InjectedFailure) -> None:
            if injected.status == 0:
                self.close_connection = True
            elif injected.html is not None:
                self._send(injected.status, injected.html.encode(), "text/html", injected.headers)
            else:
                self._send(
                    injected.status,
                    json.dumps({"message": injected.message}).encode(),
                    "application/json",
                    injected.headers,
                )

        def _send(self, status: int, body: bytes, kind: str, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler
