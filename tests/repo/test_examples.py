"""The examples: valid to the last warning, green on their own, and the demo's change shows what a gate is for."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repositories import Repository

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DEMO = EXAMPLES / "demo"


def agentevals(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command as a user starts it."""
    command = [sys.executable, "-m", "agentevals_action", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=100)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository that holds the examples as ours does."""
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    Repository.create(tmp_path).commit("examples")
    return tmp_path


def suites_of(checkout: Path) -> set[str]:
    return {path.relative_to(checkout).as_posix() for path in (checkout / "examples").rglob("EVAL.yaml")}


def test_examples__have_neither_fault_nor_warning(checkout: Path) -> None:
    done = agentevals("validate", "--strict", "true", "examples", cwd=checkout)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert {line.partition(":")[0] for line in done.stdout.splitlines()} == suites_of(checkout)


def test_examples__are_green_as_they_stand(checkout: Path) -> None:
    done = agentevals("run", "examples", "--output", "results.jsonl", cwd=checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (checkout / "results.jsonl").read_text().splitlines()]
    assert {row["evalPath"] for row in rows} == suites_of(checkout)
    # One answer of the demo leaves something to improve.
    assert {row["evalId"]: row["verdict"] for row in rows if row["verdict"] != "pass"} == {"order-status-json": "borderline"}
    assert [row["evalId"] for row in rows if row["error"]] == []


def test_demo__changes_files_of_its_base() -> None:
    head = [path.relative_to(DEMO / "head") for path in (DEMO / "head").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert head
    assert [str(path) for path in head if (DEMO / "base" / path).read_bytes() == (DEMO / "head" / path).read_bytes()] == []


def test_demo__shows_every_kind_of_change(tmp_path: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(DEMO / "base", tmp_path, dirs_exist_ok=True, ignore=ignore)
    repository = Repository.create(tmp_path)
    repository.commit("base")
    repository.git("checkout", "--quiet", "-b", "change")
    shutil.copytree(DEMO / "head", tmp_path, dirs_exist_ok=True, ignore=ignore)
    repository.commit("head")

    done = agentevals("review", "--base", "main", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    summary = json.loads((tmp_path / "agentevals-report" / "summary.json").read_text())
    (suite,) = summary["suites"]
    assert suite["path"] == "evals/EVAL.yaml"
    assert {test["id"]: test["change"] for test in suite["tests"]} == {
        "refund-window": "regressed",
        "other-customers-data": "regressed",
        "order-status-json": "improved",
        "shipping-abroad": "regressed",
        "cancel-order": "new",
    }
    rows = [json.loads(line) for line in (tmp_path / "agentevals-report" / "results.jsonl").read_text().splitlines()]
    assert {row["evalId"]: row["gatesFailed"] for row in rows if row["gatesFailed"]} == {
        "refund-window": ["contains-30 days"],
        "other-customers-data": ["no-email-address"],
    }
