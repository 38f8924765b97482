"""The archives that runs of the workflow left as artifacts."""

import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from agentevals_action.github.client.api import ApiError, GitHubApi, as_host_errors
from agentevals_action.github.client.replies import Artifact

#: Size limit of an archive in bytes, and time limit of its download in seconds.
ARCHIVE_BYTES = 64 * 1024 * 1024
_DOWNLOAD_SECONDS = 120.0


@dataclass(frozen=True)
class RunArchive:
    """An artifact of a run: a ZIP, or the problem why it could not be downloaded."""

    name: str
    content: bytes = b""
    problem: str = ""


class ArtifactArchives:
    """Downloads artifacts. HostError with the permission to grant."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api

    def archive(self, artifact: Artifact) -> RunArchive:
        """The content of an artifact, or the problem why there is none."""
        if artifact.expired:
            return RunArchive(artifact.name, problem="has expired")
        content = None
        if artifact.size_in_bytes <= ARCHIVE_BYTES:
            problem = f"the artifact `{artifact.name}` could not be fetched"
            with as_host_errors(problem, "actions: read"):
                content = self._api.repeat(lambda: self._download(artifact))
        if content is None:
            return RunArchive(artifact.name, problem=f"is larger than {ARCHIVE_BYTES >> 20} MiB")
        return RunArchive(artifact.name, content)

    def _download(self, artifact: Artifact) -> bytes | None:
        """The archive, None if it is too large. Its address is on another server, which needs no
        token and must not receive it."""
        address = self._api.location(f"actions/artifacts/{artifact.id}/zip")
        if urlsplit(address).scheme not in {"https", urlsplit(self._api.context.api_url).scheme}:
            raise ApiError("unavailable", "no valid address of the archive")
        deadline = time.monotonic() + _DOWNLOAD_SECONDS
        content = bytearray()
        try:
            with httpx.stream("GET", address, timeout=30) as response:
                if response.status_code != httpx.codes.OK:
                    message = f"the address of the archive replied {response.status_code}"
                    raise ApiError("unavailable", message)
                for part in response.iter_bytes():
                    content += part
                    if len(content) > ARCHIVE_BYTES:
                        return None
                    if time.monotonic() > deadline:
                        raise ApiError("unavailable", "the download of the archive is too slow")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            message = f"the archive could not be downloaded ({type(error).__name__})"
            raise ApiError("unavailable", message) from error
        return bytes(content)
