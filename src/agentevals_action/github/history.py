"""GitHub's knowledge of the history: a commit's ancestors, what changed since one, what earlier
runs of the workflow left."""

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar
from urllib.parse import urlsplit

from github.Artifact import Artifact
from github.File import File
from github.WorkflowRun import WorkflowRun

from agentevals_action.errors import HostError
from agentevals_action.github import limits
from agentevals_action.github.api import GitHubApi, Target, Trouble
from agentevals_action.github.github_words import refusal
from agentevals_action.model.comparison import ChangedFile
from agentevals_action.model.past import Archive, Lineage, PastRun, lineage

T = TypeVar("T")

#: Commits that are read for a commit's ancestors, those of merged branches included.
_COMMITS = 2 * limits.PAGE
#: Events whose runs are of a commit that was on the branch. A pull request's run bears the name of
#: its own branch, which may be any, and its workflow file is the pull request's too.
_TRUSTED = frozenset({"push", "schedule", "workflow_dispatch"})
#: Artifacts of one run that are looked into, the one of this name first.
_ARTIFACTS = 3
_USUAL = "agentevals-report"
#: Bytes of an archive that are taken, and seconds that fetching one may last.
ARCHIVE_BYTES = 64 * 1024 * 1024
_ARCHIVE_SECONDS = 120.0
_CHUNK = 256 * 1024


class GitHubPast:
    """A `hosts.base.Past`, and the runs of this workflow; HostError with what to grant where GitHub
    does not say."""

    def __init__(self, api: GitHubApi, target: Target) -> None:
        self._api = api
        self._target = target

    def lineage(self, commit: str) -> Lineage:
        """The ancestors of a commit, among those that it came with latest."""

        def parents() -> dict[str, tuple[str, ...]]:
            commits = islice(self._api.repository.get_commits(sha=commit), _COMMITS)
            return {one.sha: tuple(parent.sha for parent in one.parents) for one in commits}

        return lineage(
            commit, self._asked("the base's ancestors could not be read", "contents: read", parents)
        )

    def changes(self, ancestor: str, commit: str) -> Sequence[ChangedFile] | str:
        """What changed from one to the other, when GitHub tells all of it."""

        def compared() -> tuple[str, list[ChangedFile]]:
            found = self._api.repository.compare(ancestor, commit, comparison_commits_per_page=1)
            return found.status, [changed_file(file) for file in found.files]

        status, files = self._asked(
            "what changed since could not be read", "contents: read", compared
        )
        if status not in ("ahead", "identical"):
            return f"the base does not descend from {ancestor[:12]}"
        if len(files) >= limits.COMPARED_FILES:
            return f"too much has changed since {ancestor[:12]} for GitHub to list it ({limits.COMPARED_FILES} files or more)"
        if any(
            "\ufffd" in path for file in files for path in (file.path, file.previous_path or "")
        ):
            return f"GitHub cannot write the name of a file that has changed since {ancestor[:12]}"
        return files

    def runs(self, branch: str = "") -> Sequence[PastRun]:
        """The latest runs of this workflow that succeeded on a branch (the default branch when it
        has no name), newest first."""
        if not self._target.run_id:
            raise HostError("the number of this run is not known, and so its workflow is not")

        def read() -> list[WorkflowRun]:
            repository = self._api.repository
            name = branch or repository.default_branch
            workflow = repository.get_workflow(
                repository.get_workflow_run(self._target.run_id).workflow_id
            )
            return list(
                workflow.get_runs(branch=name, status="success", exclude_pull_requests=True)[
                    : limits.PAGE
                ]
            )

        found = self._asked(
            "earlier runs of this workflow could not be read", "actions: read", read
        )
        return tuple(
            PastRun(run.id, run.head_sha, run.html_url) for run in found if self._counts(run)
        )

    def archives(self, run: PastRun) -> Iterator[Archive]:
        """What a run left, as it is asked for: the most likely first, a few at most."""

        def read() -> list[Artifact]:
            return list(
                self._api.repository.get_workflow_run(run.id).get_artifacts()[: limits.PAGE]
            )

        found = self._asked(
            f"the artifacts of the run {run.id} could not be read", "actions: read", read
        )
        # Of the same name there is one for each attempt.
        for artifact in sorted(
            found, key=lambda one: (one.name != _USUAL, "agentevals" not in one.name, -one.id)
        )[:_ARTIFACTS]:
            yield self._archive(artifact)

    def _archive(self, artifact: Artifact) -> Archive:
        if artifact.expired:
            return Archive(artifact.name, problem="has expired")
        if artifact.size_in_bytes > ARCHIVE_BYTES:
            return Archive(artifact.name, problem=f"is larger than {ARCHIVE_BYTES >> 20} MiB")
        what = f"the artifact `{artifact.name}` could not be fetched"
        content = self._asked(what, "actions: read", lambda: self._fetched(artifact))
        if content is None:
            return Archive(artifact.name, problem=f"is larger than {ARCHIVE_BYTES >> 20} MiB")
        return Archive(artifact.name, content)

    def _fetched(self, artifact: Artifact) -> bytes | None:
        """The archive lies elsewhere, at an address that needs no token and must not see ours."""
        headers, _ = artifact.requester.requestJsonAndCheck("GET", f"{artifact.url}/zip")
        address = str(headers.get("location", ""))
        schemes = {"https", urlsplit(self._target.api_url).scheme}
        if urlsplit(address).scheme not in schemes:
            raise Trouble("down", "no address to fetch it from")
        return _bounded(address)

    def _counts(self, run: WorkflowRun) -> bool:
        """Whether a run is one of this repository on a commit of the branch, and no other than this
        one."""
        own = (
            run.id != self._target.run_id and run.event in _TRUSTED and run.conclusion == "success"
        )
        home = run.head_repository
        return (
            own and home is not None and home.full_name.lower() == self._target.repository.lower()
        )

    def _asked(self, what: str, permission: str, call: Callable[[], T]) -> T:
        try:
            return self._api.ask(call)
        except Trouble as trouble:
            raise HostError(refusal(what, trouble, permission).rstrip(".")) from trouble


def changed_file(file: File) -> ChangedFile:
    """A file of GitHub's lists; a copied one is a new one."""
    if file.status == "copied":
        return ChangedFile(file.filename, "added")
    return ChangedFile(
        file.filename, file.status, file.previous_filename if file.status == "renamed" else None
    )


def _bounded(address: str) -> bytes | None:
    """What lies there, None when it is more than an archive may be; OSError when it does not come
    in time."""
    ends = time.monotonic() + _ARCHIVE_SECONDS
    parts: list[bytes] = []
    size = 0
    try:
        answer = urllib.request.urlopen(address, timeout=30)  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()  # it is the answer itself, with its connection
        raise Trouble("down", f"the archive's address answered {error.code}") from error
    with answer:
        while part := answer.read(_CHUNK):
            size += len(part)
            if size > ARCHIVE_BYTES:
                return None
            if time.monotonic() > ends:
                raise TimeoutError("the archive came too slowly")
            parts.append(part)
    return b"".join(parts)
