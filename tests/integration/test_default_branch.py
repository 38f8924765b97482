"""The results of the default branch are stored on a branch, and pull requests start from them in place
of running the base again."""

import asyncio
import gzip
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.baselines.run_files import file_name, write_run
from agentevals_action.errors import GitError
from agentevals_action.system.git import GitRepository
from tests.support import payloads, results
from tests.support.gate import Gate
from tests.support.git_http import served
from tests.support.github_server import GitHubServer
from tests.support.job import Finished
from tests.support.repositories import ENVIRONMENT, Files, Repository, pull_request
from tests.support.trends import BRANCH, START

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
#: An agent whose words are those of a vendor's model, which changes without a commit.
VENDOR: Files = {**BASE, "agent.sh": GOOD.replace("Good day", '$(cat "$CALLS.words")')}


class Workflow(Gate):
    """A repository whose workflow runs on pushes and on pull requests. `calls` notes where each
    call of the agent was made."""

    def __init__(
        self,
        folder: Path,
        server: GitHubServer,
        change: Files,
        meanwhile: Files | None = None,
        base: Files = BASE,
    ) -> None:
        pull = pull_request(folder / "origin", base, change, meanwhile)
        super().__init__(folder, server, pull, {"env": "CALLS", "watch": "agent.sh"})
        self.calls = folder / "calls"
        self.answer("Good day")

    def answer(self, words: str) -> None:
        """What the vendor's model says from now on."""
        self.calls.with_name("calls.words").write_text(words)

    def finish(self, name: str, event: Mapping[str, Any], sha: str, **inputs: str) -> Finished:
        """A run whose calls of the agent are noted."""
        self.calls.write_text("")
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        return self.job(name, event, sha, inputs=given, env={"CALLS": str(self.calls)}).finish()

    def pushed(self, **inputs: str) -> Finished:
        """A push to main, of which nothing was there before."""
        main = self.pull.main
        return self.finish("push", payloads.push_event("0" * 40, main), main, **inputs)

    def reviewed(self, **inputs: str) -> Finished:
        """A review of the pull request."""
        event = payloads.pull_request_event(self.pull.head, self.pull.main)
        return self.finish("pull_request", event, self.pull.merge, **inputs)

    def scheduled(self, **inputs: str) -> Finished:
        """A scheduled run of main."""
        return self.finish("schedule", payloads.schedule_event(), self.pull.main, **inputs)

    def stored(self) -> list[str]:
        """The names of the files of runs on the data branch."""
        return [name for name in names_on(self.pull.origin) if name != "badge.json"]

    def badge(self) -> Any:
        """The badge on the data branch."""
        return json.loads(self.pull.origin.git("show", f"{BRANCH}:badge.json"))

    def called(self) -> tuple[int, int]:
        """How often the agent was called in the workspace, and elsewhere: in the base's tree."""
        folders = self.calls.read_text().split()
        here = sum(f"/{self.runs}/workspace" in folder for folder in folders)
        return here, len(folders) - here


def names_on(origin: Repository) -> list[str]:
    return origin.git("ls-tree", "-r", "--name-only", BRANCH).splitlines()


def data_branch(repository: Repository, name: str = BRANCH) -> DataBranch:
    return DataBranch(partial(GitRepository.open, repository.path, environ=ENVIRONMENT), name)


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as running:
        running.permissions["contents"] = "write"
        yield running


def test_push__its_results_spare_the_pull_request_the_base(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD + "# tidied\n"})
    assert flow.pushed().code == 0
    done = flow.reviewed()
    assert done.code == 0, done.log
    assert flow.called() == (2, 0), done.summary


def test_push__its_file_has_a_row_of_each_test(tmp_path: Path, server: GitHubServer) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD})
    assert flow.pushed().code == 0
    (name,) = flow.stored()
    assert name.endswith(f"-{flow.pull.main}-{flow.runs}.jsonl.gz")
    origin = flow.pull.origin
    origin.git("checkout", "--quiet", BRANCH)
    rows = gzip.decompress((origin.path / name).read_bytes()).decode().splitlines()
    assert ["Good day, Ada." in rows[0], "Good day, Bob." in rows[1]] == [True, True]


