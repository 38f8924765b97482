"""Every evaluator type keeps the contract of `evaluators/base.py`, and every file of the folder is
in the registry."""

import asyncio
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentevals_action import evaluators
from agentevals_action.evaluators import base
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.trace import Trace, Usage
from agentevals_action.system.files.paths import Folder
from agentevals_action.validation.file_model import list_fields
from tests.support import cases

FOLDER = Path(evaluators.__file__).parent

#: For each type: its fields, an answer (or a trace) that passes, and one that does not. A type
#: without a line here fails the tests.
SAMPLES: dict[str, tuple[dict[str, Any], str | Trace, str | Trace]] = {
    "contains": ({"value": "a"}, "abc", "xyz"),
    "contains_any": ({"value": ["a", "b"]}, "b", "x"),
    "contains_all": ({"value": ["a", "b"]}, "ba", "b"),
    "icontains": ({"value": "A"}, "abc", "xyz"),
    "icontains_any": ({"value": ["A", "B"]}, "b", "x"),
    "icontains_all": ({"value": ["A", "B"]}, "ba", "b"),
    "starts_with": ({"value": "a"}, " ab", "ba"),
    "ends_with": ({"value": "b"}, "ab ", "ba"),
    "equals": ({"value": "a"}, " a", "b"),
    "regex": ({"value": "^a+$"}, "aaa", "ab"),
    "is_json": ({}, "{}", "{"),
    "code_judge": (
        {"exit_code": True, "script": ["grep", "-q", '"answer": "good"']},
        "good",
        "bad",
    ),
    "llm_judge": ({"prompt": "{{answer}}"}, '{"score": 1}', '{"score": 0}'),
    "rubric": (
        {"prompt": "{{answer}}", "rubrics": ["A"]},
        '{"checks": [{"id": "rubric-1", "satisfied": true}]}',
        '{"checks": [{"id": "rubric-1", "satisfied": false}]}',
    ),
    # It compares two answers, and scores none.
    "pairwise": ({"criteria": "A"}, "", ""),
    "latency": ({"threshold": 100}, Trace((), duration_ms=100), Trace((), duration_ms=100.5)),
    "cost": (
        {"budget": 0.3},
        Trace((), usage=Usage(cost_usd=0.1 + 0.2)),
        Trace((), usage=Usage(cost_usd=0.31)),
    ),
    "token_usage": (
        {"max_total": 10, "max_input": 6, "max_output": 5},
        Trace((), usage=Usage(6, 4)),
        Trace((), usage=Usage(6, 5)),
    ),
    "tool_trajectory": (
        {
            "mode": "exact",
            "expected": [{"tool": "a", "args": {"n": 1}, "max_duration_ms": 9}],
            "args_match": "exact",
        },
        Trace((), tool_calls=(ToolCall("a", {"n": 1}, duration_ms=9),)),
        Trace((), tool_calls=(ToolCall("b"),)),
    ),
    "field_accuracy": ({"fields": [{"path": "n"}]}, '{"n": 1}', '{"n": 2}'),
    "execution_metrics": (
        {"max_tool_calls": 0},
        Trace((), tool_calls=()),
        Trace((), tool_calls=(ToolCall("a"),)),
    ),
    "skill_trigger": (
        {"skill": "commit"},
        Trace((), tool_calls=(ToolCall("Skill", {"skill": "commit"}),)),
        Trace((), tool_calls=(ToolCall("Bash"),)),
    ),
    "composite": (
        {"evaluators": [cases.evaluator("contains", {"value": "a"}, name="a")]},
        "abc",
        "xyz",
    ),
}

every_type = pytest.mark.parametrize(
    "options", evaluators.EVALUATORS.values(), ids=lambda options: options.type
)


def names(options: type[Evaluator]) -> list[str]:
    """The fields of a type as a file writes them."""
    return [*list_fields(options)]


def test_registry__has_every_type_of_the_folder() -> None:
    found = set()
    for path in FOLDER.rglob("[!_]*.py"):
        module = ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        for item in vars(importlib.import_module(f"{evaluators.__name__}.{module}")).values():
            if isinstance(item, type) and issubclass(item, Evaluator):
                found.add(item)
    assert {item for item in found if hasattr(item, "type")} == {*evaluators.EVALUATORS.values()}


