"""The archives that runs of the workflow left as artifacts."""

import time
from urllib.parse import urlsplit

import httpx
from github.Artifact import Artifact

from agentevals_action.errors import HostError
from agentevals_action.github.api import ApiError, GitHubApi, as_host_errors

#: Size limit of an archive in bytes, and time limit of its download in seconds.
ARCHIVE_BYTES = 64 * 1024 * 1024
_DOWNLOAD_SECONDS = 120.0


def read_archive(api: GitHubApi, artifact: Artifact) -> bytes:
    """The ZIP of an artifact. HostError if it has expired, is too large or cannot be read."""
    name, content = f"the artifact `{artifact.name}`", None
    if artifact.expired:
        raise HostError(f"{name} has expired", "start the run again")
    if artifact.size_in_bytes <= ARCHIVE_BYTES:
        with as_host_errors(f"{name} could not be fetched", "actions: read"):
            content = api.repeat(lambda: _download(artifact))
    if content is None:
        raise HostError(f"{name} is larger than {ARCHIVE_BYTES >> 20} MiB")
    return content


def _download(artifact: Artifact) -> bytes | None:
    """The archive, None if it is too large. Its address is on another server, which needs no token
    and must not receive it."""
    url = artifact.archive_download_url
    headers, _ = artifact.requester.requestJsonAndCheck("GET", url)
    address = str(headers.get("location", ""))
    if urlsplit(address).scheme not in {"https", urlsplit(url).scheme}:
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
