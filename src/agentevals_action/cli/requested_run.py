"""A comment or a review with the command `/agentevals`: the answer to its author, and the job that
it asks for."""

from collections.abc import Sequence
from dataclasses import replace

from agentevals_action.errors import InvalidInput
from agentevals_action.escaping import prose
from agentevals_action.github import events
from agentevals_action.github.client.api import GitHubApi
from agentevals_action.github.client.replies import PullSides
from agentevals_action.github.events import Job, Pull
from agentevals_action.github.host import GitHubHost
from agentevals_action.github.run_requests import (
    RUN,
    USAGE,
    Refusal,
    RunCommand,
    RunRequest,
    RunRequests,
    parse_command,
    read_request,
)
from agentevals_action.github.runner import workflow_commands
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.github.runner.workflow_commands import CommandFile
from agentevals_action.model.report import CheckReport, CommentReport
from agentevals_action.model.review import Outcome
from agentevals_action.review import gate
from agentevals_action.review.change import base_tree
from agentevals_action.review.change.workspace import ReviewWorkspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

_HELP = (
    f"{USAGE}\n\n"
    "- `suite`: the path of a suite, or of a folder with suites. Without one, the suites run that "
    "the change affects.\n"
    "- `--test GLOB`: only the tests with such ids; may be repeated.\n"
    "- `--samples N`: samples per test.\n\n"
    "A run of a part never turns the check green. The run is for the commit that was the head of "
    "the pull request when the command was written."
)
_TITLE = "A person with write access must request the run"


def answer(
    runner: RunnerEnvironment, settings: Settings, summary: CommandFile
) -> tuple[Job, Settings] | None:
    """The job that a command asks for, with its settings. None if there is nothing to do: no
    command, or `help`. InvalidInput for a request that is refused, after its author has been
    answered; HostError without an answer of GitHub."""
    event = events.Event(runner.event_name, runner.payload(), runner.sha, runner.ref, runner.actor)
    request = read_request(event.name, event.payload)
    if request is None:
        print("the text does not begin with `/agentevals`: there is nothing to do")
        return None
    api = GitHubApi(runner.context(settings, runner.sha))
    requests = RunRequests(api)
    pull = requests.pull(request)
    context = replace(
        runner.context(settings, pull.head_sha),
        pull=pull.number,
        check_name=settings.check_name if settings.check_run else None,
        comment_id=f"{settings.comment_id}.command",
    )
    host = GitHubHost(context)
    refusal = requests.refuse_author(request)
    command = None if refusal else _command(request)
    if isinstance(command, RunCommand) and not command.is_help:
        refusal = requests.refuse_commit(request, pull)
    elif isinstance(command, Refusal):
        refusal = command
    if refusal:
        requests.react(request, "CONFUSED")
        _report(refusal, pull, host, requests, settings, summary)
        _print((*api.notices, *host.notices))
        raise InvalidInput(refusal.reason, refusal.advice)
    requests.react(request, "EYES")
    _print(api.notices)
    if not isinstance(command, RunCommand) or command.is_help:
        host.publish_comment(CommentReport(_HELP, Outcome.PASSED, wanted=True))
        _print(host.notices)
        return None
    sides = Pull(pull.number, pull.head_sha, pull.base_ref, pull.base_sha, merge_sha=pull.merge_sha)
    job = events.requested_job(event, sides, command.part, settings)
    samples = {"samples": command.samples} if command.samples else {}
    return job, settings.model_copy(update=samples)


def _command(request: RunRequest) -> RunCommand | Refusal:
    try:
        return parse_command(request.body)
    except ValueError as error:
        return Refusal(f"the command is not valid: {error}", f"write {USAGE}", is_answered=True)


def _report(
    refusal: Refusal,
    pull: PullSides,
    host: GitHubHost,
    requests: RunRequests,
    settings: Settings,
    summary: CommandFile,
) -> None:
    """Writes the refusal. A required check that does not exist yet gets one that asks for a person;
    one that exists stays.

    Attack: somebody who may not request a run turns a green check run into another one."""
    sentence = f"The run was refused: {prose(refusal.sentence, 500)}."
    workflow_commands.append_summary(summary, f"{sentence}\n")
    if not pull.closed and settings.check_run and not requests.has_check(pull, settings.check_name):
        advice = f"A person with write access to the repository can comment `{RUN}`."
        host.write_check(CheckReport(gate.ACTION_REQUIRED, _TITLE, f"{sentence}\n\n{advice}"))
    if refusal.is_answered and settings.comment != "off":
        host.publish_comment(CommentReport(sentence, Outcome.INVALID, wanted=True))


def _print(notices: Sequence[str] | dict[str, None]) -> None:
    for notice in notices:
        print(workflow_commands.command("warning", notice))


def check_out(repository: GitRepository, job: Job, workspace: ReviewWorkspace) -> None:
    """Puts the workspace on GitHub's merge commit of the requested head, as `on: pull_request` has
    it, or without one (a conflict) on that head. The owner of the workspace gets the files that
    root wrote, as from `actions/checkout`. GitError.

    Attack: a workflow that checks out the branch of a pull request gets what was pushed after the
    consent. Or a head leaves the base branch at an old commit, whose tests and judges are weak."""
    merge = job.pull.merge_sha if job.pull else None
    for commit in filter(None, (merge, job.head_sha)):  # a merge commit brings its parents
        if not repository.has(commit):
            repository.fetch(commit)
    is_of_head = merge is not None and repository.parents(merge)[1:] == (job.head_sha,)
    repository.check_out(merge if merge and is_of_head else job.head_sha)
    base_tree.restore_owner((workspace.folder,), workspace.folder)