@pytest.mark.parametrize("is_stored", [True, False])
def test_comment__an_evaluator_that_fails_in_a_test_that_passes_is_listed(
    tmp_path: Path, server: GitHubServer, is_stored: bool
) -> None:
    checks = [{"type": "contains", "value": word} for word in ("Good", "day", "Ada", ",", "!")]
    suite = {"tests": [{"id": "greets", "input": "Ada", "assert": checks}]}
    base = {
        **BASE,
        "evals/EVAL.yaml": json.dumps({"name": "greeter", **suite}),
        "agent.sh": GOOD.replace("name.", "name!"),
    }
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD}, base=base)
    if is_stored:
        assert flow.pushed().code == 0
    done = flow.reviewed()
    assert done.code == 0, done.log
    assert (
        "### 1 test passes with an evaluator or criterion that passed on base and fails on head"
        in done.summary
    )
    assert "· `contains-!` passed on base and failed on head" in done.summary


def test_push__a_badge_has_the_pass_rate_of_the_last_run(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": RUDE})
    assert flow.pushed().code == 0
    assert flow.badge()["message"].startswith("100% · ")
    event = payloads.push_event(flow.pull.main, flow.pull.head)
    assert flow.finish("push", event, flow.pull.head, confirm="0").code == 1
    badge = flow.badge()
    assert (badge["message"][:6], badge["color"]) == ("50% · ", "red")
    assert len(flow.stored()) == 2
    assert flow.reviewed().code == 1
    assert flow.badge() == badge


def test_push__a_token_that_may_not_write_is_a_notice_and_no_failure(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD})
    event = payloads.push_event("0" * 40, flow.pull.main)
    job = flow.job("push", event, flow.pull.main, env={"CALLS": str(flow.calls)})
    with served(flow.pull.origin) as url:  # it gives files, and takes none
        Repository(job.workspace).git("remote", "set-url", "origin", url)
        done = job.finish()
    assert done.code == 0, done.log
    assert "Add `contents: write`" in done.log


def test_schedule__more_samples_are_the_history_that_a_fall_is_held_against(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": RUDE})
    assert flow.pushed(samples="3").code == 0
    assert flow.scheduled(samples="3").code == 0
    done = flow.reviewed()
    assert done.code == 1, done.log
    assert done.outputs["regressions"] == "1"
    head, base = flow.called()
    assert (2 < head <= 8, base) == (True, 0)  # fresh samples of head alone: six of base are enough


def test_review__without_stored_results_the_base_is_run_and_the_report_states_it(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD + "# tidied\n"})
    done = flow.reviewed()
    assert done.code == 0, done.log
    assert flow.called() == (2, 2)


def test_review__a_named_branch_that_has_nothing_is_no_pass(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": RUDE})
    done = flow.reviewed(baseline="branch")
    assert done.code == 3, done.log
    assert "could not be obtained" in done.summary


@pytest.mark.parametrize("source", ["auto", "branch"])
def test_review__a_damaged_file_is_named_and_never_makes_green(
    tmp_path: Path, server: GitHubServer, source: str
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": RUDE})
    assert flow.pushed().code == 0
    origin = flow.pull.origin
    origin.git("checkout", "--quiet", BRANCH)
    (name,) = flow.stored()
    origin.commit("damage", {name: b"\x1f\x8b damaged"})
    origin.git("checkout", "--quiet", "main")
    done = flow.reviewed(baseline=source)
    assert done.code == (1 if source == "auto" else 3), done.log
    assert bool(flow.called()[1]) is (source == "auto")
    assert f"`{name}` is damaged and does not count" in done.summary


def test_history__is_in_the_folder_of_a_push(tmp_path: Path, server: GitHubServer) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD + "# tidied\n"})
    flow.pushed()
    head = flow.pull.head
    pushed = flow.finish("push", payloads.push_event(flow.pull.main, head), head)
    assert pushed.code == 0, pushed.log
    report = tmp_path / str(flow.runs) / "workspace" / "agentevals-report"
    page = (report / "history.html").read_text(encoding="utf-8")
    for words in ("evals/EVAL.yaml", flow.pull.main[:12], head[:12]):
        assert words in page
    done = flow.reviewed()
    assert done.code == 0, done.log
    assert not (tmp_path / str(flow.runs) / "workspace/agentevals-report/history.html").exists()


