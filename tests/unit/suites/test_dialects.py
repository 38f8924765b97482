"""Three dialects and their mixtures: one and the same suite."""

from pathlib import Path

import pytest

from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.model.messages import Message
from agentevals_action.model.suite import Suite
from tests.support import suites

FOLDER = Path(__file__).resolve().parents[2] / "data/dialects"


def read(name: str) -> str:
    return (FOLDER / f"{name}.yaml").read_text("utf-8")


def seen(suite: Suite) -> object:
    """All that a suite means, locations aside."""
    return [
        (
            (test.id, test.criteria, test.input, test.expected_output, test.target),
            [(e.name, e.type, e.own_fields(), e.origin, e.weight) for e in test.evaluators],
        )
        for test in suite.tests
    ]


@pytest.mark.parametrize("name", ["earlier", "agentv", "mixed"])
def test_dialect__means_the_same(tmp_path: Path, name: str) -> None:
    files = {"EVAL.yaml": read("today"), "other/EVAL.yaml": read(name)}
    suites.write(tmp_path, {".agentv/targets.yaml": suites.TARGETS, **files})

    today, other = suites.load_valid(tmp_path), suites.load_valid(tmp_path, "other/EVAL.yaml")

    assert seen(today) == seen(other)
    assert [
        str(warning)
        for warning in other.warnings
        if "is the earlier spelling of" not in warning.problem
    ] == []
    (test,) = today.tests
    assert test.input == (Message("user", "hello"),)
    assert [evaluator.origin for evaluator in test.evaluators] == ["test", "test", "suite"]
    rubric = test.evaluators[1]
    assert isinstance(rubric, Rubric)
    assert [criterion.outcome for criterion in rubric.rubrics] == ["is one"]


def test_name__missing_at_the_root_does_not_depend_on_the_checkout(tmp_path: Path) -> None:
    for folder in ("head", "base"):
        suites.write(
            tmp_path / folder, {"support.eval.yaml": "tests: [{id: a, input: q, criteria: c}]"}
        )

    assert {
        suites.load_valid(tmp_path / folder, "support.eval.yaml").name
        for folder in ("head", "base")
    } == {"support"}


@pytest.mark.parametrize("name", ["today", "agentv"])
def test_earlier_spelling__is_none_of_the_living_dialects(tmp_path: Path, name: str) -> None:
    suites.write(tmp_path, {".agentv/targets.yaml": suites.TARGETS, "EVAL.yaml": read(name)})

    assert suites.load_valid(tmp_path).warnings == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "name: suite\nevalcases: [{id: a, input: q, criteria: c}]",
            "2:1: `evalcases` is the earlier spelling of `tests`; write `tests`",
        ),
        (
            "tests: [{id: a, input: q, criteria: c}]",
            "1:1: this suite has no `name`; write `name: eval`, which is its name now",
        ),
        (
            "name: a--b\ntests: [{id: a, input: q, criteria: c}]",
            "1:7: the name `a--b` has a doubled hyphen; write single hyphens",
        ),
    ],
    ids=["earlier spelling", "name", "hyphens"],
)
def test_strict__makes_every_warning_an_error(tmp_path: Path, text: str, problem: str) -> None:
    suites.write(tmp_path, {"EVAL.yaml": text})

    assert [str(warning) for warning in suites.load_valid(tmp_path).warnings] == [
        f"EVAL.yaml:{problem}"
    ]
    assert suites.errors(tmp_path, strict=True) == [f"EVAL.yaml:{problem}"]
