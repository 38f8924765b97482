"""The stand-in's knowledge of the past: commits and comparisons out of a real repository, workflow
runs, and what they left as artifacts."""

import contextlib
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.github_http import Answer, Request
from tests.support.github_world import Refused, World
from tests.support.loopback import LoopbackServer
from tests.support.repositories import Repository

Need = Callable[..., None]
Page = Callable[[Request, Sequence[Any]], tuple[list[Any], dict[str, str]]]


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    """A ZIP with these files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


@dataclass
class StoredArtifact:
    """`size` is the size in the API, by default the real one; `of_run` the run that the artifact
    names, by default the one that lists it."""

    id: int
    run: int
    name: str
    content: bytes
    expired: bool = False
    size: int | None = None
    created_at: str = "2026-01-05T10:20:00Z"
    of_run: int | None = None


class BlobServer(LoopbackServer):
    """Where the archives lie: elsewhere, and whoever shows it a token has given it away. Use as a
    context manager."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.headers: list[Mapping[str, str]] = []
        blobs, seen = self.blobs, self.headers

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = (
                True  # or the body of a reply waits for the head to be acknowledged: 40 ms
            )
            timeout = 30

            def do_GET(self) -> None:
                seen.append({name.lower(): value for name, value in self.headers.items()})
                content = blobs.get(self.path.partition("?")[0])
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # whoever has had enough of it hangs up
                    self.wfile.write(content or b"")

            def log_message(self, format: str, *args: object) -> None:
                pass

        super().__init__(Handler)


@dataclass
class History:
    """`origin` is the repository that commits and comparisons are of; without one there are none.
    `scheme` of the archives' address may be another than that of a file on the web."""

    world: World
    url: str
    need: Need
    page: Page
    origin: Repository | None = None
    blobs: BlobServer | None = None
    artifacts: list[StoredArtifact] = field(default_factory=list)
    location: str | None = None

    def add_run(self, number: int, commit: str, **facts: Any) -> int:
        """A finished run of the workflow 1; `facts` are fields as on the wire."""
        api = f"{self.url}/repos/{self.world.full_name}/actions/runs/{number}"
        common: dict[str, Any] = {
            "name": "agentevals",
            "workflow_id": 1,
            "head_sha": commit,
            "head_branch": "main",
            "event": "push",
            "status": "completed",
            "conclusion": "success",
            "url": api,
            "artifacts_url": f"{api}/artifacts",
            "html_url": f"https://github.com/{self.world.full_name}/actions/runs/{number}",
            "head_repository": {"id": 1, "full_name": self.world.full_name},
        }
        self.world.workflow_runs[number] = common | facts
        return number

    def add_artifact(
        self, run: int, content: bytes, name: str = "agentevals-report", **facts: Any
    ) -> StoredArtifact:
        """What a run uploaded."""
        artifact = StoredArtifact(self.world.new_id(), run, name, content, **facts)
        self.artifacts.append(artifact)
        if self.blobs:
            self.blobs.blobs[f"/blob/{artifact.id}"] = content
        return artifact

    def routes(self, root: str) -> Sequence[tuple[str, str, Callable[..., Answer]]]:
        return (
            ("GET", rf"{root}/actions/runs/(\d+)/artifacts", self._artifacts),
            ("GET", rf"{root}/actions/artifacts/(\d+)/zip", self._zip),
        )

    def compare(self, base: str, head: str) -> dict[str, Any]:
        """A comparison of two commits of the origin."""
        assert self.origin
        try:
            bases = self.origin.git("merge-base", base, head)
        except Exception as error:
            raise Refused(404, "Not Found") from error
        ahead, behind = (
            int(self.origin.git("rev-list", "--count", f"{one}..{two}"))
            for one, two in ((base, head), (head, base))
        )
        status = (
            "diverged"
            if ahead and behind
            else "ahead"
            if ahead
            else "behind"
            if behind
            else "identical"
        )
        commit = {"sha": bases}
        return {
            "status": status,
            "ahead_by": ahead,
            "behind_by": behind,
            "total_commits": ahead,
            "merge_base_commit": commit,
            "base_commit": {"sha": base},
            "commits": [],
        }

    def _artifacts(self, request: Request, number: str) -> Answer:
        self.need("read", "actions")
        found = [self._wire(artifact) for artifact in self.artifacts if artifact.run == int(number)]
        page, headers = self.page(request, found)
        return 200, {"total_count": len(found), "artifacts": page}, headers

    def _wire(self, artifact: StoredArtifact) -> dict[str, Any]:
        url = f"{self.url}/repos/{self.world.full_name}/actions/artifacts/{artifact.id}"
        size = len(artifact.content) if artifact.size is None else artifact.size
        return {
            "id": artifact.id,
            "name": artifact.name,
            "size_in_bytes": size,
            "expired": artifact.expired,
            "created_at": artifact.created_at,
            "workflow_run": {"id": artifact.of_run or artifact.run},
            "url": url,
            "archive_download_url": f"{url}/zip",
        }

    def _zip(self, request: Request, number: str) -> Answer:
        self.need("read", "actions")
        found = next((one for one in self.artifacts if one.id == int(number)), None)
        if found is None:
            raise Refused(404, "Not Found")
        if found.expired:
            raise Refused(410, "Artifact has expired")
        assert self.blobs
        return (
            302,
            None,
            {"Location": self.location or f"{self.blobs.url}/blob/{found.id}?sig=once"},
        )
