"""The tests of skills: every shape in use becomes ordinary tests, or a diagnostic."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from tests.support.suites import TARGETS, load, write

CASES = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "data/skill_evals.yaml").read_text("utf-8")
)
FOLDER = "skills/csv"
EVAL = "workspace: {skills: [..]}\n"


def loaded(root: Path, case: dict[str, Any]) -> Suite | BrokenSuite:
    """The suite of an EVAL.yaml that names the file of the case."""
    name = case.get("path", "evals.json")
    files = {f"{FOLDER}/{path}": "1\n" for path in case.get("fixtures", ())}
    suite = f"name: csv\n{EVAL}tests: {name}\n"
    own = {f"{FOLDER}/evals/EVAL.yaml": suite, f"{FOLDER}/evals/{name}": case["file"]}
    skill = {f"{FOLDER}/SKILL.md": "---\nname: csv\n---\nSum.\n"}
    write(root, {".agentv/targets.yaml": TARGETS, **skill, **own, **files})
    return load(root, f"{FOLDER}/evals/EVAL.yaml")


def described(test: Test) -> dict[str, Any]:
    """What the table says about a test."""
    fields = {
        "id": test.id,
        "input": test.input[0].content,
        "criteria": test.criteria,
        "description": test.description,
        "metadata": test.metadata,
        "evaluators": [[each.type, asked(each)] for each in test.evaluators],
        "fixtures": {each.source or each.name: [*each.targets] for each in test.fixtures},
    }
    return {name: value for name, value in fields.items() if value}


def asked(evaluator: Evaluator) -> Any:
    if isinstance(evaluator, Rubric):
        assert not list(evaluator.gates())
        return [each.outcome for each in evaluator.rubrics]
    return evaluator.own_fields() if evaluator.type == "skill_trigger" else None


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_skill_tests__are_read_in_every_shape(tmp_path: Path, case: dict[str, Any]) -> None:
    suite, path = loaded(tmp_path, case), f"{FOLDER}/evals/{case.get('path', 'evals.json')}:"
    if isinstance(suite, BrokenSuite):
        lines = [str(error).removeprefix(path) for error in suite.errors]
        assert lines == case.get("errors", [])
        return
    assert [described(test) for test in suite.tests] == case["tests"]
    assert [str(each).removeprefix(path) for each in suite.warnings] == case.get("warnings", [])
