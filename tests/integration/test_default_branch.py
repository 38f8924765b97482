"""What the default branch came to is remembered, and pull requests start from it instead of running
the base again."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import payloads
from tests.support.github_server import GitHubServer
from tests.support.github_world import file
from tests.support.job import Finished, Job
from tests.support.repositories import Files, PullRequest, pull_request

SUITE = """\
name: greeter
tests:
  - {id: greets, input: Ada, assert: [{type: contains, value: Good day}]}
  - {id: short, input: Bob, assert: [{type: regex, value: "^.{0,40}$"}]}
"""
TARGETS = "targets:\n  - {name: default, provider: cli, command: [sh, agent.sh], cwd: /}\n"
GOOD = 'echo "$(pwd)" >> "$CALLS"; read name; echo "Good day, $name."\n'
BASE: Files = {"evals/EVAL.yaml": SUITE, ".agentv/targets.yaml": TARGETS, "agent.sh": GOOD}
RUDE = GOOD.replace("Good day", "Hey")


class Workflow:
    """A repository whose workflow runs on pushes and on pull requests. `calls` notes where each
    call of the agent was made."""

    def __init__(self, folder: Path, server: GitHubServer, change: Files) -> None:
        self.folder, self.server, self.runs = folder, server, 1000
        self.pull: PullRequest = pull_request(folder / "origin", BASE, change)
        self.calls = folder / "calls"
        server.add_pull(7, self.pull.head, self.pull.main, [file(path) for path in change])

    def job(self, name: str, sha: str, event: Mapping[str, Any], **inputs: str) -> Finished:
        self.runs += 1
        folder = self.folder / str(self.runs)
        workspace = self.pull.checkout(folder / "workspace", sha, 2)
        env = {"CALLS": str(self.calls)}
        given = {
            "env": "CALLS",
            "watch": "agent.sh",
            **{name.replace("_", "-"): value for name, value in inputs.items()},
        }
        self.calls.write_text("")
        return Job(
            workspace.path,
            self.server,
            event,
            sha,
            folder / "runner",
            name,
            self.runs,
            inputs=given,
            env=env,
        ).finish()

    def push(self, **inputs: str) -> Finished:
        return self.job(
            "push", self.pull.main, payloads.push_event("0" * 40, self.pull.main), **inputs
        )

    def schedule(self, **inputs: str) -> Finished:
        return self.job("schedule", self.pull.main, payloads.schedule_event(), **inputs)

    def review(self, **inputs: str) -> Finished:
        event = payloads.pull_request_event(self.pull.head, self.pull.main, 7)
        return self.job("pull_request", self.pull.merge, event, **inputs)

    def called(self) -> tuple[int, int]:
        """How often the agent was called in the workspace, and elsewhere: in the base's tree."""
        folders = self.calls.read_text().split()
        here = sum(f"/{self.runs}/workspace" in folder for folder in folders)
        return here, len(folders) - here


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as running:
        running.permissions["contents"] = "write"
        yield running


def test_push__its_results_spare_the_pull_request_the_base(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD + "# tidied\n"})
    assert flow.push().code == 0
    done = flow.review()
    assert done.code == 0, done.log
    assert flow.called() == (2, 0), done.summary


def test_push__a_token_that_may_not_write_is_a_notice_and_no_failure(
    tmp_path: Path, server: GitHubServer
) -> None:
    server.permissions["contents"] = "read"
    done = Workflow(tmp_path, server, {"agent.sh": GOOD + "# tidied\n"}).push()
    assert done.code == 0
    assert "Add `contents: write`" in done.log


def test_schedule__more_samples_are_the_history_that_a_fall_is_held_against(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": RUDE})
    assert flow.push(samples="3").code == 0
    assert flow.schedule(samples="3").code == 0
    done = flow.review()
    assert done.code == 1, done.log
    assert done.outputs["regressions"] == "1"
    head, base = flow.called()
    assert (2 < head <= 8, base) == (True, 0)  # fresh samples of head alone: six of base are enough


def test_review__without_stored_results_the_base_is_run_and_the_report_states_it(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD + "# tidied\n"})
    done = flow.review()
    assert done.code == 0, done.log
    assert flow.called() == (2, 2)


def test_push__with_another_baseline_nothing_is_written(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD + "# tidied\n"})
    assert flow.push(baseline="rerun").code == 0
    assert flow.review().code == 0
    assert flow.called() == (2, 2)


def test_review__a_named_branch_that_has_nothing_is_no_pass(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": RUDE})
    done = flow.review(baseline="branch")
    assert done.code == 3, done.log
    assert "could not be obtained" in done.summary


def test_history__is_on_the_branch_in_the_push_and_in_the_summary(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD + "# tidied\n"})
    first = flow.push()
    assert "mermaid" not in first.summary  # one commit makes no line
    head = flow.pull.head
    pushed = flow.job("push", head, payloads.push_event(flow.pull.main, head))
    assert pushed.code == 0, pushed.log
    report = tmp_path / str(flow.runs) / "workspace" / "agentevals-report"
    page = (report / "history.html").read_text(encoding="utf-8")
    assert page == server.git.files("agentevals-data")["history.html"]
    for words in ("evals/EVAL.yaml", flow.pull.main[:12], head[:12]):
        assert words in page
    done = flow.review()
    assert done.code == 0, done.log
    for summary in (pushed.summary, done.summary):
        assert "### Pass rate over the last 2 commits\n\n```mermaid\n" in summary
        assert f'x-axis ["{flow.pull.main[:7]}", "{head[:7]}"]' in summary
        assert "line [100.0, 100.0]" in summary
    assert not (tmp_path / str(flow.runs) / "workspace/agentevals-report/history.html").exists()
