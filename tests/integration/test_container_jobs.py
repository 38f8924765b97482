"""The jobs of a fork, of a maintainer's request and of a matrix, each as the runner starts it in a
container: with real git over HTTP, and GitHub's API over HTTP."""

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import greeter, payloads
from tests.support.container import (
    RUN_STEP,
    TOKEN,
    give_to_the_runner,
    step,
    step_words,
    with_docker,
)
from tests.support.git_http import served_as_github
from tests.support.github_history import BlobServer, zipped
from tests.support.github_server import GitHubServer
from tests.support.github_world import moment
from tests.support.repositories import Files, PullRequest, pull_request

# A cold build takes its libraries and git from their registries.
pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

NUMBER, RUN, FORK = 7, 900, "mallory/agent"
KEY = "sk-of-the-maintainers-0123456789"
SUITE = greeter.SUITE.replace("polite.sh]}", "polite.sh], required: true}")
#: Answers by name only as a user of its own that sees no key.
AGENT = """\
read name
case $(id -u) in 60801|60802) ;; *) name=user-$(id -u);; esac
cat /proc/self/environ /proc/1/environ 2>/dev/null | tr '\\0' '\\n' | grep -q sk-of && name=key
echo "Good day, $name."
"""
BASE: Files = {
    **greeter.FILES,
    "evals/EVAL.yaml": SUITE,
    ".agentevals.yaml": "watch: agent.sh\n",
    "agent.sh": AGENT,
}


@dataclass
class Runner:
    """GitHub, the repository and a machine for each job; `site` serves the repository."""

    image: str
    folder: Path
    server: GitHubServer
    pull: PullRequest
    site: str
    jobs: int = 0

    def checkout(self, sha: str) -> Path:
        """The workspace of the next job after `actions/checkout`."""
        workspace = self.pull.checkout(self.folder / f"workspace{self.jobs}", sha)
        workspace.git("remote", "set-url", "origin", f"{self.site}/acme/agent.git")
        return workspace.path

    def job(
        self,
        name: str,
        event: Mapping[str, Any],
        workspace: Path,
        sha: str,
        inputs: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        attempt: int = 1,
    ) -> dict[str, Any]:
        """Runs the step of a job to its end; the workspace is the runner's user's before and
        after."""
        self.jobs += 1
        path = self.folder / f"event{self.jobs}.json"
        path.write_text(json.dumps(event))
        known = {
            "GITHUB_SERVER_URL": self.site,
            "GITHUB_SHA": sha,
            "GITHUB_RUN_ID": str(RUN),
            "GITHUB_RUN_ATTEMPT": str(attempt),
        }
        lines = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in known.items())
        give_to_the_runner(workspace)
        words = step_words(
            self.image, workspace, path, self.server, inputs or {}, variables, event_name=name
        )
        done = step(words, path=with_docker(self.folder / f"bin{self.jobs}", lines))
        assert [path for path in workspace.rglob("*") if path.lstat().st_uid != 1001] == []
        assert TOKEN not in done["log"]
        return done

    def conclusions(self) -> list[tuple[str, str | None]]:
        return [(check.head_sha, check.conclusion) for check in self.server.check_runs]


@pytest.fixture
def runner(image: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Runner]:
    """With a pull request of a stranger's fork, which changes the files of the parameter."""
    if not RUN_STEP.is_file() or os.geteuid() != 0:
        pytest.skip(f"the runner's part needs root and {RUN_STEP}")
    pull = pull_request(tmp_path / "origin", BASE, request.param)
    with (
        GitHubServer(token=TOKEN) as server,
        BlobServer() as blobs,
        served_as_github(pull.origin, tmp_path / "site", "acme/agent") as site,
    ):
        server.history.blobs = blobs
        announced = server.add_pull(NUMBER, pull.head, pull.main)
        announced.repository, announced.merge_sha = FORK, pull.merge
        announced.merge_parents = (pull.main, pull.head)
        yield Runner(image, tmp_path, server, pull, site)


def fork_run(sha: str) -> dict[str, Any]:
    """The first phase as GitHub's API has it."""
    return {
        "event": "pull_request",
        "status": "completed",
        "conclusion": "success",
        "head_branch": "feature",
        "head_repository": {"id": 2, "full_name": FORK},
        "run_attempt": 1,
        "created_at": moment(10),
        "run_started_at": moment(10),
        "actor": {"login": "mallory", "id": 102},
    }


