"""The trusted phase reports what the untrusted run of a fork left, end to end: the action's process,
real git over HTTP, GitHub's API over HTTP."""

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.review.claims import read_claims
from tests.support import payloads
from tests.support.git_http import served_as_github
from tests.support.github_history import BlobServer, zipped
from tests.support.github_server import GitHubServer
from tests.support.github_timeline import moment
from tests.support.github_world import file
from tests.support.greeter import FILES, GOOD, SUITE, TARGETS
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
        self, folder: Path, server: GitHubServer, blobs: BlobServer, pull: PullRequest, site: str
    ) -> None:
        self.folder, self.server, self.pull, self.site = folder, server, pull, site
        self.announced = server.add_pull(NUMBER, pull.head, pull.main, [file("agent.sh")])
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

    def publish(
        self, inputs: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None
    ) -> Finished:
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
            env={"GITHUB_SERVER_URL": self.site, **(env or {})},
        )
        return job.finish()

    def conclusions(self) -> list[tuple[str, str | None]]:
        return [(check.head_sha, check.conclusion) for check in self.server.check_runs]


@pytest.fixture(scope="module")
def pull(tmp_path_factory: pytest.TempPathFactory) -> PullRequest:
    return pull_request(
        tmp_path_factory.mktemp("pull"), BASE, {"agent.sh": f"{GOOD}# as polite as before\n"}
    )


def first_phase(pull: PullRequest, folder: Path, *files: dict[str, Any]) -> tuple[int, Report]:
    """The exit code of the first phase of a pull request, and what it writes with a token that
    cannot write."""
    workspace = pull.checkout(folder / "workspace", pull.merge, 2)
    event = payloads.pull_request_event(pull.head, pull.main, NUMBER, fork=True)
    with GitHubServer() as server:
        server.permissions = {"contents": "read", "pull-requests": "read", "checks": "read"}
        server.add_pull(NUMBER, pull.head, pull.main, files)
        job = Job(workspace.path, server, event, pull.merge, folder / "runner", actor="mallory")
        done = job.finish()
    found = (workspace.path / "agentevals-report").iterdir()
    return done.code, {path.name: path.read_bytes() for path in found if path.is_file()}


