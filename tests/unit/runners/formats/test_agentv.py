"""The results of AgentV: what a line means, where a test stands, and what runs again."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.model.usage import Usage
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import Check, Row, Selection
from tests.support.runners import started

DATA = Path(__file__).resolve().parents[3] / "data/runners/agentv"
RECORDED = DATA / "recorded-4.42.4"
FORMAT = FORMATS["agentv"]
SUITE = "capitals.eval.yaml"


def suite(root: Path = DATA, path: str = SUITE) -> Suite:
    runner = Runner(name="agentv", results="agentv", suites=(path,))
    return Suite().model_copy(update={"path": path, "root": root, "folder": root, "runner": runner})


def read(folder: Path = RECORDED, own: Suite | None = None) -> dict[str, Row]:
    return {row.id: row for row in FORMAT.read(folder, own or suite())}


def results(folder: Path, *lines: dict[str, Any]) -> Path:
    """A folder with results of these fields."""
    least = {"test_id": "a", "target": "default", "score": 1, "execution_status": "ok"}
    (folder / "index.jsonl").write_text("\n".join(json.dumps(least | line) for line in lines))
    (folder / "benchmark.json").write_text('{"metadata": {"planned_test_count": 1}}')
    return folder


def test_read__a_row() -> None:
    assert read()["france"] == Row(
        id="france",
        passed=True,
        question="What is the capital of France?",
        answer="The capital is Paris.",
        target="default",
        asked="@[user]:\nWhat is the capital of France?",
        graded={
            "criteria": "It names Paris.",
            "expected_output": "Paris",
            "assertions": [
                {"name": "contains-Paris", "type": "contains", "value": "Paris"},
                {"name": "sentence", "type": "regex", "value": "\\.$", "required": True},
            ],
        },
        checks=(Check("contains-Paris", True, 1), Check("sentence", True, 1)),
        score=1,
        duration_ms=read()["france"].duration_ms,
        location=Location(SUITE, 5, 5),
        source="france",
    )


def test_read__the_verdict_is_that_of_agentv() -> None:
    rows = read()

    assert {name: (row.passed, row.score, row.error) for name, row in rows.items()} == {
        "france": (True, 1, ""),
        "italy?": (False, 0.5, ""),
        "spain": (False, None, "the API answers 500 (exit code 1)"),
        "judged": (True, 1, ""),
    }
    assert rows["italy?"].checks[0] == Check(
        "contains-Rome", False, 0, 'Output does not contain "Rome"'
    )
    assert rows["spain"].answer == ""


def test_read__a_judge_in_a_file_is_of_the_suite() -> None:
    row = read()["judged"]

    assert (row.asked, row.graded) == (None, None)


def test_read__several_messages() -> None:
    assert read()["italy?"].question == (
        "@[system]:\nBe brief.\n\n@[user]:\nWhat is the capital of Italy?"
    )


def test_read__a_test_of_several_targets(tmp_path: Path) -> None:
    folder = results(tmp_path, {}, {"target": "second"})

    assert list(read(folder)) == ["a [default]", "a [second]"]


def test_read__the_least_of_a_line(tmp_path: Path) -> None:
    assert read(results(tmp_path, {})) == {
        "a": Row("a", passed=True, target="default", score=1, source="a")
    }


@pytest.mark.parametrize(
    ("fields", "usage"),
    [
        ({}, Usage()),
        ({"cost_usd": 0.5}, Usage(cost_usd=0.5)),
        ({"token_usage": {"input": 3, "output": 2}}, Usage(3, 2)),
        (
            {"token_usage": {"input": 3, "output": 2, "cached": 1}, "cost_usd": 1},
            Usage(3, 2, 1, cost_usd=1),
        ),
    ],
)
def test_read__what_a_test_used(tmp_path: Path, fields: dict[str, Any], usage: Usage) -> None:
    assert read(results(tmp_path, fields))["a"].usage == usage


def test_read__a_skipped_grader_has_no_verdict(tmp_path: Path) -> None:
    """AgentV makes an error of the test."""
    scores = [{"name": "x", "score": 0, "verdict": "skip"}]
    status = "execution_error"
    row = read(results(tmp_path, {"scores": scores, "execution_status": status}))["a"]

    assert (row.error, row.checks) == ("AgentV gives no reason", (Check("x", None, 0),))


def test_read__paths_of_the_checkout_are_left_out(tmp_path: Path) -> None:
    folder = results(tmp_path, {"input_path": "input.md"})
    (folder / "input.md").write_text(f"@[user]:\nRead {DATA}/a.txt.")

    assert read(folder)["a"].question == "Read a.txt."


def test_location__the_item_of_the_suite() -> None:
    own = suite()

    assert {row.id: row.location for row in FORMAT.read(RECORDED, own)} == {
        "france": Location(SUITE, 5, 5),
        "italy?": Location(SUITE, 16, 5),
        "spain": Location(SUITE, 28, 5),
        "judged": Location(SUITE, 34, 5),
    }


@pytest.mark.parametrize("text", ["- a", "tests: cases.jsonl", "tests: [a, {id: 1}]", "a: [", ""])
def test_location__a_suite_without_these_tests(tmp_path: Path, text: str) -> None:
    (tmp_path / SUITE).write_text(text)
    own = suite(tmp_path)

    assert {row.location for row in FORMAT.read(RECORDED, own)} == {None}


def test_select__a_pattern_of_each_id() -> None:
    ids = ["a", "a[1]", "!b {c,d}", "e\\f", "a"]
    rows = [Row(each, passed=False, source=each) for each in ids]

    assert FORMAT.select(rows, suite()) == (
        Selection(
            words=(
                *("--test-id=a", r"--test-id=a\[1\]", r"--test-id=\!b \{c,d\}"),
                *(r"--test-id=e\\f",),
            )
        ),
    )


def test_select__a_test_that_depends_on_others_runs_with_all(tmp_path: Path) -> None:
    """AgentV refuses a test without those that it depends on."""
    folder = results(tmp_path, {"eval_path": "EVAL.yaml"}, {"test_id": "b"})
    (folder / "EVAL.yaml").write_text("tests: [{id: a, depends_on: [b]}]")

    assert FORMAT.select(list(read(folder).values()), suite()) == ()


@pytest.mark.parametrize("text", ["tests: []", "tests: [a]", "- a", "a: [", "\x00"])
def test_read__a_bundle_of_another_structure(tmp_path: Path, text: str) -> None:
    folder = results(tmp_path, {"eval_path": "EVAL.yaml"})
    (folder / "EVAL.yaml").write_text(text)

    assert read(folder)["a"].graded is None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_program__a_run_and_a_run_again(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / ".agentv").mkdir(parents=True)
    for name in (SUITE, "agent.py", "judge.py"):
        shutil.copy(DATA / name, root)
    shutil.copy(DATA / "targets.yaml", root / ".agentv")
    own = suite(root)

    rows = {row.id: row for row in started(FORMAT, own, tmp_path / "first")}
    (selection,) = FORMAT.select([rows["italy?"], rows["france"]], own)
    again = started(FORMAT, own, tmp_path / "again", selection)

    recorded = read()
    for name, row in rows.items():
        expected = recorded[name]
        assert (row.passed, row.error, row.asked, row.graded, row.checks, row.location) == (
            *(expected.passed, expected.error, expected.asked, expected.graded),
            *(expected.checks, expected.location),
        )
    assert sorted(row.id for row in again) == ["france", "italy?"]
