"""A stand-in for GitHub's artifact service and its storage on loopback: Twirp in JSON, and Put Blob.

Messages and rules as in https://github.com/actions/toolkit/tree/main/packages/artifact."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any

from tests.support.loopback import LoopbackServer

RUN, JOB = "ce7f54c7-61c7-4aae-887f-30da475f5f1a", "ca395085-040a-526b-2ce8-bdc85f692774"
SIGNATURE = "c2lnbmVkLWJ5LXRoZS1zZXJ2aWNl"
_TWIRP = r"POST /twirp/github\.actions\.results\.api\.v1\.ArtifactService/(\w+)"
_FIELDS = {
    "CreateArtifact": {"name", "version", "mime_type"},
    "FinalizeArtifact": {"name", "size", "hash"},
}
_IDS = {"workflow_run_backend_id": RUN, "workflow_job_run_backend_id": JOB}


def token(scope: str = f"Actions.GenericRead:00 Actions.Results:{RUN}:{JOB}") -> str:
    """A token like the runner's; nobody here checks its signature."""
    parts = ({"typ": "JWT", "alg": "RS256"}, {"scp": scope, "nameid": "dddddddd"})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts)
    return ".".join(part.rstrip("=") for part in (*encoded, base64.b64encode(b"s" * 40).decode()))


@dataclass
class Artifact:
    """An artifact; `id` 0 until it is finalized."""

    mime_type: str
    content: bytes | None = None
    blob_type: str = ""
    id: int = 0


@dataclass
class Failure:
    """What goes wrong `times` times where the regular expression `route` is found; status 0 closes
    the connection without a reply, -1 never replies."""

    route: str
    status: int
    times: int = 1
    body: Mapping[str, Any] = field(default_factory=dict)


class ArtifactServer(LoopbackServer):
    """Use as a context manager. `routes` are the requests that came, `METHOD /path`."""

    def __init__(self, *failures: Failure) -> None:
        self.token = token()
        self.artifacts: dict[str, Artifact] = {}
        self.routes: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self._failures = list(failures)
        self._ended = threading.Event()
        super().__init__(_handler(self))

    @property
    def variables(self) -> dict[str, str]:
        """What the runner sets for a container; the toolkit uses only the origin of the address."""
        return {
            "ACTIONS_RUNTIME_TOKEN": self.token,
            "ACTIONS_RESULTS_URL": f"{self.url}/results/",
        }

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        super().__exit__(kind, error, trace)

    def answer(
        self, route: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Mapping[str, Any], Mapping[str, str]] | None:
        """Status, body and headers of a reply; None closes the connection."""
        path = route.partition("?")[0]
        self.routes.append(path)
        self.headers.append(headers)
        for failure in self._failures:
            if failure.times and re.search(failure.route, path):
                failure.times -= 1
                if failure.status < 0:
                    self._ended.wait()
                return (failure.status, failure.body, {}) if failure.status > 0 else None
        if called := re.fullmatch(_TWIRP, path):
            return self._call(called[1], headers, json.loads(body))
        return self._put(route, headers, body)

    def _call(
        self, method: str, headers: Mapping[str, str], message: dict[str, Any]
    ) -> tuple[int, Mapping[str, Any], Mapping[str, str]]:
        if headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"code": "unauthenticated", "msg": "invalid token"}, {}
        ids = {name: message.pop(name, None) for name in _IDS}
        if ids != _IDS or set(message) != _FIELDS[method]:
            return 400, {"code": "malformed", "msg": f"unexpected {sorted(message)}"}, {}
        name = str(message["name"])
        if method == "CreateArtifact":
            if name in self.artifacts:
                conflict = "an artifact with this name already exists on the workflow run"
                return 409, {"code": "already_exists", "msg": f"Conflict: {conflict}"}, {}
            if message["version"] < 7:
                return 400, {"code": "invalid_argument", "msg": "only archives"}, {}
            self.artifacts[name] = Artifact(message["mime_type"])
            address = f"{self.url}/actions-results/{name}?se=2026-01-01&sig={SIGNATURE}"
            return 200, {"ok": True, "signed_upload_url": address}, {}
        artifact = self.artifacts[name]
        content = artifact.content or b""
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if message["hash"] != digest or message["size"] != str(len(content)):
            return 200, {}, {}  # JSON of protobuf leaves `ok: false` out
        artifact.id = 4000 + len(self.artifacts)
        return 200, {"ok": True, "artifact_id": str(artifact.id)}, {}

    def _put(
        self, route: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Mapping[str, Any], Mapping[str, str]]:
        found = re.fullmatch(r"PUT /actions-results/([^?]+)\?.*sig=(.*)", route)
        if not found or found[2] != SIGNATURE or "authorization" in headers:
            return 403, {}, {"x-ms-error-code": "AuthenticationFailed"}
        artifact = self.artifacts[found[1]]
        if headers.get("x-ms-blob-content-type") != artifact.mime_type:
            return 400, {}, {"x-ms-error-code": "InvalidHeaderValue"}
        artifact.content, artifact.blob_type = body, headers.get("x-ms-blob-type", "")
        return 201, {}, {}


def _handler(server: ArtifactServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = server.answer(f"{self.command} {self.path}", headers, body)
            if reply is None:
                self.close_connection = True
                return
            status, message, extra = reply
            content = json.dumps(message).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **extra}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    return Handler
