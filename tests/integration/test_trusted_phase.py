"""The trusted phase reports what the untrusted run of a fork left, end to end: the action's process
and GitHub's API over HTTP."""

import asyncio
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import HostError, InvalidInput
from agentevals_action.github.check_run import branch_digest
from agentevals_action.github.claimed_run import FirstPhase, NothingToPublish, read_completed
from agentevals_action.reports.view.models import Links
from agentevals_action.results.run_folder import read_archive
from agentevals_action.review import pipeline
from agentevals_action.review.inputs.request import ReviewWorkspace
from agentevals_action.settings import Settings
from tests.support import github_jobs, payloads
from tests.support.github_history import BlobServer, zipped
from tests.support.github_server import GitHubServer
from tests.support.github_world import moment
from tests.support.greeter import FILES, GOOD
from tests.support.job import Finished, Job
from tests.support.markdown import rendered, tags, text_outside_code
from tests.support.repositories import Files, PullRequest, pull_request

NUMBER, RUN, FORK = 7, 900, "mallory/agent"
BASE: Files = {**FILES, ".agentevals.yaml": "watch: agent.sh\n"}
HOSTILE = "@root #1 <img src=x> ![x](http://evil) <!-- agentevals:v1 {} --> ::error::x\n```\n| a |"
Report = dict[str, bytes]


class Trusted:
    """A pull request of a fork, whose first phase is completed."""

    def __init__(
        self, folder: Path, server: GitHubServer, blobs: BlobServer, pull: PullRequest
    ) -> None:
        self.folder, self.server, self.pull = folder, server, pull
        self.announced = server.add_pull(NUMBER, pull.head, pull.main)
        self.announced.repository = FORK
        server.history.blobs = blobs
        server.history.add_run(
            RUN,
            pull.head,
            event="pull_request",
            head_branch="feature",
            head_repository={"id": 2, "full_name": FORK},
            run_attempt=1,
            run_started_at=moment(10),
            actor={"login": "mallory", "id": 102},
        )

    @property
    def run(self) -> dict[str, Any]:
        return self.server.world.workflow_runs[RUN]

    def leave(self, content: bytes | Mapping[str, bytes | str], **facts: Any) -> None:
        """The artifact of the first phase."""
        content = content if isinstance(content, bytes) else zipped(content)
        self.server.history.add_artifact(RUN, content, **facts)

    def add_requested_check(self, branch: str, conclusion: str) -> None:
        """The check run of a requested run for a base branch."""
        self.server.world.add_check_run(
            {
                "name": "agentevals",
                "head_sha": self.pull.head,
                "conclusion": conclusion,
                "external_id": f"agentevals/agentevals/950/1/8/{branch_digest(branch)}-0a1b2c3d",
                "output": {"title": "A requested run", "summary": "Why."},
            }
        )

    def publish(self, inputs: Mapping[str, str] | None = None) -> Finished:
        """The second phase, in an empty workspace."""
        workspace = self.folder / "workspace"
        workspace.mkdir()
        event = payloads.workflow_run_event({"id": RUN, **self.run})
        job = Job(
            workspace,
            self.server,
            event,
            self.pull.main,
            self.folder / "runner",
            name="workflow_run",
            inputs=inputs or {},
        )
        return job.finish()

    def conclusions(self) -> list[tuple[str, str | None]]:
        return [(check.head_sha, check.conclusion) for check in self.server.check_runs]


@pytest.fixture(scope="module")
def pull(tmp_path_factory: pytest.TempPathFactory) -> PullRequest:
    return pull_request(
        tmp_path_factory.mktemp("pull"), BASE, {"agent.sh": f"{GOOD}# as polite as before\n"}
    )


def first_phase(pull: PullRequest, folder: Path) -> tuple[int, Report]:
    """The exit code of the first phase of a pull request, and what it writes with a token that
    cannot write."""
    workspace = pull.checkout(folder / "workspace", pull.merge, 2)
    event = payloads.pull_request_event(pull.head, pull.main, NUMBER, fork=True)
    with GitHubServer() as server:
        server.permissions = {"contents": "read", "pull-requests": "read", "checks": "read"}
        server.add_pull(NUMBER, pull.head, pull.main)
        job = Job(workspace.path, server, event, pull.merge, folder / "runner", actor="mallory")
        done = job.finish()
    found = (workspace.path / "agentevals-report").iterdir()
    return done.code, {path.name: path.read_bytes() for path in found if path.is_file()}


