"""`mode: publish`: the trusted phase, which reports what the untrusted run of a fork claims. It has
no checkout and starts no program of the pull request."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agentevals_action.errors import InvalidInput
from agentevals_action.github import events
from agentevals_action.github.base import Host
from agentevals_action.github.client.api import GitHubApi
from agentevals_action.github.client.replies import WorkflowRun
from agentevals_action.github.events import Event, Job, Pull
from agentevals_action.github.first_phase import FirstPhase, doubts_about_run, read_completed
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.model.review import Outcome, Review
from agentevals_action.review import gate
from agentevals_action.review.change.workspace import ReviewWorkspace
from agentevals_action.review.claimed_review import CLAIMED, review_claims
from agentevals_action.review.claims import read_claims
from agentevals_action.settings import Settings
from agentevals_action.system import temp_dirs
from agentevals_action.system.git import GitRepository
from agentevals_action.system.isolation import NO_ISOLATION, TRAVERSABLE, Isolation
from agentevals_action.system.protection import protected_checkout

EVENT = "workflow_run"
_PREFIX = "agentevals-trusted-"


@dataclass(frozen=True)
class Claimed:
    """A completed first phase, and the job that reports it. `doubts` are reasons in sentences why
    the run proves no pass."""

    job: Job
    run: WorkflowRun
    phase: FirstPhase
    doubts: tuple[str, ...]


def is_wanted(runner: RunnerEnvironment, settings: Settings) -> bool:
    """Whether the step is a trusted phase."""
    return settings.mode == "publish" or runner.event_name == EVENT


def read(runner: RunnerEnvironment, settings: Settings) -> Claimed:
    """The first phase that the event is about. Raises NothingToPublish, InvalidInput, HostError."""
    if runner.event_name != EVENT:
        raise InvalidInput(
            f"`mode: publish` reports a completed run, and the event is `{runner.event_name}`",
            "use it in a workflow with `on: workflow_run`",
        )
    phase = FirstPhase(GitHubApi(runner.context(settings, runner.sha)))
    run = phase.run(read_completed(runner.payload()))
    sides = phase.pull(run)
    checks = phase.checks(sides)
    phase.require_undecided(sides, checks)
    doubts = doubts_about_run(run, sides, checks)
    event = Event(runner.event_name, {}, runner.sha, runner.ref, runner.actor)
    pull = Pull(sides.number, sides.head_sha, sides.base_ref, sides.base_sha)
    return Claimed(events.published_job(event, pull, settings), run, phase, doubts)


def review(
    claimed: Claimed,
    workspace: ReviewWorkspace,
    runner: RunnerEnvironment,
    host: Host,
    isolates: bool,
) -> Review:
    """The review of the first phase. AgentEvalsError when its results cannot be used."""
    archive = claimed.phase.results(claimed.run)
    claims = read_claims(archive.content, claimed.run.head_sha)
    with _base_tree(claimed.job, workspace, runner, isolates) as (tree, users):
        base = replace(workspace, folder=tree)
        return review_claims(claimed.job, claims, base, host, users, claimed.doubts)


def as_claims(reviewed: Review) -> Review:
    """The review of a first phase whose results cannot be used: a person must request a run.

    Attack: without an artifact, `on-inconclusive: pass` makes the check run green."""
    decision = reviewed.decision
    if decision.outcome is Outcome.INCONCLUSIVE:
        decision = gate.with_action(gate.inconclusive_decision(decision.reasons, "fail"))
    return replace(reviewed, decision=decision, claims=CLAIMED)


@contextmanager
def _base_tree(
    job: Job, workspace: ReviewWorkspace, runner: RunnerEnvironment, isolates: bool
) -> Iterator[tuple[Path, Isolation]]:
    """The tree of base's commit in a new folder, and the users of its programs. GitError."""
    settings, environ = workspace.settings, workspace.environ
    with temp_dirs.locked_folder(_PREFIX, Path(tempfile.gettempdir()).resolve()) as folder:
        tree = folder / "base"
        tree.mkdir()
        repository = GitRepository(tree, settings.github_token, runner.server_url, environ)
        repository.create(f"{runner.server_url}/{runner.repository}.git")
        sha = job.base.revision or ""
        repository.fetch(sha, alone=True)
        repository.check_out(sha)
        if not isolates:
            yield tree, NO_ISOLATION
            return
        folder.chmod(TRAVERSABLE)
        with protected_checkout(repository, (), environ) as users:
            yield tree, users
