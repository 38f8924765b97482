"""A change on several machines: each runs a part, and the merge is the review of one machine. On
GitHub the shards write nothing, and the merge writes the check run and the comment."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import command
from tests.support.gate import Gate
from tests.support.github_server import GitHubServer
from tests.support.job import Finished
from tests.support.repositories import Files, PullRequest, Repository, pull_request

TARGETS = "targets:\n  - {name: default, provider: cli, command: [sh, agent.sh], cwd: /}\n"
AGENT = 'read name; echo "Good day, $name."\n'
#: Answers some names worse than the agent does, and one not at all.
WORSE = """\
read name
case $name in
  Ada3) echo "Yo";;
  Bob5) echo "Good day.";;
  *) echo "Good day, $name.";;
esac
"""
BROKEN = 'read name; case $name in *2) exit 1;; *) echo "Good day, $name.";; esac\n'


def suite(name: str, tests: int = 6) -> str:
    """A suite of independent tests and two turns of a conversation."""
    rows = [
        f'  - {{id: t{number}, input: "{name}{number}", criteria: greets, assert: [*polite, *known]}}'
        for number in range(tests)
    ]
    turns = [
        f'  - {{id: turn{number}, input: "{name}{number}", criteria: greets, conversation_id: talk,'
        " assert: [*polite]}"
        for number in range(2)
    ]
    anchors = (
        "x-one: &polite {type: contains, value: Good day}\n"
        f"x-two: &known {{type: contains, value: {name}, required: true}}\n"
    )
    return "\n".join([f"name: {name.lower()}", anchors + "tests:", *rows, *turns])


BASE: Files = {
    "evals/one/EVAL.yaml": suite("Ada"),
    "evals/two/EVAL.yaml": suite("Bob"),
    ".agentv/targets.yaml": TARGETS,
    "agent.sh": AGENT,
    ".gitignore": "/agentevals-report/\n/shards/\n",
}


def make(folder: Path, change: Files) -> Repository:
    made = Repository.create(folder, BASE)
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", change)
    return made


def run_shard(repository: Repository, shard: str) -> command.Done:
    folder = f"shards/{shard.partition('/')[0]}"
    arguments = ("review", "--base", "main", "--shard", shard, "--report-dir", folder)
    return command.run(repository.path, *arguments)


def merge(repository: Repository) -> tuple[int, dict[str, Any]]:
    """The merge of the shards that ran."""
    folder = repository.path / "agentevals-report/shards"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(repository.path / "shards", folder)
    done = command.run(repository.path, "merge", "--json")
    assert done.out.startswith("{"), done.err
    return done.code, json.loads(done.out)


def states(summary: dict[str, Any]) -> Any:
    """What a summary says about each test, without the numbers of fresh samples."""
    return [
        (each["path"], [{**test, "evidence": None} for test in each["tests"]], each["changes"])
        for each in summary["suites"]
    ]


@pytest.mark.slow
def test_merge__three_shards_give_the_review_of_one_machine(tmp_path: Path) -> None:
    """An agent and evaluators are changed, a test is new."""
    edited = suite("Bob", 7).replace("Good day", "day")
    made = make(tmp_path / "r", {"agent.sh": WORSE, "evals/two/EVAL.yaml": edited})
    done = command.run(made.path, "review", "--base", "main", "--json")
    assert done.code == 1, done.err
    for shard in ("1/3", "2/3", "3/3"):
        ran = run_shard(made, shard)
        assert ran.code == 0, ran.err
        assert f"shard {shard}: " in ran.out
    code, summary = merge(made)
    expected = json.loads(done.out)
    assert (code, states(summary)) == (1, states(expected))
    assert summary["reasons"] == expected["reasons"]
    names = ("results.jsonl", "base.jsonl")
    rows = [(made.path / "agentevals-report" / name).read_text().splitlines() for name in names]
    assert [len(each) for each in rows] == [17, 16]


def test_merge__a_shard_without_all_its_rows_is_inconclusive(tmp_path: Path) -> None:
    made = make(tmp_path / "r", {"agent.sh": f"# better\n{AGENT}"})
    for shard in ("1/2", "2/2"):
        assert run_shard(made, shard).code == 0
    assert merge(made)[0] == 0
    rows = made.path / "shards/2/results.jsonl"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[1:]))
    code, summary = merge(made)
    assert (code, summary["outcome"]) == (3, "inconclusive")
    assert any(
        "shards/2 has no complete results: rows are missing" in each for each in summary["reasons"]
    )
    assert "shard 2 of 2 has no results" in summary["reasons"]


class Workflow(Gate):
    """A run of the workflow: its jobs have checkouts of their own, and share report folders."""

    def __init__(self, folder: Path, server: GitHubServer, pull: PullRequest) -> None:
        super().__init__(folder, server, pull, {})
        self.artifacts = folder / "artifacts"

    def finish(self, **inputs: str) -> Finished:
        """The next job, with the artifacts of those before it."""
        job = self.job(inputs=inputs)
        report = job.workspace / "agentevals-report"
        if inputs.get("mode") == "merge":
            shutil.copytree(self.artifacts, report / "shards")
        done = job.finish()
        if "shard" in inputs:
            shutil.copytree(report, self.artifacts / f"{inputs['shard'][0]}-1")
        return done


@pytest.fixture
def workflow(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workflow]:
    pull = pull_request(tmp_path / "origin", BASE, request.param)
    with GitHubServer() as server:
        yield Workflow(tmp_path, server, pull)


@pytest.mark.parametrize("workflow", [{"agent.sh": WORSE}], indirect=True)
def test_shards__one_check_run_and_one_comment(workflow: Workflow) -> None:
    for shard in ("1/2", "2/2"):
        done = workflow.finish(shard=shard)
        assert done.code == 0, done.log  # a failed test is for the merge to judge
        assert f"shard {shard}: 8 tests ran" in done.summary
        assert done.outputs["head-sha"] == workflow.pull.head
    assert not workflow.server.check_runs
    assert not workflow.server.comments
    merged = workflow.finish(mode="merge")
    assert merged.code == 1, merged.log
    (check,) = workflow.server.check_runs
    assert (check.status, check.conclusion) == ("completed", "failure")
    assert "Bob5" in workflow.server.comments[0].body
    assert merged.outputs["regressions"] == "2"


@pytest.mark.slow
@pytest.mark.parametrize("workflow", [{"agent.sh": BROKEN}], indirect=True)
def test_shards__an_error_repeats_one_shard_and_a_missing_one_is_never_green(
    workflow: Workflow,
) -> None:
    shards = [workflow.finish(shard=shard) for shard in ("1/2", "2/2")]
    (red,) = (done for done in shards if done.code == 3)
    assert "::error::evals/one/EVAL.yaml: t2: " in red.log
    shutil.rmtree(workflow.artifacts / "2-1")
    merged = workflow.finish(mode="merge")
    assert merged.code == 3, merged.log
    assert "shard 2 of 2 has no results" in merged.log
    assert workflow.server.check_runs[-1].conclusion == "failure"


INVALID: Files = {"evals/one/EVAL.yaml": "name: ada\ntests: 7\n"}


@pytest.mark.parametrize("workflow", [INVALID], indirect=True)
def test_shards__an_invalid_suite_is_in_the_log(workflow: Workflow) -> None:
    done = workflow.finish(shard="1/2")
    assert done.code == 2, done.log
    assert "::error::evals/one/EVAL.yaml:2:8: " in done.log


def test_shard__an_invalid_suite_is_printed(tmp_path: Path) -> None:
    ran = run_shard(make(tmp_path / "r", INVALID), "1/2")
    assert ran.code == 2
    assert "error: evals/one/EVAL.yaml:2:8: " in ran.err


@pytest.mark.parametrize("workflow", [{"agent.sh": f"# better\n{AGENT}"}], indirect=True)
def test_merge__with_another_policy_than_the_shards_is_never_green(workflow: Workflow) -> None:
    """A shard does not sample again what would fail by the policy of the merge."""
    assert workflow.finish(shard="1/1").code == 0
    merged = workflow.finish(mode="merge", **{"fail-on": "failures"})
    assert merged.code == 3, merged.log
    assert "the shards have another value of `fail-on` than this job" in merged.log


@pytest.mark.parametrize("workflow", [{"agent.sh": AGENT}], indirect=True)
def test_merge__without_shards_is_a_red_check(workflow: Workflow) -> None:
    workflow.artifacts.mkdir()
    merged = workflow.finish(mode="merge")
    assert merged.code == 2, merged.log
    assert "there are no results of a shard of" in merged.log
    (check,) = workflow.server.check_runs
    assert (check.status, check.conclusion) == ("completed", "failure")