@pytest.fixture(scope="module")
def report(pull: PullRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    code, found = first_phase(pull, tmp_path_factory.mktemp("first"))
    assert code == 0
    return found


@pytest.fixture
def trusted(tmp_path: Path, pull: PullRequest) -> Iterator[Trusted]:
    with GitHubServer() as server, BlobServer() as blobs:
        yield Trusted(tmp_path, server, blobs, pull)


def changed_rows(report: Report, change: Callable[[dict[str, Any]], None]) -> Report:
    """The report with a change of each row of head's results."""
    rows = [json.loads(line) for line in report["results.jsonl"].splitlines()]
    for row in rows:
        change(row)
    return {**report, "results.jsonl": "\n".join(map(json.dumps, rows)).encode()}


def with_answer(report: Report, answer: str) -> Report:
    """The same verdicts with other answers."""

    def change(row: dict[str, Any]) -> None:
        row["candidateAnswer"] = answer
        for sample in row["samples"]:
            sample["candidateAnswer"] = answer
            sample["outputMessages"] = [{"role": "assistant", "content": answer}]

    return changed_rows(report, change)


def with_facts(report: Report, **facts: Any) -> Report:
    """The report with other facts in `run.json`."""
    run = {**json.loads(report["run.json"]), **facts}
    return {**report, "run.json": json.dumps(run).encode()}


@pytest.mark.parametrize(
    ("facts", "conclusion"),
    [
        ({}, "action_required"),
        ({"notes": [{"level": "problem", "fact": "no space"}]}, "action_required"),
        ({"notes": [{"level": "refused", "fact": "no suite"}]}, "failure"),
    ],
)
def test_publish__claims_are_never_green(
    trusted: Trusted, report: Report, facts: dict[str, Any], conclusion: str
) -> None:
    policy = {**json.loads(report["run.json"])["policy"], "onInconclusive": "pass"}
    trusted.leave(with_facts(report, policy=policy, headSha="f" * 40, **facts))
    done = trusted.publish({"on-inconclusive": "pass"})
    assert done.code == 0, done.log
    assert trusted.conclusions() == [(trusted.pull.head, conclusion)], done.log
    (check,) = trusted.server.check_runs
    assert str(check.title).startswith("Claims of an untrusted run, not verified.")
    (comment,) = trusted.server.comments
    assert "Claims of an untrusted run" in comment.body
    assert f"`/agentevals run {trusted.pull.head[:12]}`" in comment.body
    assert "evals/EVAL.yaml" in comment.body
    assert done.outputs["outcome"] != "passed"


def test_publish__hostile_text_is_data(trusted: Trusted, report: Report) -> None:
    def change(row: dict[str, Any]) -> None:
        for name in ("dataset", "question", "target", "timestamp"):
            row[name] = HOSTILE
        failed = {"verdict": "fail", "gatesFailed": [HOSTILE]}
        row |= {"misses": [HOSTILE], "evalPath": f"{HOSTILE}/EVAL.yaml", **failed}
        row["spent"] |= {"costUsd": 0.5, "costSources": [HOSTILE]}
        for sample in row["samples"]:
            sample |= failed
            sample["evaluatorResults"][0] |= {"name": HOSTILE, "gatesFailed": [HOSTILE]}

    (suite,) = json.loads(report["run.json"])["suites"]
    suite["selection"] |= {"path": f"{HOSTILE}/EVAL.yaml", "reasons": [HOSTILE]}
    error = {"location": {"path": HOSTILE, "line": 1}, "problem": HOSTILE}
    suite |= {"name": HOSTILE, "base": {"broken": error, "problem": HOSTILE}}
    notes = [{"level": level, "fact": HOSTILE} for level in ("problem", "notice")]
    problems = {"suites": [suite], "notes": notes}
    changed = changed_rows(with_answer(report, HOSTILE), change)
    trusted.leave(with_facts(changed, **problems))
    done = trusted.publish()
    assert trusted.conclusions() == [(trusted.pull.head, "failure")], done.log
    (comment,) = trusted.server.comments
    assert "required gate" in comment.body  # it is no refusal
    for text in (comment.body.partition("\n")[2], str(trusted.server.check_runs[0].summary)):
        page = rendered(text)
        assert "@root" not in text_outside_code(page)
        assert not [tag for tag in tags(page) if "<img" in tag or "http://evil" in tag]
        assert "<!-- agentevals:v1" not in text
    assert "\n::error::x" not in done.log


def without_main_samples(row: dict[str, Any]) -> None:
    for sample in row["samples"]:
        sample["role"] = "fresh"


def replaced(name: str, content: bytes) -> Callable[[Report], bytes]:
    return lambda report: zipped({**report, name: content})


@pytest.mark.parametrize(
    ("pack", "reason"),
    [
        (lambda report: zipped({str(number): b"" for number in range(101)}), "more than 100 files"),
        (lambda report: zipped(report, zipfile.ZIP_LZMA), "compressed in another way"),
        (lambda report: zipped(report, zipfile.ZIP_BZIP2), "compressed in another way"),
        (replaced("results.jsonl", b"0" * (65 << 20)), "larger than 64 MiB"),
        (replaced("run.json", b"0" * (5 << 20)), "larger than 4 MiB"),
        (replaced("base.jsonl", b"{}\n" * 10_001), "more than 10,000 rows"),
        (lambda report: zipped(changed_rows(report, without_main_samples)), "no results of a run"),
        (replaced("results.jsonl", b"{}\n"), "no results of a run"),
        (replaced("results.jsonl", b"[" * 100_000), "no results of a run"),
        (replaced("results.jsonl", b""), "no results of a run"),
        (
            lambda report: zipped({**report, "results.jsonl": report["results.jsonl"] * 2}),
            "no results of a run",
        ),
        (replaced("run.json", b"{}"), "no results of a run"),
        (lambda report: b"", "not a valid archive"),
        (lambda report: b"PK\x03\x04 damaged", "not a valid archive"),
        (
            lambda report: zipped({"run.json": b"", "results.jsonl": b""}),
            "contains no `base.jsonl`",
        ),
    ],
)
def test_archive__an_attack_is_refused(
    report: Report, pack: Callable[[Report], bytes], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(reason)):
        read_archive(pack(report))


def test_archive__that_is_refused_is_red(trusted: Trusted, report: Report) -> None:
    trusted.leave({**report, "results.jsonl": b"{}"})
    done = trusted.publish()
    assert trusted.conclusions() == [(trusted.pull.head, "failure")], done.log
    assert "no results of a run" in done.summary
    assert str(trusted.server.check_runs[0].title).startswith("Claims of an untrusted run")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"name": "other"}, "left no artifact `agentevals-report`"),
        ({"of_run": 901}, "left no artifact `agentevals-report`"),
        ({"expired": True}, "has expired"),
        ({"size": 1 << 30}, "is larger than 64 MiB"),
    ],
)
def test_artifact__another_one_is_not_used(
    trusted: Trusted, facts: dict[str, Any], reason: str
) -> None:
    trusted.leave({"results.jsonl": b""}, **facts)
    completed = read_completed(payloads.workflow_run_event({"id": RUN, **trusted.run}))
    phase = FirstPhase(github_jobs.api(trusted.server), "agentevals", completed)
    with pytest.raises(HostError, match=reason):
        phase.results()


