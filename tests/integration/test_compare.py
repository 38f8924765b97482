"""`compare` on files of results: ours, AgentV's `index.jsonl`, and one against the other."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import command

TARGETS = 'targets: [{name: default, provider: mock, responses: [{pattern: broken, response: no}, {pattern: ".*", response: hello}]}]\n'
SUITE = """\
name: greeter
assert: [{type: contains, value: hello}]
tests:
  - {id: one, input: one}
  - {id: two, input: two}
"""


def index(path: Path, *rows: dict[str, object]) -> Path:
    """AgentV's rows, with what each has anyway."""
    path.parent.mkdir(parents=True, exist_ok=True)
    common = {
        "timestamp": "2026-03-13T00:00:00.000Z",
        "suite": "greeter",
        "target": "agent",
        "execution_status": "ok",
        "scores": [],
    }
    path.write_text("".join(json.dumps({**common, **row}) + "\n" for row in rows))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".agentv/targets.yaml").write_text(TARGETS)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/EVAL.yaml").write_text(SUITE)
    return tmp_path


def compare(folder: Path, *arguments: str) -> tuple[int, Sequence[str]]:
    done = command.run(folder, "compare", *arguments)
    assert "Traceback" not in done.err, done.err
    return done.code, (done.out + done.err).splitlines()


def test_compare__agentv_s_rows_with_agentv_s(tmp_path: Path) -> None:
    index(
        tmp_path / "base/index.jsonl",
        {"test_id": "one", "score": 1.0},
        {"test_id": "two", "score": 0.3},
        {"test_id": "gone", "score": 1.0},
    )
    index(
        tmp_path / "head/index.jsonl",
        {"test_id": "one", "score": 0.7},
        {"test_id": "two", "score": 0.9},
        {"test_id": "new", "score": 1.0},
    )

    code, said = compare(tmp_path, "base/index.jsonl", "head/index.jsonl")

    assert code == 1
    assert [line.split() for line in said[:4]] == [
        ["regressed", "greeter", "one:", "pass", "→", "borderline"],
        ["improved", "greeter", "two:", "fail", "→", "pass"],
        ["new", "greeter", "new:", "–", "→", "pass"],
        ["removed", "greeter", "gone:", "pass", "→", "–"],
    ]
    assert "failed: 1 test regressed" in said


def test_compare__agentv_s_rows_as_the_base_of_a_run_of_ours(folder: Path) -> None:
    assert command.run(folder, "run", "--output", "head.jsonl").code == 0
    index(
        folder / "index.jsonl", {"test_id": "one", "score": 1.0}, {"test_id": "two", "score": 0.2}
    )

    code, said = compare(folder, "index.jsonl", "head.jsonl")

    assert code == 0
    assert said[0].split() == ["improved", "evals/EVAL.yaml", "two:", "fail", "→", "pass"]
    assert not any(line.startswith(("new", "removed")) for line in said)


def test_compare__a_run_of_ours_as_the_base_of_agentv_s_rows(folder: Path) -> None:
    assert command.run(folder, "run", "--output", "base.jsonl").code == 0
    index(
        folder / "index.jsonl", {"test_id": "one", "score": 0.1}, {"test_id": "two", "score": 1.0}
    )

    code, said = compare(folder, "base.jsonl", "index.jsonl")

    assert code == 1
    assert said[0].split() == ["regressed", "greeter", "one:", "pass", "→", "fail"]


def test_compare__an_execution_error_of_agentv_is_no_pass(folder: Path) -> None:
    rows: list[dict[str, object]] = [
        {"test_id": "one", "score": 1.0},
        {"test_id": "two", "score": 0, "execution_status": "execution_error"},
    ]
    index(folder / "head.jsonl", *rows)
    index(folder / "base.jsonl", {"test_id": "one", "score": 1.0}, {"test_id": "two", "score": 1.0})

    assert compare(folder, "base.jsonl", "head.jsonl")[0] == 3


def test_compare__suites_of_one_name_are_not_mistaken_for_each_other(folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "more/EVAL.yaml").write_text(SUITE)
    assert command.run(folder, "run", "--output", "head.jsonl").code == 0
    index(folder / "index.jsonl", {"test_id": "one", "score": 1.0})

    code, said = compare(folder, "index.jsonl", "head.jsonl")

    assert code == 2
    assert any("no test in common" in line for line in said)


def test_compare__rows_of_two_targets_are_refused(folder: Path) -> None:
    twice = index(
        folder / "index.jsonl",
        {"test_id": "one", "score": 1.0},
        {"test_id": "one", "score": 0.1, "target": "other"},
    )

    code, said = compare(folder, str(twice), str(twice))

    assert code == 2
    assert "contains the test `one` of `greeter` twice (target `agent` and `other`)" in said[0]


#: What AgentV 4.42.4 wrote for a suite of two tests at evals/greet.eval.yaml.
REAL = Path(__file__).parents[1] / "support" / "agentv_index.jsonl"


def test_compare__agentv_s_real_index_by_the_path_of_the_suite(tmp_path: Path) -> None:
    """Each row names the copy of its test as `eval_path`; the suite's path stands elsewhere."""
    rows = [json.loads(line) for line in REAL.read_text().splitlines()]
    assert [row["eval_path"] for row in rows] == [
        "greeter/one/task/EVAL.yaml",
        "greeter/two/task/EVAL.yaml",
    ]
    rows[0]["score"] = 0
    (tmp_path / "head.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, lines = compare(tmp_path, str(REAL), "head.jsonl")
    assert code == 1
    assert "2 tests: 1 regressed, 1 still failing" in lines, lines
    assert any("evals/greet.eval.yaml" in line for line in lines)


def test_compare__agentv_s_real_index_with_ours(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".agentv/targets.yaml").write_text(TARGETS)
    (tmp_path / "evals/greet.eval.yaml").write_text(SUITE)
    assert command.run(tmp_path, "run").code == 0
    code, lines = compare(tmp_path, str(REAL), "agentevals-report/results.jsonl")
    assert code == 0
    assert "2 tests: 1 unchanged, 1 improved" in lines, lines
