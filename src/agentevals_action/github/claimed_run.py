"""The first phase of a pull request that gets no token: its run, its pull request, and the results
that it left as an artifact. All that is known about them is from GitHub's API."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx
from github.Artifact import Artifact
from pydantic import AliasPath, Field

from agentevals_action.errors import HostError
from agentevals_action.github.api import ApiError, GitHubApi, as_host_errors
from agentevals_action.github.check_run import branch_digest, read_id
from agentevals_action.github.events import DEPENDABOT, read_payload
from agentevals_action.model.job import Payload, PullRequest

#: The artifact of the first phase.
ARTIFACT = "agentevals-report"
#: Size limit of an archive in bytes, and time limit of its download in seconds.
ARCHIVE_BYTES = 64 * 1024 * 1024
_DOWNLOAD_SECONDS = 120.0
_readable = partial(as_host_errors, "the first phase could not be read")


class CompletedRun(Payload):
    """The completed run of the event `workflow_run`. Everything else comes from the API."""

    action: str
    id: int = Field(gt=0, validation_alias=AliasPath("workflow_run", "id"))
    attempt: int = Field(gt=0, validation_alias=AliasPath("workflow_run", "run_attempt"))


def read_completed(payload: Mapping[str, Any]) -> CompletedRun:
    """The run in the payload of the event. InvalidInput for another payload."""
    return read_payload(CompletedRun, "workflow_run", payload)


class NothingToPublish(Exception):
    """The reason why a run has nothing that is to be published, in a sentence."""


class FirstPhase:
    """Reads a first phase, whose head has no rights in this repository. HostError with the
    permission to grant. `gate` is the `comment-id`.

    Raises NothingToPublish if the completed run is not that of a first phase."""

    def __init__(self, api: GitHubApi, gate: str, completed: CompletedRun) -> None:
        self._api, self._gate = api, gate
        with _readable("actions: read"):
            self._run = run = api.repository.get_workflow_run(completed.id).complete()
            self._head_repository = run.head_repository and run.head_repository.full_name
            is_dependabot = run.actor is not None and run.actor.login == DEPENDABOT
            reason = ""
            if completed.action != "completed" or run.status != "completed":
                reason = "is not completed"
            elif run.event != "pull_request":
                reason = "is not that of a pull request"
            elif run.run_attempt != completed.attempt:
                reason = "has a newer attempt"
            elif self._head_repository == api.full_name and not is_dependabot:
                reason = "is of a branch of this repository, and reported itself"
        if reason:
            raise NothingToPublish(f"the run {completed.id} {reason}")

    def pulls(self) -> Sequence[PullRequest]:
        """The open pull requests whose head the run is of, oldest first; several have different
        base branches. Raises NothingToPublish if there is none.

        Attack: the artifact, or the event's list of pull requests, names another pull request. For
        a fork that list is empty."""
        run, repository = self._run, self._head_repository
        current: list[PullRequest] = []
        with _readable("pull-requests: read"):
            commit = run.head_sha
            if repository and run.head_branch:
                head = f"{repository.partition('/')[0]}:{run.head_branch}"
                opened = self._api.repository.get_pulls(state="open", head=head)
                pulls = [PullRequest.from_reply(pull.raw_data) for pull in opened]
                key = repository, commit
                current = [pull for pull in pulls if (pull.head_repository, pull.head_sha) == key]
        if not current:
            raise NothingToPublish(
                f"no open pull request has the head {commit[:12]}: it was closed, or has moved"
            )
        return sorted(current, key=lambda pull: pull.number)

    def require_undecided(self, pulls: Sequence[PullRequest]) -> None:
        """Raises NothingToPublish if the newest check run of the head of these pull requests is of
        a requested run for their base branch.

        Attack: after a red requested run, the author closes and opens the pull request, which
        starts another first phase with better claims. Or a run for a base branch with weak judges
        is green, and the author changes the base branch back."""
        head, branches = pulls[0].head_sha, {branch_digest(pull.base_ref) for pull in pulls}
        with _readable("checks: write"):
            checks = self._api.repository.get_commit(head).get_check_runs(filter="all")
            identities = {
                check.id: identity
                for check in checks
                if (identity := read_id(check.external_id)) and identity.gate == self._gate
            }
        if identities and {(newest := identities[max(identities)]).requested_for} == branches:
            raise NothingToPublish(
                f"the run {newest.run}, which a maintainer requested, decides about the head"
            )

    def results(self) -> bytes:
        """The newest artifact of the run: a ZIP. HostError if there is none."""
        run = self._run
        with _readable("actions: read"):
            artifacts = [
                artifact
                for artifact in run.get_artifacts()
                if artifact.name == ARTIFACT and artifact.workflow_run.id == run.id
            ]
        if not artifacts:
            raise HostError(
                f"the run {run.id} left no artifact `{ARTIFACT}`",
                "let its last step upload the report folder with `if: always()`",
            )
        return self._read(max(artifacts, key=lambda artifact: artifact.id))

    def _read(self, artifact: Artifact) -> bytes:
        name, content = f"the artifact `{artifact.name}`", None
        if artifact.expired:
            raise HostError(f"{name} has expired", "start the run again")
        if artifact.size_in_bytes <= ARCHIVE_BYTES:
            with as_host_errors(f"{name} could not be fetched", "actions: read"):
                content = self._api.repeat(lambda: _download(artifact))
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