@pytest.fixture(scope="module")
def report(pull: PullRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    code, found = first_phase(pull, tmp_path_factory.mktemp("first"), file("agent.sh"))
    assert code == 0
    return found


@pytest.fixture(scope="module")
def site(pull: PullRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_as_github(pull.origin, tmp_path_factory.mktemp("site"), "acme/agent") as url:
        yield url


@pytest.fixture
def trusted(tmp_path: Path, pull: PullRequest, site: str) -> Iterator[Trusted]:
    with GitHubServer() as server, BlobServer() as blobs:
        yield Trusted(tmp_path, server, blobs, pull, site)


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


def test_publish__is_green_where_base_scores_all_answers_again(
    trusted: Trusted, report: Report
) -> None:
    trusted.leave(report)
    done = trusted.publish()
    assert done.code == 0, done.log
    assert trusted.conclusions() == [(trusted.pull.head, "success")], done.log
    assert "scored again with base's evaluators" in str(trusted.server.check_runs[0].title)
    (comment,) = trusted.server.comments
    assert "is what the run says" not in comment.body  # the change edits the agent alone
    assert done.outputs["outcome"] == "passed"


def test_publish__an_answer_that_base_rejects_is_red_whatever_its_verdict_says(
    trusted: Trusted, report: Report
) -> None:
    trusted.leave(with_answer(report, "Bob?"))
    done = trusted.publish()
    assert trusted.conclusions() == [(trusted.pull.head, "failure")], done.log
    title = str(trusted.server.check_runs[0].title)
    assert title.startswith("Claims of an untrusted run")
    assert "1 of them failed a required gate" in title


def test_publish__hostile_text_is_data(trusted: Trusted, report: Report) -> None:
    def change(row: dict[str, Any]) -> None:
        for name in ("dataset", "question", "target", "timestamp"):
            row[name] = HOSTILE
        row |= {"misses": [HOSTILE], "evalPath": f"{HOSTILE}/EVAL.yaml", "verdict": "fail"}
        row["gatesFailed"] = [HOSTILE]

    edit = {
        **{
            "kind": "requiredGate",
            "action": "changed",
            "name": HOSTILE,
            "path": f"../{HOSTILE}",
            "line": 1,
        },
        "fields": [{"name": HOSTILE, "before": HOSTILE, "after": None}],
        **{"files": [HOSTILE], "tests": [HOSTILE]},
    }
    summary = json.loads(report["summary.json"])
    summary["suites"] = [
        {"path": f"{HOSTILE}/EVAL.yaml", "edits": [edit, {**edit, "kind": "target"}]}
    ]
    changed = changed_rows(with_answer(report, HOSTILE), change)
    trusted.leave({**changed, "summary.json": json.dumps(summary).encode()})
    done = trusted.publish()
    assert trusted.conclusions() == [(trusted.pull.head, "failure")], done.log
    (comment,) = trusted.server.comments
    for text in (comment.body.partition("\n")[2], str(trusted.server.check_runs[0].summary)):
        page = rendered(text)
        assert "@root" not in text_outside_code(page)
        assert not [tag for tag in tags(page) if "<img" in tag or "http://evil" in tag]
        assert "<!-- agentevals:v1" not in text
    assert "\n::error::x" not in done.log


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        (lambda rows: rows[:1], "there is no answer to 1 test"),
        (lambda rows: [], "the change affects `evals/EVAL.yaml`"),
        (
            lambda rows: [*rows, rows[0].replace(b'"greets"', b'"other"')],
            "base does not have 1 test",
        ),
        (
            lambda rows: [*rows, rows[0].replace(b"evals/EVAL.yaml", b"new/EVAL.yaml")],
            "base does not have 1 suite",
        ),
    ],
)
def test_publish__claims_that_leave_out_or_add_tests_are_not_green(
    trusted: Trusted, report: Report, change: Callable[[list[bytes]], list[bytes]], doubt: str
) -> None:
    rows = change(report["results.jsonl"].splitlines())
    trusted.leave({**report, "results.jsonl": b"\n".join(rows)})
    done = trusted.publish({"on-inconclusive": "pass"})
    assert trusted.conclusions() == [(trusted.pull.head, "action_required")], done.log
    assert doubt in done.summary
    assert "`/agentevals run`" in trusted.server.comments[0].body


def test_publish__a_new_suite_that_the_claims_leave_out_is_not_green(
    trusted: Trusted, report: Report
) -> None:
    trusted.announced.files.append(file("more/EVAL.yaml", "added"))
    trusted.leave(report)
    done = trusted.publish()
    assert trusted.conclusions() == [(trusted.pull.head, "action_required")], done.log
    assert "`more/EVAL.yaml` is not on base" in done.summary


def test_publish__results_of_a_workflow_that_the_change_edits_are_not_green(
    trusted: Trusted, report: Report
) -> None:
    trusted.announced.files.append(file(".github/workflows/evals.yml"))
    trusted.leave(report)
    done = trusted.publish()
    assert trusted.conclusions() == [(trusted.pull.head, "action_required")], done.log
    assert "edits `.github`" in done.summary


def test_publish__a_failed_first_phase_is_not_green(trusted: Trusted, report: Report) -> None:
    trusted.run["conclusion"] = "failure"
    trusted.leave(report)
    done = trusted.publish()
    assert trusted.conclusions() == [(trusted.pull.head, "action_required")], done.log


def test_publish__an_inconclusive_first_phase_is_not_green(
    trusted: Trusted, report: Report
) -> None:
    """With `on-inconclusive: neutral`, it ended as a success."""
    summary = {"outcome": "inconclusive", "headSha": trusted.pull.head}
    trusted.leave({**report, "summary.json": json.dumps(summary)})
    done = trusted.publish()
    assert trusted.conclusions() == [(trusted.pull.head, "action_required")], done.log
    assert "its outcome is `inconclusive`" in done.summary