def test_review__by_the_watch_rules_of_base(tmp_path: Path, server: GitHubServer) -> None:
    rules = {".agentevals.yaml": "watch: [agent.sh]\n"}
    change = {**rules, "agent.sh": RUDE, ".agentevals.yaml": "suites: [evals/**]\n"}
    flow = Workflow(tmp_path, server, change, base={**BASE, **rules})
    assert flow.pushed(watch="").code == 0
    assert flow.reviewed(watch="", confirm="0").code == 1
    assert flow.called() == (2, 0)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_review__a_committed_results_file_spares_base(
    tmp_path: Path, server: GitHubServer, is_damaged: bool
) -> None:
    first = Workflow(tmp_path / "first", server, {"docs.md": "x"})
    assert first.pushed(baseline="none").code == 0
    report = tmp_path / "first" / str(first.runs) / "workspace" / "agentevals-report"
    rows = (report / "results.jsonl").read_text() + ("{" if is_damaged else "")
    change = {"agent.sh": GOOD + "# tidied\n"}
    flow = Workflow(tmp_path / "second", server, change, base={**BASE, "base.jsonl": rows})
    done = flow.reviewed(baseline="file", baseline_file="base.jsonl")
    assert done.code == 0, done.log  # what passes needs no base
    assert flow.called() == (2, 0)
    words = "`base.jsonl` on base is not a results file: line 3" if is_damaged else "baseline file"
    assert words in done.summary


# A schedule, whose base is the stored results


@pytest.mark.parametrize(("fail_on", "code"), {"regressions": 1, "never": 0, "": 1}.items())
def test_schedule__a_model_that_changed_without_a_commit_is_a_regression(
    tmp_path: Path, server: GitHubServer, fail_on: str, code: int
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD}, base=VENDOR)
    first = flow.scheduled(samples="3")
    assert (first.code, first.outputs["regressions"]) == (0, "0"), first.log
    assert "Nothing is stored yet of this commit or an older one." in first.summary
    assert flow.scheduled().code == 0
    flow.answer("Hey")
    done = flow.scheduled(fail_on=fail_on)
    assert (done.code, done.outputs["regressions"]) == (code, "1"), done.log
    commit = flow.pull.main[:7]
    assert f"Compared with the base: stored results of [`{commit}`]" in done.summary
    assert "at least 4 samples per test" in done.summary
    assert len(flow.stored()) == 3
    head, base = flow.called()
    assert (2 < head <= 8, base) == (True, 0)  # fresh samples of head alone


def test_schedule__an_earlier_attempt_is_not_its_own_base(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD}, base=VENDOR)
    attempts = []
    for number in (1, 2):
        event, env = payloads.schedule_event(), {"CALLS": str(flow.calls)}
        job = flow.job("schedule", event, flow.pull.main, env=env, attempt=number)
        job.run = 1001
        attempts.append(job.finish())
    assert [done.code for done in attempts] == [0, 0], attempts[1].log
    assert "Nothing is stored yet" in attempts[1].summary
    assert "Nothing is stored yet" not in flow.scheduled().summary


@pytest.mark.parametrize(
    ("time", "is_used"), [("2026-01-01", True), ("2026-01-03", False)], ids=["older", "newer"]
)
def test_dispatch__results_of_newer_commits_do_not_count(
    tmp_path: Path, server: GitHubServer, time: str, is_used: bool
) -> None:
    """The commits are of 2026-01-02."""
    flow = Workflow(tmp_path, server, VENDOR, base=BASE)
    assert flow.pushed(samples="3").code == 0
    origin = flow.pull.origin
    origin.git("checkout", "--quiet", BRANCH)
    (name,) = flow.stored()
    moment = datetime.fromisoformat(f"{time}T00:00:00+00:00")
    origin.git("mv", name, file_name(moment, flow.pull.main, 1))
    origin.commit("another time")
    origin.git("checkout", "--quiet", "main")
    flow.answer("Hey")
    event = payloads.workflow_dispatch_event("refs/heads/feature")
    env = {"CALLS": str(flow.calls), "GITHUB_REF": event["ref"]}
    inputs = {"fail-on": "regressions"}
    done = flow.job("workflow_dispatch", event, flow.pull.head, inputs=inputs, env=env).finish()
    assert (done.code, done.outputs["regressions"]) == ((1, "1") if is_used else (0, "0")), done.log
    assert len(flow.stored()) == 1


