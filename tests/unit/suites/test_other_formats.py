"""Files of other tools are named and are no suites; a suite of ours with a mistake stays one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.model.runner import Runner
from agentevals_action.suites.find import find_suites
from tests.support import suites

DATA = Path(__file__).resolve().parents[2] / "data"
OTHERS, OURS = (
    yaml.safe_load((DATA / "other_formats" / name).read_text("utf-8"))
    for name in ("others.yaml", "ours.yaml")
)


def written(root: Path, case: dict[str, Any]) -> str:
    """The path of a case's file, which is written with the one beside it."""
    path: str = case.get("path", "EVAL.yaml")
    suites.write(root, {path: case["text"]})
    if "beside" in case:
        suites.write(root, {case["beside"]: "a prompt"})
    return path


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in OTHERS])
def test_other__is_named_with_its_entry_and_no_suite(tmp_path: Path, case: dict[str, Any]) -> None:
    path = written(tmp_path, case)
    found = find_suites(tmp_path, tmp_path, ("**/*.yaml",), None)

    assert found.paths == ()
    (warning,) = found.warnings
    assert str(warning).startswith(f"{path}:1:1: this is {case['is']} and no suite: it is not run")
    if case["entry"] == "none":
        assert "docs/reference/own-runner.md" in warning.advice
    else:
        (entry,) = yaml.safe_load(warning.advice.split("`")[1])["runners"]
        assert Runner.model_validate(entry).suites == tuple(case.get("suites", [path]))
        assert entry["results"] == case["entry"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in OURS])
def test_ours__with_a_mistake_stays_a_suite_with_an_error(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    path = written(tmp_path, case)
    found = find_suites(tmp_path, tmp_path, ("**/*.yaml",), None)

    assert (found.paths, found.warnings) == ((path,), ())
    assert suites.errors(tmp_path, path)


def test_ours__no_invalid_or_valid_suite_is_taken_for_another_tool_s() -> None:
    for folder in ("invalid", "valid"):
        found = find_suites(DATA / folder, DATA / folder, ("**/*.yaml",), None)
        warnings = (each for each in found.warnings if "a list" not in each.problem)
        others = [warning.location.path for warning in warnings]
        assert others == (["format-of-agentv-5.yaml"] if folder == "invalid" else [])


def test_other__outside_of_the_repository_is_not_read(tmp_path: Path) -> None:
    suites.write(tmp_path, {"outside/EVAL.yaml": OTHERS[0]["text"], "r/a.txt": ""})
    (tmp_path / "r/EVAL.yaml").symlink_to(tmp_path / "outside/EVAL.yaml")

    found = find_suites(tmp_path / "r", tmp_path / "r", (), None)

    assert (found.paths, found.warnings) == (("EVAL.yaml",), ())