@pytest.mark.parametrize("runner", [{"agent.sh": f"{AGENT}# fine\n"}], indirect=True)
def test_publish__reports_the_claims_of_the_first_phase(runner: Runner) -> None:
    server, pull = runner.server, runner.pull
    can_write = server.permissions
    server.permissions = {"contents": "read", "pull-requests": "read", "checks": "read"}
    workspace = runner.checkout(pull.merge)
    event = payloads.pull_request_event(pull.head, pull.main, NUMBER, fork=True)
    first = runner.job("pull_request", event, workspace, pull.merge)
    assert (first["exit"], first["outputs"]["outcome"]) == (0, "passed"), first["log"]
    assert (server.comments, server.check_runs) == ((), ())
    report = {path.name: path.read_bytes() for path in (workspace / "agentevals-report").iterdir()}

    server.permissions = can_write
    server.history.add_run(RUN, pull.head, **fork_run(pull.head))
    completed = payloads.workflow_run_event({"id": RUN, **server.world.workflow_runs[RUN]})
    empty = runner.folder / "empty"
    empty.mkdir()
    server.history.add_artifact(RUN, zipped(report))
    done = runner.job("workflow_run", completed, empty, pull.main)
    assert (done["exit"], done["outputs"]["outcome"]) == (0, "inconclusive"), done["log"]
    assert runner.conclusions() == [(pull.head, "action_required")]
    assert "Claims of an untrusted run" in server.comments[-1].body


@pytest.mark.parametrize("runner", [{"agent.sh": f"{AGENT}# fine\n"}], indirect=True)
def test_request__runs_the_agent_of_head_without_the_key(runner: Runner) -> None:
    server, pull = runner.server, runner.pull
    server.world.permissions = {"ada": "write", "eve": "read"}

    def request(login: str) -> dict[str, Any]:
        command = f"/agentevals run {pull.head}"
        event = payloads.issue_comment_event(command, login, moment(30), NUMBER)
        workspace = runner.checkout(pull.main)
        key = {"OPENAI_API_KEY": KEY}
        return runner.job("issue_comment", event, workspace, pull.main, variables=key)

    refused = request("eve")
    assert (refused["exit"], refused["outputs"]) == (2, {"outcome": "invalid"}), refused["log"]
    assert "eve has no write access to this repository" in refused["summary"]
    assert runner.conclusions() == []
    done = request("ada")
    assert done["exit"] == 0, done["log"]
    assert runner.conclusions() == [(pull.head, "success")]
    assert KEY not in done["log"] + done["summary"] + server.comments[-1].body


def without_times(value: Any) -> Any:
    """A summary without what differs between two runs."""
    if isinstance(value, dict):
        left_out = {"durationMs", "duration", "time", "timestamp"}
        return {key: without_times(item) for key, item in value.items() if key not in left_out}
    return [without_times(item) for item in value] if isinstance(value, list) else value


#: One of the two tests is worse.
WORSE = {"agent.sh": AGENT.replace("read name\n", "read name\ntest $name = Ada && name=you\n")}


@pytest.mark.parametrize("runner", [WORSE], indirect=True)
def test_shards__give_the_review_of_one_job(runner: Runner) -> None:
    pull = runner.pull
    event = payloads.pull_request_event(pull.head, pull.main, NUMBER)

    def job(**inputs: str) -> tuple[dict[str, Any], Path]:
        workspace = runner.checkout(pull.merge)
        if inputs.get("mode") == "merge":
            shutil.copytree(runner.folder / "shards", workspace / "agentevals-report/shards")
        return runner.job("pull_request", event, workspace, pull.merge, inputs), workspace

    for number in (1, 2):
        done, workspace = job(shard=f"{number}/2")
        assert done["exit"] == 0, done["log"]
        shutil.copytree(workspace / "agentevals-report", runner.folder / f"shards/{number}")
    merged, workspace = job(mode="merge")
    assert runner.conclusions() == [(pull.head, "failure")], merged["log"]
    whole, alone = job()
    assert (merged["exit"], merged["outputs"]["regressions"]) == (whole["exit"], "1") == (1, "1")
    changes = [
        json.loads((each / "agentevals-report/summary.json").read_text())["changes"]
        for each in (workspace, alone)
    ]
    assert changes[0] == changes[1]
