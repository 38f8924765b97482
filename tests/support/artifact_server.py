"""A stand-in for GitHub's artifact service and its storage on loopback: Twirp in JSON, and Put Blob.

Messages and rules as in https://github.com/actions/toolkit/tree/main/packages/artifact."""

import base64
import hashlib
import json
import re
from dataclasses import dataclass

from tests.support.stand_in import InjectedFailure, Received, Sent, StandIn

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


class ArtifactServer(StandIn[Received, Sent]):
    """Use as a context manager."""

    def __init__(self, *failures: InjectedFailure) -> None:
        self.token = token()
        self.artifacts: dict[str, Artifact] = {}
        super().__init__()
        for failure in failures:
            self.break_route(failure)

    @property
    def variables(self) -> dict[str, str]:
        """What the runner sets for a container; the toolkit uses only the origin of the address."""
        return {
            "ACTIONS_RUNTIME_TOKEN": self.token,
            "ACTIONS_RESULTS_URL": f"{self.url}/results/",
        }

    def reply(self, received: Received) -> Sent:
        """The reply of the service, or of its storage."""
        called = re.fullmatch(_TWIRP, received.route)
        return self._call(called[1], received) if called else self._put(received)

    def _call(self, method: str, received: Received) -> Sent:
        message = received.body
        if received.headers.get("authorization") != f"Bearer {self.token}":
            return Sent({"code": "unauthenticated", "msg": "invalid token"}, 401)
        ids = {name: message.pop(name, None) for name in _IDS}
        if ids != _IDS or set(message) != _FIELDS[method]:
            return Sent({"code": "malformed", "msg": f"unexpected {sorted(message)}"}, 400)
        name = str(message["name"])
        if method == "CreateArtifact":
            if name in self.artifacts:
                conflict = "an artifact with this name already exists on the workflow run"
                return Sent({"code": "already_exists", "msg": f"Conflict: {conflict}"}, 409)
            if message["version"] < 7:
                return Sent({"code": "invalid_argument", "msg": "only archives"}, 400)
            self.artifacts[name] = Artifact(message["mime_type"])
            address = f"{self.url}/actions-results/{name}?se=2026-01-01&sig={SIGNATURE}"
            return Sent({"ok": True, "signed_upload_url": address})
        artifact = self.artifacts[name]
        content = artifact.content or b""
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if message["hash"] != digest or message["size"] != str(len(content)):
            return Sent({})  # JSON of protobuf leaves `ok: false` out
        artifact.id = 4000 + len(self.artifacts)
        return Sent({"ok": True, "artifact_id": str(artifact.id)})

    def _put(self, received: Received) -> Sent:
        found = re.fullmatch(r"/actions-results/([^?]+)\?.*sig=(.*)", received.path)
        headers = received.headers
        if not found or found[2] != SIGNATURE or "authorization" in headers:
            return Sent({}, 403, {"x-ms-error-code": "AuthenticationFailed"})
        artifact = self.artifacts[found[1]]
        if headers.get("x-ms-blob-content-type") != artifact.mime_type:
            return Sent({}, 400, {"x-ms-error-code": "InvalidHeaderValue"})
        artifact.content, artifact.blob_type = received.data, headers.get("x-ms-blob-type", "")
        return Sent({}, 201)