def test_claims__that_take_too_long_ask_for_a_person(
    trusted: Trusted, report: Report, tmp_path: Path
) -> None:
    results = read_archive(zipped(report)).as_claims()
    workspace = ReviewWorkspace(tmp_path, Settings(), {})
    host = github_jobs.host(trusted.server, github_jobs.no_wait)
    published = pipeline.publish(results, workspace, host, Links(), claim_seconds=0)
    view, _ = asyncio.run(published)
    assert view.review.decision.conclusion == "action_required"
    assert "within 0 s" in view.review.decision.reasons[0]


def test_artifact__a_missing_one_asks_for_a_person(trusted: Trusted) -> None:
    done = trusted.publish({"on-inconclusive": "pass"})
    assert trusted.conclusions() == [(trusted.pull.head, "action_required")], done.log
    assert "left no artifact `agentevals-report`" in done.summary


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda it: setattr(it.announced, "state", "closed"), "no open pull request"),
        (lambda it: setattr(it.announced, "head_sha", "e" * 40), "no open pull request"),
        (lambda it: setattr(it.announced, "branch", "other"), "no open pull request"),
        (lambda it: setattr(it.announced, "repository", "eve/agent"), "no open pull request"),
        (lambda it: it.run.update(head_repository=None), "no open pull request"),
        (lambda it: it.run.update(event="push"), "not that of a pull request"),
        (lambda it: it.run.update(head_repository={"full_name": "acme/agent"}), "reported itself"),
        (lambda it: it.run.update(status="in_progress"), "is not completed"),
        (lambda it: it.run.update(run_attempt=2), "has a newer attempt"),
    ],
)
def test_pull_request__another_or_a_moved_one_gets_nothing(
    trusted: Trusted, change: Callable[[Trusted], None], reason: str
) -> None:
    completed = read_completed(payloads.workflow_run_event({"id": RUN, **trusted.run}))
    change(trusted)
    with pytest.raises(NothingToPublish, match=reason):
        FirstPhase(github_jobs.api(trusted.server), "agentevals", completed).pulls()


