"""A comment with the command `/agentevals run SHA`: the answer to its author, and the job that it
asks for."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from agentevals_action.errors import InvalidInput
from agentevals_action.escaping import prose
from agentevals_action.github import events
from agentevals_action.github.client.api import GitHubApi
from agentevals_action.github.client.replies import PullSides
from agentevals_action.github.events import Job, Pull
from agentevals_action.github.host import GitHubHost
from agentevals_action.github.run_requests import Refused, RunRequests, read_request
from agentevals_action.github.runner import workflow_commands
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.github.runner.workflow_commands import CommandFile
from agentevals_action.model.report import CommentReport
from agentevals_action.model.review import Outcome
from agentevals_action.review.change import base_tree
from agentevals_action.review.change.workspace import ReviewWorkspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository


def answer(runner: RunnerEnvironment, settings: Settings, summary: CommandFile) -> Job | None:
    """The job that a command asks for. None if there is no command. InvalidInput for a request that
    is refused, after its author has been answered; HostError without an answer of GitHub."""
    event = events.Event(runner.event_name, runner.payload(), runner.sha, runner.ref, runner.actor)
    request = read_request(event.payload)
    if request is None:
        print("the text does not begin with `/agentevals`: there is nothing to do")
        return None
    api = GitHubApi(runner.context(settings, runner.sha))
    requests = RunRequests(api)
    pull = requests.pull(request)
    try:
        requests.require_valid(request, pull)
        requests.react(request, "EYES")
        merge, tip = requests.merge_commit(request, pull)
    except Refused as refused:
        requests.react(request, "CONFUSED")
        notices = _report(refused, pull, runner, settings, summary)
        _print((*api.notices, *notices))
        raise InvalidInput(refused.reason, refused.advice) from refused
    _print(api.notices)
    sides = Pull(pull.number, pull.head_sha, pull.base_ref, tip)
    return events.requested_job(event, sides, merge, settings)


def _report(
    refused: Refused,
    pull: PullSides,
    runner: RunnerEnvironment,
    settings: Settings,
    summary: CommandFile,
) -> Iterable[str]:
    """Writes the refusal, and gives what could not be written."""
    sentence = f"The run was refused: {prose(str(refused), 500)}."
    workflow_commands.append_summary(summary, f"{sentence}\n")
    if not refused.is_answered or settings.comment == "off":
        return ()
    context = runner.context(settings, pull.head_sha)
    comment_id = f"{settings.comment_id}.command"
    host = GitHubHost(replace(context, pull=pull.number, comment_id=comment_id))
    host.publish_comment(CommentReport(sentence, Outcome.INVALID, wanted=True))
    return host.notices


def _print(notices: Iterable[str]) -> None:
    for notice in notices:
        print(workflow_commands.command("warning", notice))


async def check_out(repository: GitRepository, merge: str, workspace: ReviewWorkspace) -> None:
    """Puts the workspace on GitHub's merge commit of the requested head, as `on: pull_request` has
    it. The owner of the workspace gets the files that root wrote, as from `actions/checkout`.
    GitError.

    Attack: a workflow that checks out the branch of a pull request gets what was pushed after the
    consent. Or a head leaves the base branch at an old commit, whose tests and judges are weak."""
    if not await repository.has(merge):
        await repository.fetch(merge)  # it brings its parents
    await repository.check_out(merge)
    await asyncio.to_thread(base_tree.restore_owner, (workspace.folder,), workspace.folder)