def test_publish__untouched_all_needs_the_results_of_all_suites(
    trusted: Trusted, report: Report
) -> None:
    trusted.announced.files[:] = [file("notes.txt")]
    trusted.leave({**report, "results.jsonl": b"", "base.jsonl": b""})
    done = trusted.publish({"untouched": "all"})
    assert trusted.conclusions() == [(trusted.pull.head, "action_required")], done.log
    assert "there are no results of it" in done.summary


def test_publish__a_base_without_suites_is_not_green(trusted: Trusted, report: Report) -> None:
    trusted.leave({**report, "results.jsonl": b"", "base.jsonl": b""})
    done = trusted.publish({"suites": "nowhere/*.yaml"})
    assert trusted.conclusions() == [(trusted.pull.head, "action_required")], done.log
    assert "base has no suite" in done.summary


def test_publish__another_pull_request_with_the_head_is_not_made_green(
    trusted: Trusted, report: Report
) -> None:
    """The red check run of pull request 8 is on the same commit."""
    trusted.server.timeline.check(trusted.pull.head, 11, pull=8)
    trusted.leave(report)
    done = trusted.publish()
    found = [conclusion for _, conclusion in trusted.conclusions()]
    assert found == ["failure", "action_required"], done.log
    assert "counts for another pull request with this head, too: 8" in done.summary


def test_publish__lists_what_the_change_removes_and_weakens(tmp_path: Path) -> None:
    """In the words of the first phase."""
    base = {**BASE, "more/EVAL.yaml": SUITE.replace("judges", "../evals/judges")}
    weaker = SUITE.replace("value: Ada, required: true", "value: A").partition("  - id: polite")[0]
    head = {
        "evals/EVAL.yaml": weaker,
        "more/EVAL.yaml": None,
        ".agentv/targets.yaml": TARGETS.replace("agent.sh]", "agent.sh, x]"),
    }
    pull = pull_request(tmp_path / "pull", base, head)
    files = [file(name, "removed" if text is None else "modified") for name, text in head.items()]
    code, report = first_phase(pull, tmp_path / "first", *files)
    assert code == 0
    with (
        GitHubServer() as server,
        BlobServer() as blobs,
        served_as_github(pull.origin, tmp_path / "site", "acme/agent") as site,
    ):
        trusted = Trusted(tmp_path, server, blobs, pull, site)
        trusted.announced.files[:] = files
        trusted.leave(report)
        done = trusted.publish()
    (comment,) = server.comments
    stated = report["comment.md"].decode()
    start = "### 1 suite, 1 test and 1 required gate of the base were removed"
    listed = stated[stated.index(start) : stated.index("<details>")]
    for words in ("suite [`more/EVAL.yaml`]", "test [`polite`]", "gate `by-name`", "target `def"):
        assert words in listed
    assert listed in comment.body.replace(site, "https://github.com"), done.log
    assert "edits or removes in them is what the run says" in comment.body
    assert trusted.conclusions() == [(pull.head, "action_required")]


def test_publish__a_flood_of_edits_is_cut(trusted: Trusted, report: Report) -> None:
    edit = {
        **{"kind": "evaluator", "action": "changed", "name": "n", "path": "p", "line": 1},
        **{"fields": [], "files": [], "tests": ["greets"]},
    }
    flood = [{"path": "evals/EVAL.yaml", "edits": [edit] * 5_000}]
    flood += [{"path": f"{number}/EVAL.yaml", "edits": [{}]} for number in range(900)]
    summary = {**json.loads(report["summary.json"]), "suites": flood}
    trusted.leave(member("summary.json", json.dumps(summary).encode(), 0o100644)(report))
    done = trusted.publish()
    assert trusted.conclusions() == [(trusted.pull.head, "success")], done.log
    assert "2000 evaluators were changed" in trusted.server.comments[0].body


def member(name: str, content: bytes, mode: int = 0) -> Callable[[Report], bytes]:
    """The report's archive with one more member."""

    def pack(report: Report) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for known, text in report.items():
                if known != name or not mode:
                    archive.writestr(known, text)
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.NameToInfo.pop(name, None)  # or Python warns of the duplicate
            archive.writestr(entry, content)
        return packed.getvalue()

    return pack


