"""Composites from a suite to the results file: scores, gates by their paths, what an error leaves
of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import command

ECHO = """\
targets:
  - {name: default, provider: cli, command: [cat], judge_target: judge}
  - {name: judge, provider: cli, command: [cat]}
  - {name: paid, provider: openai, model: m, api_key: "${{ PAID_KEY }}"}
"""
SUITE = """\
name: composites
tests:
  - id: gate-far-down
    input: alpha
    assert:
      - name: outer
        type: composite
        evaluators:
          - {name: a, type: contains, value: alpha, weight: 99}
          - name: quality
            type: composite
            evaluators:
              - {name: safe, type: contains, value: safe, required: true}
              - {name: rest, type: contains, value: alpha}
  - id: error-and-gate
    input: alpha
    assert:
      - {name: m, type: composite, evaluators: [{name: j, type: llm_judge, prompt: "{{answer}}"}, {name: b, type: is_json, required: true}]}
      - {name: good, type: contains, value: alpha}
  - id: two-of-three
    input: alpha beta
    assertions:
      - type: assert-set
        threshold: 0.66
        assertions: [{type: contains, value: alpha}, {type: contains, value: beta}, {type: contains, value: gamma}]
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("composites")
    (folder / ".agentv").mkdir()
    (folder / ".agentv/targets.yaml").write_text(ECHO)
    (folder / "EVAL.yaml").write_text(SUITE)
    done = command.run(folder, "run", "--output", "out.jsonl")
    assert done.code == 1, done.err
    return {
        row["evalId"]: row
        for row in map(json.loads, (folder / "out.jsonl").read_text().splitlines())
    }


@pytest.mark.parametrize(
    ("test", "verdict", "score", "gates", "error"),
    [
        ("gate-far-down", "fail", 0.995, ["outer/quality/safe"], False),
        ("error-and-gate", "fail", 1, ["m/b"], True),
        ("two-of-three", "pass", 1, [], False),
    ],
)
def test_run__composite(
    rows: dict[str, dict[str, Any]],
    test: str,
    verdict: str | None,
    score: float | None,
    gates: list[str],
    error: bool,
) -> None:
    row = rows[test]
    assert (row["verdict"], row["gatesFailed"], row["error"] is not None) == (
        verdict,
        gates,
        error,
    ), row["error"]
    assert row["score"] == (None if score is None else pytest.approx(score))


def test_run__keeps_the_results_of_children(rows: dict[str, dict[str, Any]]) -> None:
    (outer,) = rows["gate-far-down"]["evaluatorResults"]
    quality = outer["evaluatorResults"][1]
    assert [
        (child["name"], child["score"], child["passed"]) for child in quality["evaluatorResults"]
    ] == [
        ("safe", 0, False),
        ("rest", 1, True),
    ]
    kept = rows["error-and-gate"]["evaluatorResults"][0]
    assert (kept["score"], kept["passed"], kept["error"]["kind"]) == (None, False, "judge")
    assert kept["error"]["message"].startswith("j: ")


def test_run__asks_for_the_key_of_a_judge_inside(tmp_path: Path) -> None:
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".agentv/targets.yaml").write_text(ECHO)
    judge = (
        "{type: composite, assert: [{type: composite, assert: [{type: llm_judge, target: paid}]}]}"
    )
    (tmp_path / "EVAL.yaml").write_text(
        f"name: paid\ntests: [{{id: a, input: q, criteria: c, assert: [{judge}]}}]\n"
    )

    done = command.run(tmp_path, "run")

    assert done.code == 2
    assert "the target `paid` needs PAID_KEY" in done.out + done.err
