"""A script of one's own as a runner: the example of the documentation, reviewed."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Repository

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/runners/own"
SCRIPT = (EXAMPLE / "checks/run.py").read_text("utf-8")
#: Writes a line for each of very many tests.
MANY = """\
import sys
line = '{"evalId": "%d", "verdict": "pass"}\\n'
open(sys.argv[2], "w").writelines(line % number for number in range(50_001))
"""
PROMPT = (EXAMPLE / "prompts/support.txt").read_text("utf-8")
AGENT = (EXAMPLE / "agent.py").read_text("utf-8")


def test_page__shows_the_example() -> None:
    page = (EXAMPLE.parents[2] / "docs/reference/own-runner.md").read_text("utf-8")
    entry = (EXAMPLE / ".agentevals.yaml").read_text("utf-8").partition("    required")[0]
    assert f"```python\n{SCRIPT}```" in page
    assert f"```yaml\n{entry}```" in page


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository.create(tmp_path / "repository")
    shutil.copytree(EXAMPLE, made.path, dirs_exist_ok=True)
    made.commit("base", {".gitignore": "/agentevals-report/\n"})
    return made


def review(repository: Repository, *words: str) -> command.Done:
    return command.run(repository.path, "review", "--base", "HEAD~1", *words)


def test_review__nothing_that_matters_changed(repository: Repository) -> None:
    repository.commit("a remark", {"agent.py": f"{AGENT}\n# a remark\n"})
    done = review(repository)

    assert done.code == 0, done.out + done.err
    assert "3 tests in 1 suite, all pass" in done.out


def test_review__a_broken_prompt_is_a_failed_gate_with_both_answers(repository: Repository) -> None:
    repository.commit("14 days", {"prompts/support.txt": PROMPT.replace("30 days", "14 days")})
    done = review(repository)

    assert done.code == 1, done.out + done.err
    assert "'30 days' is not in the answer" in done.out
    assert "You can return shoes within 30 days" in done.out
    assert "You can return shoes within 14 days" in done.out
    assert "cancellation" not in done.out.partition("Compared with")[0]


def test_review__a_changed_grader_is_named_and_nothing_is_compared_by_it(
    repository: Repository,
) -> None:
    lenient = SCRIPT.replace('test["contains"] in agent.stdout', "bool(agent.stdout)")
    prompt = PROMPT.replace("30 days", "14 days")
    repository.commit("lenient", {"checks/run.py": lenient, "prompts/support.txt": prompt})
    done = review(repository)

    assert "- evaluator `checks/run.py` changed" in done.out, done.out + done.err
    summary = json.loads((repository.path / "agentevals-report/summary.json").read_text())
    changes = {test["id"]: test["change"] for test in summary["suites"][0]["tests"]}
    assert changes["returns"] == "notComparable"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (SCRIPT + "sys.exit('no credit left')\n", "no credit left"),
        (SCRIPT.replace('"evalId"', '"id"'), "line 1 of its results.jsonl: `evalId`"),
        ("", "it wrote no results.jsonl"),
        (MANY, "it reported more than 50,000 samples"),
    ],
)
def test_review__a_script_that_fails_is_no_deleted_test(
    repository: Repository, script: str, words: str
) -> None:
    repository.commit("the script fails", {"checks/run.py": script})
    done = review(repository)

    assert done.code == 3, done.out + done.err
    assert words in done.out
    assert "removed" not in done.out


def test_run__samples_are_starts_of_the_script(repository: Repository) -> None:
    done = command.run(repository.path, "run", "--samples", "2")

    assert done.code == 0, done.out + done.err
    lines = (repository.path / "agentevals-report/results.jsonl").read_text().splitlines()
    assert [len(json.loads(line)["samples"]) for line in lines] == [2, 2, 2]
