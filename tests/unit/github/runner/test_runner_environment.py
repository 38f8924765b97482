"""The facts that the runner gives: typed, with every error at once."""

import json
from pathlib import Path

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.github.runner.runner_environment import RunnerEnvironment

RUNNER = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_EVENT_PATH": "/github/workflow/event.json",
    "GITHUB_REPOSITORY": "acme/agent",
    "GITHUB_SHA": "a" * 40,
    "GITHUB_REF": "refs/pull/7/merge",
    "GITHUB_WORKSPACE": "/github/workspace",
    "GITHUB_RUN_ID": "42",
    "GITHUB_RUN_ATTEMPT": "3",
    "GITHUB_ACTOR": "ada",
}


def test_runner__facts() -> None:
    environ = {**RUNNER, "GITHUB_SERVER_URL": "https://ghe.example/"}
    runner = RunnerEnvironment.from_environ(environ)
    assert (runner.event_name, runner.sha, runner.run_attempt) == ("pull_request", "a" * 40, 3)
    assert runner.run_url == "https://ghe.example/acme/agent/actions/runs/42/attempts/3"
    assert runner.api_url == "https://api.github.com"
    assert runner.output_path is None


def test_runner__another_machine() -> None:
    with pytest.raises(InvalidInput) as caught:
        RunnerEnvironment.from_environ({"PATH": "/bin"})
    assert "the variable GITHUB_EVENT_NAME is missing" in caught.value.errors
    assert len(caught.value.errors) == 4
    assert "review --base" in caught.value.hint


def test_runner__a_commit_that_is_none() -> None:
    with pytest.raises(InvalidInput) as caught:
        RunnerEnvironment.from_environ({**RUNNER, "GITHUB_SHA": "--upload-pack=touch x"})
    assert caught.value.errors == ("the variable GITHUB_SHA is not valid",)


def test_payload__the_event(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(json.dumps({"action": "opened"}))
    runner = RunnerEnvironment.from_environ(
        {**RUNNER, "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
    )
    assert runner.payload() == {"action": "opened"}


@pytest.mark.parametrize("content", [None, "{", "[]", b"\xff"])
def test_payload__unreadable(tmp_path: Path, content: str | bytes | None) -> None:
    path = tmp_path / "event.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidInput, match="the event file"):
        RunnerEnvironment.from_environ({**RUNNER, "GITHUB_EVENT_PATH": str(path)}).payload()
