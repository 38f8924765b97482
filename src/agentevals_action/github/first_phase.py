"""The first phase of a pull request that gets no token: its run, its pull request, and the results
that it left as an artifact. All that is known about them is from GitHub's API."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.errors import HostError, InvalidInput
from agentevals_action.github.artifact_archives import read_archive
from agentevals_action.github.check_run import branch_digest, read_id
from agentevals_action.github.client.api import GitHubApi, as_host_errors
from agentevals_action.github.client.replies import Artifact, CheckRun, PullSides, WorkflowRun
from agentevals_action.github.events import DEPENDABOT

#: The artifact of the first phase.
ARTIFACT = "agentevals-report"
_readable = partial(as_host_errors, "the first phase could not be read")


class CompletedRun(BaseModel):
    """The completed run of the event `workflow_run`. Everything else comes from the API."""

    model_config = ConfigDict(frozen=True, strict=True)

    action: str
    id: int = Field(gt=0, validation_alias=AliasPath("workflow_run", "id"))
    attempt: int = Field(gt=0, validation_alias=AliasPath("workflow_run", "run_attempt"))


def read_completed(payload: Mapping[str, Any]) -> CompletedRun:
    """The run in the payload of the event. InvalidInput for another payload."""
    try:
        return CompletedRun.model_validate(payload)
    except ValidationError as error:
        raise InvalidInput(
            "the payload of the event `workflow_run` names no run",
            "use `mode: publish` in a workflow with `on: workflow_run` alone",
        ) from error


class NothingToPublish(Exception):
    """The reason why a run has nothing that is to be published, in a sentence."""


class FirstPhase:
    """Reads a first phase. HostError with the permission to grant."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api

    def run(self, completed: CompletedRun) -> WorkflowRun:
        """The run, whose head has no rights in this repository. Raises NothingToPublish."""
        with _readable("actions: read"):
            run = self._api.get(f"actions/runs/{completed.id}", WorkflowRun)
        if completed.action != "completed" or run.status != "completed":
            raise NothingToPublish(f"the run {run.id} is not completed")
        if run.event != "pull_request":
            raise NothingToPublish(f"the run {run.id} is not that of a pull request")
        if run.run_attempt != completed.attempt:
            raise NothingToPublish(f"the run {run.id} has a newer attempt")
        is_own = run.head_repository == self._api.context.repository
        if is_own and not (run.actor and run.actor.login == DEPENDABOT):
            raise NothingToPublish(
                f"the run {run.id} is of a branch of this repository, and reported itself"
            )
        return run

    def pull(self, run: WorkflowRun) -> PullSides:
        """The open pull request whose head the run is of. Raises NothingToPublish.

        Attack: the artifact, or the event's list of pull requests, names another pull request. For
        a fork that list is empty."""
        if run.head_repository is None or run.head_branch is None:
            raise NothingToPublish("the repository of the pull request's head is gone")
        head = f"{run.head_repository.partition('/')[0]}:{run.head_branch}"
        with _readable("pull-requests: read"):
            listed = list(self._api.pages("pulls", PullSides, state="all", head=head))
        pulls = [one for one in listed if one.head_repository == run.head_repository]
        current = [one for one in pulls if not one.closed and one.head_sha == run.head_sha]
        if len(current) == 1:
            return current[0]
        if current:
            numbers = ", ".join(str(one.number) for one in current)
            raise NothingToPublish(f"the pull requests {numbers} have the same head")
        moved = [one for one in pulls if not one.closed]
        if moved:
            raise NothingToPublish(
                f"the head of the pull request {moved[0].number} has moved from "
                f"{run.head_sha[:12]} to {moved[0].head_sha[:12]}"
            )
        if pulls:
            latest = max(pulls, key=lambda one: one.number)
            raise NothingToPublish(f"the pull request {latest.number} is {latest.closed}")
        raise NothingToPublish(f"no pull request has the head of the run {run.id}")

    def require_undecided(self, pull: PullSides) -> None:
        """Raises NothingToPublish if a requested run has decided about this head and base branch.

        Attack: after a red requested run, the author closes and opens the pull request, which
        starts another first phase with better claims."""
        path = f"commits/{pull.head_sha}/check-runs"
        with _readable("checks: write"):
            checks = list(self._api.pages(path, CheckRun, "check_runs", filter="all"))
        gate, branch = self._api.context.comment_id, branch_digest(pull.base_ref)
        for check in checks:
            own = read_id(check.external_id)
            if own and own.gate == gate and own.requested_for == branch:
                raise NothingToPublish(
                    f"the run {own.run}, which a maintainer requested, decides about the head"
                )

    def results(self, run: WorkflowRun) -> bytes:
        """The newest artifact of the run: a ZIP. HostError if there is none."""
        path = f"actions/runs/{run.id}/artifacts"
        with _readable("actions: read"):
            listed = list(self._api.pages(path, Artifact, "artifacts", name=ARTIFACT))
        found = [one for one in listed if one.name == ARTIFACT and one.run_id == run.id]
        if not found:
            raise HostError(
                f"the run {run.id} left no artifact `{ARTIFACT}`",
                "let its last step upload the report folder with `if: always()`",
            )
        return read_archive(self._api, max(found, key=lambda one: one.id))
