"""The first phase of a pull request that gets no token: its run, its pull request, and the results
that it left as an artifact. All that is known about them is from GitHub's API."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from github.WorkflowRun import WorkflowRun
from pydantic import AliasPath, Field

from agentevals_action.errors import HostError
from agentevals_action.github.api import GitHubApi, as_host_errors
from agentevals_action.github.artifact_archives import read_archive
from agentevals_action.github.check_run import branch_digest, read_id
from agentevals_action.github.events import DEPENDABOT, Payload, PullRequest, read_payload

#: The artifact of the first phase.
ARTIFACT = "agentevals-report"
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
            run = self._api.repository.get_workflow_run(completed.id).complete()
            is_own = self._head_repository(run) == self._api.full_name
            is_dependabot = run.actor is not None and run.actor.login == DEPENDABOT
        if completed.action != "completed" or run.status != "completed":
            raise NothingToPublish(f"the run {run.id} is not completed")
        if run.event != "pull_request":
            raise NothingToPublish(f"the run {run.id} is not that of a pull request")
        if run.run_attempt != completed.attempt:
            raise NothingToPublish(f"the run {run.id} has a newer attempt")
        if is_own and not is_dependabot:
            raise NothingToPublish(
                f"the run {run.id} is of a branch of this repository, and reported itself"
            )
        self._run = run

    def pull(self) -> PullRequest:
        """The open pull request whose head the run is of. Raises NothingToPublish.

        Attack: the artifact, or the event's list of pull requests, names another pull request. For
        a fork that list is empty."""
        run = self._run
        repository = self._head_repository(run)
        if not repository or not run.head_branch:
            raise NothingToPublish("the repository of the pull request's head is gone")
        head = f"{repository.partition('/')[0]}:{run.head_branch}"
        with _readable("pull-requests: read"):
            listed = self._api.repository.get_pulls(state="all", head=head)
            pulls = [
                pull for pull in listed if pull.head.repo and pull.head.repo.full_name == repository
            ]
            opened = [
                PullRequest.from_reply(pull.raw_data) for pull in pulls if pull.state == "open"
            ]
        current = [pull for pull in opened if pull.head_sha == run.head_sha]
        if len(current) == 1:
            return current[0]
        if current:
            numbers = ", ".join(str(pull.number) for pull in current)
            raise NothingToPublish(f"the pull requests {numbers} have the same head")
        if opened:
            raise NothingToPublish(
                f"the head of the pull request {opened[0].number} has moved from "
                f"{run.head_sha[:12]} to {opened[0].head_sha[:12]}"
            )
        if pulls:
            latest = max(pulls, key=lambda pull: pull.number)
            word = "merged" if latest.merged_at else "closed"
            raise NothingToPublish(f"the pull request {latest.number} is {word}")
        raise NothingToPublish(f"no pull request has the head of the run {run.id}")

    def require_undecided(self, pull: PullRequest) -> None:
        """Raises NothingToPublish if a requested run has decided about this head and base branch.

        Attack: after a red requested run, the author closes and opens the pull request, which
        starts another first phase with better claims."""
        with _readable("checks: write"):
            checks = list(
                self._api.repository.get_commit(pull.head_sha).get_check_runs(filter="all")
            )
        branch = branch_digest(pull.base_ref)
        for check in checks:
            own = read_id(check.external_id)
            if own and own.gate == self._gate and own.requested_for == branch:
                raise NothingToPublish(
                    f"the run {own.run}, which a maintainer requested, decides about the head"
                )

    def results(self) -> bytes:
        """The newest artifact of the run: a ZIP. HostError if there is none."""
        run = self._run
        with _readable("actions: read"):
            found = [
                artifact
                for artifact in run.get_artifacts()
                if artifact.name == ARTIFACT and artifact.workflow_run.id == run.id
            ]
        if not found:
            raise HostError(
                f"the run {run.id} left no artifact `{ARTIFACT}`",
                "let its last step upload the report folder with `if: always()`",
            )
        return read_archive(self._api, max(found, key=lambda artifact: artifact.id))

    @staticmethod
    def _head_repository(run: WorkflowRun) -> str | None:
        """The full name of the repository of the head, None if it is gone."""
        return run.head_repository.full_name if run.head_repository else None