def test_dispatch__of_the_default_branch_stores_its_results(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD})
    event = payloads.workflow_dispatch_event("refs/heads/main")
    assert flow.finish("workflow_dispatch", event, flow.pull.main).code == 0
    assert len(flow.stored()) == 1


def test_schedule__stored_results_that_cannot_be_read_are_no_pass(
    tmp_path: Path, server: GitHubServer
) -> None:
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD}, base={**BASE, "agent.sh": RUDE})
    done = flow.scheduled(fail_on="regressions", baseline_branch="main")
    assert done.code == 3, done.log
    assert "The base could not be obtained" in done.summary


@pytest.mark.parametrize(
    ("baseline", "words"),
    {
        "none": "compares with nothing",
        "rerun": "has no base here",
        "file": "1 test regressed",
    }.items(),
)
def test_schedule__by_the_input_baseline(
    tmp_path: Path, server: GitHubServer, baseline: str, words: str
) -> None:
    first = Workflow(tmp_path / "first", server, {"docs.md": "x"})
    assert first.pushed(samples="3").code == 0
    report = tmp_path / "first" / str(first.runs) / "workspace" / "agentevals-report"
    rows = (report / "results.jsonl").read_text()
    base = {**BASE, "agent.sh": RUDE, "base.jsonl": rows}
    flow = Workflow(tmp_path / "second", server, {"docs.md": "x"}, base=base)
    done = flow.scheduled(fail_on="never", baseline=baseline, baseline_file="base.jsonl")
    assert done.code == 0, done.log
    assert words in done.summary
    assert flow.called()[1] == 0


def test_job__that_cannot_run_leaves_no_results_of_an_earlier_step(
    tmp_path: Path, server: GitHubServer
) -> None:
    """A merge of shards, or an upload, would take them for those of this step."""
    flow = Workflow(tmp_path, server, {"agent.sh": GOOD})
    job = flow.job("schedule", payloads.schedule_event(), flow.pull.main)
    results = job.workspace / "agentevals-report/results.jsonl"
    assert (job.finish().code, results.is_file()) == (0, True)
    job.inputs = {**job.inputs, "suites": "nope/**"}
    assert (job.finish().code, results.exists()) == (2, False)


# The branch itself


def test_branch__runs_at_once_lose_nothing(tmp_path: Path) -> None:
    origin = Repository.create(tmp_path / "origin", {"a": "1"})
    origin.git("clone", "--quiet", origin.path.as_uri(), str(tmp_path / "clone"))
    clone = Repository(tmp_path / "clone")
    names = [file_name(START, f"{number:040x}", number) for number in range(4)]

    async def add(name: str) -> None:
        content, suites = write_run([results.result()]), [("a", "")]
        await data_branch(clone).add(name, content, b"{}", suites, "Results")

    async def add_all() -> None:
        await asyncio.gather(*map(add, names))

    asyncio.run(add_all())
    assert names_on(origin) == ["badge.json", *sorted(names)]
    assert origin.git("rev-list", "--count", BRANCH) == "4"


def test_branch__with_something_else_is_left_alone(tmp_path: Path) -> None:
    origin = Repository.create(tmp_path / "origin", {"runs/a": "1", "code.py": ""})
    origin.git("clone", "--quiet", origin.path.as_uri(), str(tmp_path / "clone"))
    clone = Repository(tmp_path / "clone")
    with pytest.raises(GitError, match="`main` contains something else than results"):
        asyncio.run(data_branch(clone, "main").read())
    assert asyncio.run(data_branch(clone, "missing").read()) is None