def test_registry__has_each_name_once() -> None:
    types = evaluators.EVALUATORS.values()
    listed = evaluators.EVALUATORS.all_spellings
    assert len(listed) == len(set(listed))
    assert [options.type for options in types] == list(evaluators.EVALUATORS)
    assert all(name == name.lower().replace("-", "_") for name in listed)
    assert set(SAMPLES) == set(evaluators.EVALUATORS)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("code_grader", "code_judge"),
        ("script", "code_judge"),
        ("llm_grader", "llm_judge"),
        ("llm_rubric", "llm_judge"),
        ("rubrics", "rubric"),
        ("assert_set", "composite"),
    ],
)
def test_registry__has_the_other_spellings(alias: str, name: str) -> None:
    assert evaluators.EVALUATORS[alias] is evaluators.EVALUATORS[name]


@every_type
def test_type__is_described(options: type[Evaluator]) -> None:
    assert options.__doc__
    assert options.__doc__ != Evaluator.__doc__
    described = options.model_json_schema()["properties"]
    assert [name for name in names(options) if not described[name].get("description")] == []
    common = Evaluator.model_fields
    assert all(options.model_fields[name].annotation == common[name].annotation for name in common)
    assert options.model_json_schema()["type"] == "object"


@pytest.mark.parametrize(
    "options",
    [options for options in evaluators.EVALUATORS.values() if not options.compares],
    ids=lambda options: options.type,
)
def test_type__scores_both_ways(options: type[Evaluator], tmp_path: Path) -> None:
    fields, good, bad = SAMPLES[options.type]
    for answer, score in ((good, 1.0), (bad, 0.0)):
        ask = cases.echo if options.asks_judge else cases.no_judge
        trace = answer if isinstance(answer, Trace) else Trace((Message("assistant", answer),))
        case = cases.case(trace=trace, root=tmp_path, ask=ask, expected='{"n": 1}')
        plain = cases.run(options.type, fields, case, threshold=0.8)
        negated = cases.run(options.type, fields, case, threshold=0.8, negate=True)
        assert (plain.score, plain.passed, plain.error) == (score, score == 1, None)
        assert plain.gates_failed == (() if score else ("e",))
        assert (negated.score, negated.passed) == (1 - score, score == 0)
        assert plain.required == 0.8


@every_type
def test_type__is_frozen_and_refuses_other_types(options: type[Evaluator], tmp_path: Path) -> None:
    fields = SAMPLES[options.type][0]
    made = options.model_validate(fields, context=Folder(tmp_path, tmp_path))
    for name in options.model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(made, name, "other")
    for name in names(options):
        errors = cases.errors(options.type, {**fields, name: object()}, tmp_path)
        assert errors[0].steps[0] == name


@every_type
def test_type__dumps_as_data_without_a_path_of_this_machine(
    options: type[Evaluator], tmp_path: Path
) -> None:
    made = options.model_validate(SAMPLES[options.type][0], context=Folder(tmp_path, tmp_path))
    assert str(tmp_path) not in json.dumps(made.model_dump(mode="json"))
    assert cases.named(made, Folder(tmp_path, tmp_path)) == {}
    assert made.inner_gates() == ()
    assert isinstance(made.label(), str)


def test_evaluators_of_a_test__run_side_by_side(tmp_path: Path) -> None:
    # Each waits for the file that the other writes: one after the other they would run out of time.
    def meeting(mine: str, other: str) -> Any:
        return cases.evaluator(
            "code_judge",
            {
                "exit_code": True,
                "script": ["sh", "-c", f"touch {mine}; until test -e {other}; do sleep 0.01; done"],
            },
            tmp_path,
        )

    async def both() -> list[float | None]:
        case = cases.case(root=tmp_path, timeout=20)
        return [
            result.score
            for result in await asyncio.gather(
                *(
                    base.run_evaluator(judge, case)
                    for judge in (meeting("a", "b"), meeting("b", "a"))
                )
            )
        ]

    assert asyncio.run(both()) == [1.0, 1.0]
