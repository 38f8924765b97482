"""A pull request on several jobs: the plan and the shards write nothing on GitHub, the merge writes
the check run and the comment."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import payloads
from tests.support.github_history import BlobServer, zipped
from tests.support.github_server import GitHubServer
from tests.support.github_world import moment
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
    shards as artifacts. With `downloads` false, no job but the shards gets them."""

    downloads = True

    def __init__(self, folder: Path, server: GitHubServer, pull: PullRequest) -> None:
        self.folder, self.server, self.pull = folder, server, pull
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir()
        self.jobs = 0
        server.add_pull(NUMBER, pull.head, pull.main)

    def job(self, attempt: int = 1, edits: Files | None = None, **inputs: str) -> Finished:
        """The next job, with the artifacts of those before it; a step before it makes `edits`."""
        self.jobs += 1
        folder = self.folder / f"job{self.jobs}"
        workspace = self.pull.checkout(folder / "workspace", self.pull.merge, 2)
        workspace.write(edits or {})
        shared = workspace.path / "agentevals-report/shards"
        if self.downloads or "shard" in inputs:
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
    for shard in ("1/2", "2/2"):
        done = workflow.job(shard=shard)
        assert done.code == 0, done.log  # a failed test is for the merge to judge
        assert f"shard {shard}: 2 tests ran" in done.summary
    assert not workflow.server.check_runs
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
def test_merge__without_the_plan_is_a_red_check(workflow: Workflow) -> None:
    """Accident: the files of the plan could not be uploaded."""
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


Facts = dict[str, Any]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """A plan and its two shards, in a run whose first merge has yet to start."""
    folder = tmp_path_factory.mktemp("ran")
    pull = pull_request(folder / "origin", BASE, {"agent.sh": BROKEN})
    with GitHubServer() as server:
        workflow = Workflow(folder, server, pull)
        done = [workflow.job(mode="plan"), workflow.job(shard="1/2"), workflow.job(shard="2/2")]
    assert [one.code for one in done] == [0, 0, 0]
    return workflow


@pytest.fixture
def uploaded(ran: Workflow, tmp_path: Path) -> Iterator[Workflow]:
    """The merge of these shards, which finds no folder."""
    with GitHubServer() as server, BlobServer() as blobs:
        server.history.blobs = blobs
        workflow = Workflow(tmp_path, server, ran.pull)
        workflow.downloads = False
        for path in ran.artifacts.iterdir():
            shutil.copy(path, workflow.artifacts)
        yield workflow


def upload(workflow: Workflow, name: str, files: Sequence[str], **facts: Any) -> None:
    content = zipped({one: (workflow.artifacts / one).read_bytes() for one in files})
    workflow.server.history.add_artifact(RUN, content, name, **facts)


def fragment(shard: int, attempt: int = 1) -> str:
    return f"shard-{shard}-of-2-attempt-{attempt}.jsonl"


def upload_all(workflow: Workflow) -> None:
    """As the reusable workflow does, and a report that is no fragment."""
    upload(workflow, "agentevals-plan", ["plan.json", "base.json"])
    for number in (1, 2):
        upload(workflow, f"agentevals-shard-{number - 1}-attempt-1", [fragment(number)])
    workflow.server.history.add_artifact(RUN, b"<html>", "agentevals-report-x.html")


@pytest.mark.slow
def test_artifacts__of_the_run_are_merged_as_the_files_of_a_folder(uploaded: Workflow) -> None:
    upload_all(uploaded)
    workspace = uploaded.folder / "job1/workspace/agentevals-report"
    merged = uploaded.job(mode="merge")
    assert (merged.code, merged.outputs["regressions"]) == (1, "1"), merged.log
    assert not (workspace / "shards").exists()
    uploaded.downloads = True
    again = uploaded.job(mode="merge")
    reports = [
        json.loads((uploaded.folder / job / "workspace/agentevals-report/summary.json").read_text())
        for job in ("job1", "job2")
    ]
    assert [one["suites"][0]["tests"] for one in reports[:1]] == [
        one["suites"][0]["tests"] for one in reports[1:]
    ]
    assert again.outputs["outcome"] == merged.outputs["outcome"]


@pytest.mark.slow
def test_artifacts__the_newest_attempt_of_a_shard_wins(uploaded: Workflow) -> None:
    """The first attempt of shard 2 was killed. Both have the same name of an artifact."""
    done = uploaded.job(attempt=2, shard="2/2")
    assert done.code == 0, done.log
    upload(uploaded, "agentevals-shard-0", ["plan.json"], created_at=moment(5), expired=True)
    upload_all(uploaded)
    first = uploaded.artifacts / fragment(2)
    first.write_bytes(first.read_bytes().splitlines(keepends=True)[0])
    uploaded.server.history.artifacts.pop(-2)
    upload(uploaded, "agentevals-shard-1", [fragment(2)])
    upload(uploaded, "agentevals-shard-1", [fragment(2, 2)])
    merged = uploaded.job(attempt=2, mode="merge")
    assert "no complete results" not in merged.log
    assert (merged.code, merged.outputs["regressions"]) == (1, "1"), merged.log


