"""`report`, and the files that `run` writes next to its results."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import command

SUITE = """name: support
tests:
  - {id: greets, input: hello, assert: [{type: contains, value: Hello, required: true}]}
  - {id: thanks, input: bye, assert: [{type: contains, value: Bye}]}
"""
TARGETS = """targets:
  - {{name: default, provider: mock, response: "{answer}"}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "EVAL.yaml").write_text(SUITE)
    _answer(tmp_path, "Hello and Bye")
    return tmp_path


def _answer(folder: Path, answer: str) -> None:
    path = folder / ".agentv" / "targets.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(TARGETS.format(answer=answer))


def _tests(page: Path) -> list[dict[str, Any]]:
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    tests: list[dict[str, Any]] = json.loads(found[1])["tests"]
    return tests


def test_run__writes_the_page_with_every_test(folder: Path) -> None:
    _answer(folder, "Hello")
    assert command.run(folder, "run").code == 1
    tests = _tests(folder / "agentevals-report" / "report.html")
    assert {test["id"]: test["head"]["verdict"] for test in tests} == {
        "greets": "pass",
        "thanks": "fail",
    }
    assert all("details" in test for test in tests)


def test_report__compares_stored_results(folder: Path) -> None:
    assert command.run(folder, "run", "--output", "base.jsonl").code == 0
    _answer(folder, "Bye")
    assert command.run(folder, "run", "--output", "head.jsonl").code == 1
    done = command.run(
        folder, "report", "head.jsonl", "--base", "base.jsonl", "-o", "out/page.html"
    )
    assert done.code == 0, done.err
    page = folder / "out" / "page.html"
    assert "1 test regressed and failed a required gate" in page.read_text(encoding="utf-8")
    assert [(test["id"], test["change"]) for test in _tests(page)] == [
        ("greets", "regressed"),
        ("thanks", "unchanged"),
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["missing.jsonl"], "cannot be read"),
        (["empty.jsonl"], "contains no result"),
        (["head.jsonl", "--base", "other.jsonl"], "have no test in common"),
        (["head.jsonl", "-o", "file/report.html"], "cannot be written"),
    ],
)
def test_report__bad_input(folder: Path, arguments: list[str], problem: str) -> None:
    command.run(folder, "run", "--output", "head.jsonl")
    (folder / "empty.jsonl").write_text("")
    (folder / "file").write_text("")
    row = json.loads((folder / "head.jsonl").read_text().splitlines()[0])
    other = {**row, "evalId": "other", "evalPath": "x/EVAL.yaml", "dataset": "x"}
    (folder / "other.jsonl").write_text(json.dumps(other) + "\n")
    done = command.run(folder, "report", *arguments)
    assert done.code in (2, 3)
    assert problem in done.err
    assert "Traceback" not in done.err
