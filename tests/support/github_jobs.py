"""The runner, the settings and the job of a gate on a pull request of the stand-in for GitHub."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentevals_action.github.api import GitHubApi
from agentevals_action.github.host import GitHubHost
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.model.job import BaseRule, Job, PullRequest
from agentevals_action.settings import Settings
from tests.support.github_server import GitHubServer

HEAD, BASE = "a" * 40, "b" * 40


def runner(
    server: GitHubServer, run: int = 50, attempt: int = 1, **facts: Any
) -> RunnerEnvironment:
    """The runner of a job, which reaches the stand-in."""
    given: dict[str, Any] = {
        "event_name": "pull_request",
        "repository": server.world.full_name,
        "sha": HEAD,
        "workspace": Path("/"),
        "api_url": server.url,
        "run_id": run,
        "run_attempt": attempt,
    }
    return RunnerEnvironment(**(given | facts))


def no_wait(seconds: float) -> None:
    """Waits for nothing."""


def api(
    server: GitHubServer, sleep: Callable[[float], None] = no_wait, **options: Any
) -> GitHubApi:
    """A connection to the stand-in."""
    return GitHubApi(runner(server), server.token, sleep, **options)


def pull_job(head: str = HEAD, **facts: Any) -> Job:
    """The job of the pull request 7."""
    given: dict[str, Any] = {
        "event": "pull_request",
        "select": "changed",
        "head_sha": head,
        "heads": (head,),
        "base": BaseRule("pull", BASE),
        "fail_on": frozenset({"gates"}),
        "pull": PullRequest(number=7, head_sha=head, base_ref="main", base_sha=BASE),
    }
    return Job(**(given | facts))


def host(
    server: GitHubServer,
    sleep: Callable[[float], None],
    run: int = 50,
    attempt: int = 1,
    job: Job | None = None,
    token: str | None = None,
    **settings: Any,
) -> GitHubHost:
    """The host of a job of the pull request 7."""
    inputs = Settings(github_token=server.token if token is None else token, **settings)
    return GitHubHost(runner(server, run, attempt), inputs, job or pull_job(), sleep)
