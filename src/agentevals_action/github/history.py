"""The past of a repository on GitHub: ancestors of a commit, what changed since one, earlier runs
of the workflow, and their artifacts."""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import urlsplit

import httpx

from agentevals_action.baselines.base import EarlierRun, Lineage, RunArchive, build_lineage
from agentevals_action.errors import HostError
from agentevals_action.github.client.api import ApiError, GitHubApi, as_host_errors
from agentevals_action.github.client.replies import (
    Artifact,
    Commit,
    CommitComparison,
    File,
    Repository,
    WorkflowRun,
)
from agentevals_action.model import github_limits as limits
from agentevals_action.model.changed_file import ChangedFile

#: Commits that are read for the ancestors of one, merged branches included.
_COMMITS = 2 * limits.PAGE
#: Events whose runs are of a commit of the branch. The run of a pull request has the name of the
#: pull request's branch, which may be any, and its workflow file.
_TRUSTED = frozenset({"push", "schedule", "workflow_dispatch"})
#: Artifacts of one run that are read at most, those with this name first.
_ARTIFACTS = 3
_USUAL_NAME = "agentevals-report"
#: Size limit of an archive in bytes, and time limit of its download in seconds.
ARCHIVE_BYTES = 64 * 1024 * 1024
_DOWNLOAD_SECONDS = 120.0


class GitHubHistory:
    """The history of the repository, and the runs of this workflow. HostError with the permission
    to grant."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api

    def lineage(self, commit: str) -> Lineage:
        """The ancestors of a commit, among the latest commits of its history."""
        with as_host_errors("the base's ancestors could not be read", "contents: read"):
            commits = islice(self._api.pages("commits", Commit, sha=commit), _COMMITS)
            parents = {one.sha: tuple(parent.sha for parent in one.parents) for one in commits}
        return build_lineage(commit, parents)

    def changes(self, ancestor: str, commit: str) -> Sequence[ChangedFile] | str:
        """What changed between two commits; the reason if GitHub does not list all of it."""
        path = f"compare/{ancestor}...{commit}"
        with as_host_errors("the changes since could not be read", "contents: read"):
            comparison = self._api.get(path, CommitComparison, per_page=1)
        files = [changed_file(file) for file in comparison.files]
        since = ancestor[:12]
        if comparison.status not in ("ahead", "identical"):
            return f"the base does not descend from {since}"
        if len(files) >= limits.COMPARED_FILES:
            return (
                f"too much has changed since {since} for GitHub to list it "
                f"({limits.COMPARED_FILES} files or more)"
            )
        if any(
            "\ufffd" in path for file in files for path in (file.path, file.previous_path or "")
        ):
            return f"GitHub cannot write the name of a file that has changed since {since}"
        return files

    def runs(self, branch: str = "") -> Sequence[EarlierRun]:
        """The latest successful runs of this workflow on a branch (default: the default branch),
        newest first."""
        run_id = self._api.context.run_id
        if not run_id:
            raise HostError("the number of this run is unknown, so its workflow is unknown")
        with as_host_errors("earlier runs of this workflow could not be read", "actions: read"):
            name = branch or self._api.get("", Repository).default_branch
            workflow = self._api.get(f"actions/runs/{run_id}", WorkflowRun).workflow_id
            runs = self._api.pages(
                f"actions/workflows/{workflow}/runs",
                WorkflowRun,
                "workflow_runs",
                branch=name,
                status="success",
                exclude_pull_requests="true",
            )
            found = list(islice(runs, limits.PAGE))
        return tuple(EarlierRun(run.id, run.head_sha) for run in found if self._is_trusted(run))

    def archives(self, run: EarlierRun) -> Iterator[RunArchive]:
        """The artifacts of a run, each downloaded when it is asked for: the most likely first."""
        with as_host_errors(
            f"the artifacts of the run {run.id} could not be read", "actions: read"
        ):
            path = f"actions/runs/{run.id}/artifacts"
            listed = list(islice(self._api.pages(path, Artifact, "artifacts"), limits.PAGE))
        # Without uploaded report pages: several gates and attempts leave more than are read.
        found = [one for one in listed if not one.name.endswith(".html")]
        # Each attempt of a run has one of the same name.
        found.sort(key=lambda one: (one.name != _USUAL_NAME, "agentevals" not in one.name, -one.id))
        for artifact in found[:_ARTIFACTS]:
            yield self.archive(artifact)

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

    def _is_trusted(self, run: WorkflowRun) -> bool:
        """Whether it is another run, of this repository, on a commit of the branch."""
        context = self._api.context
        return (
            run.id != context.run_id
            and run.event in _TRUSTED
            and run.conclusion == "success"
            and (run.head_repository or "").lower() == context.repository.lower()
        )


def changed_file(file: File) -> ChangedFile:
    """A file of GitHub's lists; a copy is a new file."""
    if file.status == "copied":
        return ChangedFile(file.filename, "added")
    previous = file.previous_filename if file.status == "renamed" else None
    return ChangedFile(file.filename, file.status, previous)
