"""The examples: valid to the last warning, green on their own, and the demo's change shows what a
gate is for."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Repository

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DEMO = EXAMPLES / "demo"
RUNNERS = EXAMPLES / "runners"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository that holds the examples as ours does."""
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    Repository.create(tmp_path).commit("examples")
    return tmp_path


def suites_of(checkout: Path) -> set[str]:
    folder = checkout / "examples"
    paths = (*folder.rglob("EVAL.yaml"), *folder.rglob("evals.json"))
    return {path.relative_to(checkout).as_posix() for path in paths}


def test_examples__have_neither_fault_nor_warning(checkout: Path) -> None:
    done = command.run(checkout, "validate", "--strict", "examples")
    assert (done.code, done.err) == (0, ""), done.out
    valid = {line.partition(": valid")[0] for line in done.out.splitlines() if ": valid" in line}
    assert valid == suites_of(checkout)


def test_examples__are_green_as_they_stand(checkout: Path) -> None:
    done = command.run(checkout, "run", "examples", "--output", "results.jsonl")
    assert done.code == 0, done.out + done.err
    rows = [json.loads(line) for line in (checkout / "results.jsonl").read_text().splitlines()]
    assert {row["evalPath"] for row in rows} == suites_of(checkout)
    # One answer of the demo leaves something to improve.
    assert {row["evalId"]: row["verdict"] for row in rows if row["verdict"] != "pass"} == {
        "order-status-json": "borderline"
    }
    assert [row["evalId"] for row in rows if row["error"]] == []


#: Examples with a base and two pull requests, and the file that these change.
CHANGES = {
    "skills": "skills/release-notes/SKILL.md (skill)",
    "mcp-server": "shop/server.py (tool server)",
}


@pytest.mark.parametrize(("name", "code"), [("red", 1), ("green", 0)])
@pytest.mark.parametrize("example", ["skills", pytest.param("mcp-server", marks=pytest.mark.slow)])
def test_pull_requests__one_is_red_and_the_same_in_other_words_is_green(
    tmp_path: Path, example: str, name: str, code: int
) -> None:
    made = Repository(shutil.copytree(EXAMPLES / example / "base", tmp_path / "repository"))
    made.git("init", "--quiet", "--initial-branch=main")
    made.commit("base")
    made.git("checkout", "--quiet", "-b", name)
    made.git("apply", str(EXAMPLES / example / f"{name}.patch"))
    made.commit(name)
    done = command.run(made.path, "review", "--base", "main")
    assert done.code == code, done.out + done.err
    assert f"changed: {CHANGES[example]}" in done.out


@pytest.mark.parametrize("name", [folder.name for folder in sorted(RUNNERS.iterdir())])
def test_runners__each_entry_has_its_suites(name: str, tmp_path: Path) -> None:
    """Tests with the programs themselves are in `tests/integration`; here they are not started."""
    shutil.copytree(RUNNERS / name, tmp_path, dirs_exist_ok=True)
    Repository.create(tmp_path).commit("example")
    done = command.run(tmp_path, "validate", "--strict")
    assert (done.code, done.err) == (0, "")
    assert done.out.count(": valid") == (2 if name == "pytest" else 1)
    assert f"`runners/{name}/`" in (EXAMPLES / "README.md").read_text()


def test_runners__the_script_is_that_of_the_documentation_and_is_red_for_a_broken_prompt(
    tmp_path: Path,
) -> None:
    shutil.copytree(RUNNERS / "own", tmp_path, dirs_exist_ok=True)
    script = (tmp_path / "checks/run.py").read_text()
    assert script in (ROOT / "docs/reference/own-runner.md").read_text()
    Repository.create(tmp_path).commit("example")
    prompt = tmp_path / "prompts/support.txt"
    prompt.write_text(prompt.read_text().replace("30 days", "14 days"))
    done = command.run(tmp_path, "review", "--base", "HEAD")
    assert done.code == 1, done.out + done.err
    summary = json.loads((tmp_path / "agentevals-report" / "summary.json").read_text())
    (suite,) = summary["suites"]
    assert {test["id"]: test["change"] for test in suite["tests"]} == {"returns": "regressed"}


@pytest.mark.slow
def test_demo__shows_every_change(tmp_path: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(DEMO / "base", tmp_path, dirs_exist_ok=True, ignore=ignore)
    repository = Repository.create(tmp_path)
    repository.commit("base")
    repository.git("checkout", "--quiet", "-b", "change")
    repository.git("apply", str(DEMO / "red.patch"))
    repository.commit("head")

    done = command.run(tmp_path, "review", "--base", "main")
    assert done.code == 1, done.out + done.err
    summary = json.loads((tmp_path / "agentevals-report" / "summary.json").read_text())
    assert [suite["path"] for suite in summary["suites"]] == [
        "evals/EVAL.yaml",
        "evals/refunds/EVAL.yaml",
    ]
    tests = (test for suite in summary["suites"] for test in suite["tests"])
    assert {test["id"]: test["change"] for test in tests} == {
        "refund": "regressed",
        "refund-window": "regressed",
        "other-customers-data": "regressed",
        "order-status-json": "improved",
        "shipping-abroad": "regressed",
        "cancel-order": "new",
    }
    rows = [
        json.loads(line)
        for line in (tmp_path / "agentevals-report" / "results.jsonl").read_text().splitlines()
    ]
    assert {row["evalId"]: row["gatesFailed"] for row in rows if row["gatesFailed"]} == {
        "refund": ["tool_trajectory"],
        "refund-window": ["contains-30 days"],
        "other-customers-data": ["no-email-address"],
    }


@pytest.mark.slow
def test_make__draws_a_red_and_a_green_pull_request(tmp_path: Path) -> None:
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        pytest.skip("NO BROWSER: install the package chromium to draw the pictures")
    environment = {**os.environ, "PATH": command.PATH}
    script = [sys.executable, str(EXAMPLES / "make.py"), str(tmp_path / "made")]
    subprocess.run(script, env=environment, check=True)
    made = tmp_path / "made"
    assert "**Failed:** 4 tests regressed" in (made / "red.md").read_text()
    assert "**Passed:** 6 tests in 1 suite" in (made / "green.md").read_text()
    assert "$ agentevals-action review --base main" in (made / "review.svg").read_text()
    assert all((made / f"{name}.png").stat().st_size for name in ("red", "green", "report"))