def bomb(stated: int) -> bytes:
    """Zeros as the fragment, 40 MiB of them; the archive states another size."""
    content = bytearray(zipped({fragment(1): bytes(40 << 20)}))
    at = content.index(b"PK\1\2") + 24  # of the list of files, APPNOTE 4.3.12
    content[at : at + 4] = stated.to_bytes(4, "little")
    return bytes(content)


def renamed() -> bytes:
    """A name in front of the file that is no text, and another one in the list of files."""
    content = zipped({fragment(1): b"{}\n"})
    local = b"PK\3\4" + content[4:6] + b"\0\x08" + content[8:]  # the flag of a name in UTF-8
    return local.replace(b"shard", b"\xffhard", 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "facts", "reason"),
    [
        (None, {}, ""),
        (b"PK", {}, "`agentevals-shard-0-attempt-1` is not used: it is not a valid ZIP"),
        (
            bomb(2 << 30),
            {},
            "is not used: it is too large: the files of all are over 1,024 MiB",
        ),
        (bomb(10), {}, "is not used: it cannot be read: the archive is damaged (BadZipFile)"),
        (zipped({fragment(2): b"[" * 1000}), {}, "is not used: it is truncated"),
        (zipped({f"../{fragment(1)}": b"{}\n"}), {}, "is not used: it is not valid on line 1"),
        (zipped({"other.jsonl": b""}), {}, ""),
        (
            renamed(),
            {},
            "is not used: it cannot be read: the archive is damaged (UnicodeDecodeError)",
        ),
        (b"", {"expired": True}, "the artifact `agentevals-shard-0-attempt-1` has expired"),
        (b"", {"size": 65 << 20}, "the artifact `agentevals-shard-0-attempt-1` is larger than 64"),
        (b"", {"of_run": RUN - 1}, ""),
    ],
)
def test_artifacts__one_that_cannot_be_used_is_named(
    uploaded: Workflow, content: bytes | None, facts: Facts, reason: str
) -> None:
    history = uploaded.server.history
    upload_all(uploaded)
    history.artifacts[:] = [one for one in history.artifacts if "shard-0" not in one.name]
    if content is not None:
        history.add_artifact(RUN, content, "agentevals-shard-0-attempt-1", **facts)
    merged = uploaded.job(mode="merge")
    assert merged.code == 3, merged.log
    assert uploaded.server.check_runs[-1].conclusion == "failure"
    assert reason in merged.log
    assert "shard 1 has no complete results: its fragment is missing" in merged.log


@pytest.mark.parametrize(
    ("actions", "kept", "code", "reason"),
    [
        (
            "none",
            "",
            3,
            "the artifacts of this run could not be listed: the token lacks `actions: read`",
        ),
        ("read", "shard", 2, "this run has no artifact `agentevals-plan`"),
        ("read", "expired", 3, "the artifact `agentevals-plan` has expired"),
        ("read", "damaged", 2, "the artifact `agentevals-plan` is not a valid ZIP"),
        ("read", "empty", 2, "`plan.json` of the artifact `agentevals-plan` cannot be read"),
    ],
)
def test_artifacts__without_the_plan_the_check_is_red(
    uploaded: Workflow, actions: str, kept: str, code: int, reason: str
) -> None:
    server = uploaded.server
    server.permissions["actions"] = actions
    upload_all(uploaded)
    plan = server.history.artifacts[0]
    if kept == "shard":
        server.history.artifacts.remove(plan)
    plan.expired = kept == "expired"
    if kept in ("damaged", "empty"):
        assert server.history.blobs
        server.history.blobs.blobs[f"/blob/{plan.id}"] = b"PK" if kept == "damaged" else zipped({})
    merged = uploaded.job(mode="merge")
    assert merged.code == code, merged.log
    assert reason in merged.log
    (check,) = server.check_runs
    assert (check.status, check.conclusion) == ("completed", "failure")


def test_artifacts__without_a_token_the_outcome_is_inconclusive(uploaded: Workflow) -> None:
    merged = uploaded.job(mode="merge", github_token="")
    assert (merged.code, merged.outputs["outcome"]) == (3, "inconclusive"), merged.log
    assert "the artifacts of this run could not be listed: " in merged.log
