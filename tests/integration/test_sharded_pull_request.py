"""A pull request on several jobs: the plan opens the check run, the merge completes it and writes
the comment."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support import payloads
from tests.support.github_server import GitHubServer
from tests.support.github_world import file
from tests.support.job import Finished, Job
from tests.support.repositories import Files, PullRequest, pull_request

NUMBER = 7
RUN = 1000
SUITE = "\n".join(
    [
        "name: greeter",
        "tests:",
        *(
            f"  - {{id: t{number}, input: Ada{number}, criteria: greets, "
            "assert: [{type: contains, value: Ada, required: true}]}"
            for number in range(4)
        ),
    ]
)
TARGETS = "targets:\n  - {name: default, provider: cli, command: [sh, agent.sh], cwd: /}\n"
AGENT = 'read name; echo "Good day, $name."\n'
BROKEN = 'read name; case $name in *2) echo "Good day.";; *) echo "Good day, $name.";; esac\n'
BASE: Files = {"evals/EVAL.yaml": SUITE, ".agentv/targets.yaml": TARGETS, "agent.sh": AGENT}


class Workflow:
    """A run of the workflow: its jobs have checkouts of their own, and share the folder of the
    shards as artifacts."""

    def __init__(self, folder: Path, server: GitHubServer, pull: PullRequest) -> None:
        self.folder, self.server, self.pull = folder, server, pull
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir()
        self.jobs = 0
        server.add_pull(NUMBER, pull.head, pull.main, [file("agent.sh")])

    def job(self, attempt: int = 1, edits: Files | None = None, **inputs: str) -> Finished:
        """The next job, with the artifacts of those before it; a step before it makes `edits`."""
        self.jobs += 1
        folder = self.folder / f"job{self.jobs}"
        workspace = self.pull.checkout(folder / "workspace", self.pull.merge)
        workspace.write(edits or {})
        shared = workspace.path / "agentevals-report/shards"
        shutil.copytree(self.artifacts, shared)
        event = payloads.pull_request_event(self.pull.head, self.pull.main, NUMBER)
        given: Mapping[str, str] = {
            **{name.replace("_", "-"): value for name, value in inputs.items()},
            "target-seconds": "1",
            "max-concurrency": "1",
            "max-shards": "2",
        }
        done = Job(
            workspace.path,
            self.server,
            event,
            self.pull.merge,
            folder / "runner",
            run=RUN,
            attempt=attempt,
            inputs=given,
        ).finish()
        if inputs.get("mode") == "plan":
            for name in ("plan.json", "base.json"):
                if (shared / name).exists():
                    shutil.copy(shared / name, self.artifacts)
        elif path := done.outputs.get("fragment-path"):
            shutil.copy(workspace.path / path, self.artifacts)
        return done


@pytest.fixture
def workflow(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workflow]:
    change: Files = {"agent.sh": request.param}
    pull = pull_request(tmp_path / "origin", BASE, change)
    with GitHubServer() as server:
        yield Workflow(tmp_path, server, pull)


@pytest.mark.slow
@pytest.mark.parametrize("workflow", [BROKEN], indirect=True)
def test_shards__one_check_run_and_one_comment(workflow: Workflow) -> None:
    planned = workflow.job(mode="plan")
    assert planned.code == 0, planned.log
    assert json.loads(planned.outputs["matrix"]) == {"shard": ["1/2", "2/2"]}
    (check,) = workflow.server.check_runs
    assert (check.status, check.head_sha) == ("in_progress", workflow.pull.head)
    for shard in ("1/2", "2/2"):
        done = workflow.job(shard=shard)
        assert done.code == 0, done.log  # a failed test is for the merge to judge
        assert f"shard {shard}: 2 tests ran" in done.summary
    assert len(workflow.server.check_runs) == 1
    assert not workflow.server.comments
    merged = workflow.job(mode="merge")
    assert merged.code == 1, merged.log
    (check,) = workflow.server.check_runs
    assert (check.status, check.conclusion) == ("completed", "failure")
    (comment,) = workflow.server.comments
    assert "t2" in comment.body
    assert merged.outputs["regressions"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize("workflow", [AGENT.replace("Good", "A good")], indirect=True)
def test_shards__a_shard_that_is_run_again_turns_the_check_green(workflow: Workflow) -> None:
    assert workflow.job(mode="plan").code == 0
    assert workflow.job(shard="1/2").code == 0
    killed = workflow.job(mode="merge")
    assert killed.code == 3, killed.log
    assert workflow.server.check_runs[-1].conclusion == "failure"
    assert "shard 2 has no complete results: its fragment is missing" in killed.log
    assert workflow.job(attempt=2, shard="2/2").code == 0
    merged = workflow.job(attempt=2, mode="merge")
    assert merged.code == 0, merged.log
    assert workflow.server.check_runs[-1].conclusion == "success"
    assert "Passed" in workflow.server.comments[-1].body


@pytest.mark.slow
@pytest.mark.parametrize("workflow", [BROKEN], indirect=True)
def test_shards__invalid_inputs_of_one_shard_are_named(workflow: Workflow) -> None:
    assert workflow.job(mode="plan").code == 0
    assert workflow.job(shard="1/2").code == 0
    refused = workflow.job(shard="2/2", samples="3")
    assert refused.code == 2
    assert "differ from those of the plan: `samples`" in refused.log
    merged = workflow.job(mode="merge")
    assert "shard 2 has no complete results: the inputs of this job differ" in merged.log
    assert workflow.server.check_runs[-1].conclusion == "failure"


@pytest.mark.parametrize("workflow", [BROKEN], indirect=True)
def test_plan__what_cannot_be_planned_is_a_red_check(workflow: Workflow) -> None:
    done = workflow.job(mode="plan", shard="1/2")
    assert done.code == 2
    assert "input `shard`: `mode: plan` runs no shard" in done.log
    (check,) = workflow.server.check_runs
    assert (check.status, check.conclusion) == ("completed", "failure")


@pytest.mark.parametrize("workflow", [AGENT], indirect=True)
def test_merge__without_the_plan_completes_its_check_run(workflow: Workflow) -> None:
    """Accident: the plan opened the check run, and its files could not be uploaded."""
    assert workflow.job(mode="plan").code == 0
    (workflow.artifacts / "plan.json").unlink()
    merged = workflow.job(mode="merge")
    assert merged.code == 2, merged.log
    assert "plan.json cannot be read: No such file or directory" in merged.log
    (check,) = workflow.server.check_runs
    assert (check.status, check.conclusion) == ("completed", "failure")


@pytest.mark.slow
@pytest.mark.parametrize("workflow", [BROKEN], indirect=True)
def test_merge__names_the_files_that_differ_from_the_commit_on_a_shard(workflow: Workflow) -> None:
    """Attack: an install script of the change, which a step before the action runs, removes a gate
    on the shards and not where they are merged."""
    assert workflow.job(mode="plan").code == 0
    weak: Files = {"evals/EVAL.yaml": SUITE.replace("value: Ada", "value: Good")}
    for shard in ("1/2", "2/2"):
        assert workflow.job(edits=weak, shard=shard).code == 0
    merged = workflow.job(mode="merge")
    notice = "evals/EVAL.yaml differs from the commit: the review is of what was on disk"
    assert notice in workflow.server.comments[-1].body.replace("`", ""), merged.log