def replaced(name: str, content: bytes) -> Callable[[Report], bytes]:
    return lambda report: zipped({**report, name: content})


@pytest.mark.parametrize(
    ("pack", "reason"),
    [
        (member("../results.jsonl", b""), "a file that no report has"),
        (member("/etc/cron.d/x", b""), "a file that no report has"),
        (member("junit.xml", b"/etc/passwd", 0o120777), "something else than files"),
        (member("results.jsonl", b""), "a file twice"),
        (
            lambda report: zipped({**report, "report.html": b"0" * (40 << 20)}),
            "compressed more than any report",
        ),
        (
            lambda report: zipped({**report, "report.html": b"0" * (70 << 20)}),
            "larger than 64 MiB",
        ),
        (lambda report: zipped({str(one): b"" for one in range(7_000)}), "that no report has"),
        pytest.param(  # ZIP64, as more than 65,535 members need it
            lambda report: zipped({str(one): b"" for one in range(70_000)}),
            "that no report has",
            marks=pytest.mark.slow,
        ),
        (replaced("results.jsonl", b"{}\n"), "does not have the schema"),
        (replaced("results.jsonl", b"[" * 100_000), "no valid JSON"),
        (replaced("results.jsonl", b"NaN\n"), "no valid JSON"),
        (replaced("results.jsonl", b"[" * 200 + b"]" * 200), "nested more than any report"),
        (replaced("results.jsonl", b"1"), "does not have the schema"),
        (  # the first error, without a search for a better one among 100,000
            replaced("results.jsonl", json.dumps({"misses": [*range(100_001)]}).encode()),
            "the schema of a report (`maxItems`)",
        ),
        (
            lambda report: zipped(
                {**report, "results.jsonl": report["results.jsonl"].replace(b'"evalId"', b'"x"')}
            ),
            "does not have the schema",
        ),
        (
            lambda report: zipped({**report, "results.jsonl": report["results.jsonl"] * 2}),
            "has a test twice",
        ),
        (
            lambda report: zipped(
                changed_rows(report, lambda row: row.update(samples=row["samples"] * 201))
            ),
            "a test with more than 200 samples",
        ),
        (
            replaced("summary.json", b'{"outcome": "passed", "headSha": "%s"}' % (b"e" * 40)),
            "of another commit",
        ),
        (replaced("summary.json", b'{"outcome": "great"}'), "does not have the schema"),
        (
            lambda report: zipped(
                {
                    **report,
                    "summary.json": report["summary.json"].replace(
                        b'"edits": []', b'"edits": [{}]'
                    ),
                }
            ),
            "`summary.json` does not have the schema",
        ),
        (lambda report: b"", "not a valid archive"),
        (lambda report: b"PK\x03\x04 damaged", "not a valid archive"),
        (lambda report: zipped({"results.jsonl": b""}), "contains no `base.jsonl`"),
    ],
)
def test_archive__an_attack_is_refused(
    pull: PullRequest, report: Report, pack: Callable[[Report], bytes], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(reason)):
        read_claims(pack(report), pull.head)