@pytest.mark.parametrize(
    ("checks", "stays"),
    [
        ([("main", "failure")], True),
        ([("main", "success")], True),
        ([("release", "success")], False),
        # Green for another base branch, to which the pull request was changed in between.
        ([("main", "failure"), ("release", "success")], False),
        ([("release", "success"), ("main", "failure")], True),
    ],
)
def test_requested_run__its_check_for_the_same_base_branch_stays(
    trusted: Trusted, report: Report, checks: list[tuple[str, str]], stays: bool
) -> None:
    for branch, conclusion in checks:
        trusted.add_requested_check(branch, conclusion)
    trusted.leave(report)
    done = trusted.publish()
    assert done.code == 0, done.log
    written = [] if stays else ["action_required"]
    conclusions = [conclusion for _, conclusion in trusted.conclusions()]
    assert conclusions == [*(conclusion for _, conclusion in checks), *written], done.log
    assert ("which a maintainer requested" in done.summary) == stays


def test_requested_run__its_check_does_not_stay_for_another_pull_request_of_the_head(
    trusted: Trusted, report: Report
) -> None:
    """The author opens a second one, for the base branch with the weak judges."""
    second = trusted.server.add_pull(NUMBER + 1, trusted.pull.head, trusted.pull.main)
    second.repository, second.base_ref = FORK, "release"
    trusted.add_requested_check("release", "success")
    trusted.leave(report)
    done = trusted.publish()
    assert done.code == 0, done.log
    conclusions = [conclusion for _, conclusion in trusted.conclusions()]
    assert conclusions == ["success", "action_required"], done.log


def test_run__with_nothing_to_publish_is_green(trusted: Trusted, report: Report) -> None:
    trusted.leave(report)
    trusted.announced.head_sha = "e" * 40
    done = trusted.publish()
    assert done.code == 0, done.log
    assert "Nothing was published: no open pull request has the head" in done.summary
    assert (trusted.conclusions(), trusted.server.comments) == ([], ())


@pytest.mark.parametrize("field", ["status", "event", "head_branch", "head_sha"])
def test_run__of_an_unexpected_structure_is_not_published(
    trusted: Trusted, report: Report, field: str
) -> None:
    trusted.leave(report)
    trusted.run[field] = {}
    done = trusted.publish()
    assert done.code == 3, done.log
    assert "the first phase could not be read: GitHub did not respond correctly" in done.log
    assert (trusted.conclusions(), trusted.server.comments) == ([], ())


def test_mode__publish_needs_a_completed_run(trusted: Trusted) -> None:
    workspace = trusted.folder / "workspace"
    workspace.mkdir()
    event = payloads.schedule_event()
    job = Job(workspace, trusted.server, event, trusted.pull.main, trusted.folder / "r", "schedule")
    job.inputs = {"mode": "publish"}
    done = job.finish()
    assert done.code == 2
    assert "`on: workflow_run`" in done.log
    assert done.outputs == {"outcome": "invalid"}
