"""Workflow runs of the stand-in for GitHub, and what they left as artifacts."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.github_world import World
from tests.support.stand_in import Received, Sent, StandIn


def zipped(files: Mapping[str, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP with these files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
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


class BlobServer(StandIn[Received, Sent]):
    """Where the archives are. It must not get a token."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        super().__init__()

    def reply(self, received: Received) -> Sent:
        """The archive of the path."""
        content = self.blobs.get(received.path.partition("?")[0])
        return Sent(b"", 404) if content is None else Sent(content)


@dataclass
class History:
    """`location` is the address of every archive, if it is not that of the blob server."""

    world: World
    blobs: BlobServer | None = None
    artifacts: list[StoredArtifact] = field(default_factory=list)
    location: str | None = None

    def add_run(self, number: int, commit: str, **facts: Any) -> int:
        """A completed run of the workflow; `facts` are fields as on the wire."""
        common: dict[str, Any] = {
            "head_sha": commit,
            "head_branch": "main",
            "event": "push",
            "status": "completed",
            "conclusion": "success",
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