def test_archive__that_is_refused_is_red(trusted: Trusted, report: Report) -> None:
    trusted.leave(member("../results.jsonl", b"")(report))
    done = trusted.publish()
    assert trusted.conclusions() == [(trusted.pull.head, "failure")], done.log
    assert "a file that no report has" in done.summary
    assert str(trusted.server.check_runs[0].title).startswith("Claims of an untrusted run")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (None, "left no artifact `agentevals-report` (none)"),
        ({"name": "other"}, "left no artifact `agentevals-report` (none)"),
        ({"created_at": moment(5)}, "(only one of an earlier attempt)"),
        ({"of_run": 901}, "left no artifact `agentevals-report` (none)"),
        ({"expired": True}, "has expired"),
    ],
)
def test_artifact__another_one_is_not_used(
    trusted: Trusted, report: Report, facts: dict[str, Any] | None, reason: str
) -> None:
    if facts is not None:
        trusted.leave(report, **facts)
    done = trusted.publish({"on-inconclusive": "pass"})
    assert trusted.conclusions() == [(trusted.pull.head, "action_required")], done.log
    assert reason in done.summary


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda it: setattr(it.announced, "state", "closed"), "pull request 7 is closed"),
        (lambda it: setattr(it.announced, "head_sha", "e" * 40), "has moved from"),
        (lambda it: setattr(it.announced, "branch", "other"), "no pull request has the head"),
        (lambda it: setattr(it.announced, "repository", "eve/agent"), "no pull request has"),
        (lambda it: it.run.update(event="push"), "not that of a pull request"),
        (lambda it: it.run.update(head_repository={"full_name": "acme/agent"}), "reported itself"),
        (lambda it: it.run.update(status="in_progress"), "is not completed"),
        (lambda it: it.run.update(head_repository=None), "is gone"),
    ],
)
def test_pull_request__another_or_a_moved_one_gets_nothing(
    trusted: Trusted, report: Report, change: Callable[[Trusted], None], reason: str
) -> None:
    trusted.leave(report)
    change(trusted)
    done = trusted.publish()
    assert done.code == 0, done.log
    assert reason in done.summary
    assert trusted.conclusions() == []
    assert trusted.server.comments == ()


@pytest.mark.parametrize(
    ("conclusion", "written"), [("failure", 1), ("success", 1), ("action_required", 2)]
)
def test_requested_run__its_decision_about_the_head_stands(
    trusted: Trusted, report: Report, conclusion: str, written: int
) -> None:
    trusted.server.history.add_run(950, trusted.pull.main, event="issue_comment")
    check = {"name": "agentevals", "head_sha": trusted.pull.head, "conclusion": conclusion}
    external = {"external_id": f"agentevals/agentevals/950/1/{NUMBER}-0a1b2c3d"}
    trusted.server.world.add_check_run(check | external, "https://github.com")
    trusted.leave(report)
    done = trusted.publish()
    assert done.code == 0, done.log
    assert len(trusted.conclusions()) == written, done.log
    assert ("which a maintainer requested" in done.summary) == (written == 1)


def test_attempt__an_older_one_gets_nothing(trusted: Trusted, report: Report) -> None:
    trusted.leave(report)
    event = payloads.workflow_run_event({"id": RUN, **trusted.run})
    trusted.run["run_attempt"] = 2
    workspace = trusted.folder / "workspace"
    workspace.mkdir()
    job = Job(
        workspace, trusted.server, event, trusted.pull.main, trusted.folder / "r", "workflow_run"
    )
    done = job.finish()
    assert done.code == 0, done.log
    assert "has a newer attempt" in done.summary
    assert trusted.conclusions() == []


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


@pytest.mark.parametrize("inputs", [{}, {"cache": "replay", "cassettes": "evals/cassettes"}])
def test_keys__where_base_needs_one_the_check_asks_for_a_person(
    tmp_path: Path, report: Report, inputs: Mapping[str, str]
) -> None:
    """Also if the workflow gives the key to the trusted phase, or the inputs of the first phase,
    which replays without keys: answers are not proof then."""
    key = "targets:\n  - {name: default, provider: openai, model: m, api_key: '${{ KEY }}'}\n"
    pull = pull_request(tmp_path / "keyed", {**BASE, ".agentv/targets.yaml": key}, {"x.txt": "x"})
    with (
        GitHubServer() as server,
        BlobServer() as blobs,
        served_as_github(pull.origin, tmp_path / "site", "acme/agent") as site,
    ):
        trusted = Trusted(tmp_path, server, blobs, pull, site)
        summary = {"outcome": "passed", "headSha": pull.head}
        trusted.leave({**report, "summary.json": json.dumps(summary)})
        done = trusted.publish(inputs, env={"KEY": "sk-given-by-mistake"})
        assert trusted.conclusions() == [(pull.head, "action_required")], done.log
    assert "needs a key" in done.summary
    assert "`/agentevals run`" in done.summary
