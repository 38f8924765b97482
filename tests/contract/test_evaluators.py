"""Every evaluator type keeps the contract of `evaluators/base.py`, and every file of the folder is
in the registry."""

import asyncio
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from agentevals_action import evaluators
from agentevals_action.entries.reading import entry_schema, fields_of, read_entry, to_data
from agentevals_action.evaluators import base
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.suites.files.validation_errors import Refused
from agentevals_action.system.paths import Folder
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
    "code_judge": ({"script": ["grep", "-q", '"answer": "good"']}, "good", "bad"),
    "llm_judge": ({"prompt": "{{answer}}"}, '{"score": 1}', '{"score": 0}'),
    "rubric": (
        {"prompt": "{{answer}}", "rubrics": ["A"]},
        '{"checks": [{"id": "rubric-1", "satisfied": true}]}',
        '{"checks": [{"id": "rubric-1", "satisfied": false}]}',
    ),
    "latency": ({"threshold": 100}, Trace((), duration_ms=100), Trace((), duration_ms=100.5)),
    "cost": ({"budget": 0.3}, Trace((), cost_usd=0.1 + 0.2), Trace((), cost_usd=0.31)),
    "token_usage": (
        {"max_total": 10, "max_input": 6, "max_output": 5},
        Trace((), input_tokens=6, output_tokens=4),
        Trace((), input_tokens=6, output_tokens=5),
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
    "options", evaluators.every(), ids=lambda options: options.type
)


def test_registry__has_every_file_of_the_folder() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "base"}
    assert {options.__module__.rpartition(".")[2] for options in evaluators.every()} == files
    for name in files:
        module = importlib.import_module(f"agentevals_action.evaluators.{name}")
        own = [
            item
            for item in vars(module).values()
            if isinstance(item, type) and item.__module__ == module.__name__
        ]
        assert [
            item
            for item in own
            if issubclass(item, base.Options) and item not in evaluators.every()
        ] == []


def test_catalog__has_each_name_once() -> None:
    names = [name for options in evaluators.every() for name in (options.type, *options.aliases)]
    assert len(names) == len(set(names))
    assert set(evaluators.catalog()) == set(names)
    assert all(name == name.lower().replace("-", "_") for name in names)
    assert set(SAMPLES) == {options.type for options in evaluators.every()}


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
def test_catalog__knows_the_other_spellings(alias: str, name: str) -> None:
    assert evaluators.catalog()[alias] is evaluators.catalog()[name]


@every_type
def test_type__is_described(options: type[base.Options]) -> None:
    module = importlib.import_module(options.__module__)
    assert (module.__doc__ or "").startswith(f"`{options.type}`: ")
    assert options.__doc__
    assert options.__doc__ != base.Options.__doc__
    assert [name for name, field in fields_of(options).items() if not field.description] == []
    assert set(options.spellings) <= set(fields_of(options))
    assert not set(fields_of(options)) & {
        "name",
        "type",
        "weight",
        "required",
        "min_score",
        "negate",
        "config",
    }
    assert not (options.asks_judge and "target" in fields_of(options)), "`target` names its judge"
    assert entry_schema(options, {})["type"] == "object"


@every_type
def test_type__grades_both_ways(options: type[base.Options], tmp_path: Path) -> None:
    fields, good, bad = SAMPLES[options.type]
    for answer, score in ((good, 1.0), (bad, 0.0)):
        ask = cases.echo if options.asks_judge else cases.no_judge
        trace = answer if isinstance(answer, Trace) else Trace((Message("assistant", answer),))
        case = cases.case(trace=trace, root=tmp_path, ask=ask, expected='{"n": 1}')
        plain = cases.grade(options.type, fields, case, threshold=0.8)
        negated = cases.grade(options.type, fields, case, threshold=0.8, negate=True)
        assert (plain.score, plain.passed, plain.error) == (score, score == 1, None)
        assert plain.gates_failed == (() if score else ("e",))
        assert (negated.score, negated.passed) == (1 - score, score == 0)
        assert plain.required == 0.8


@every_type
def test_type__is_frozen_and_refuses_other_types(
    options: type[base.Options], tmp_path: Path
) -> None:
    fields = SAMPLES[options.type][0]
    made = read_entry(options, fields, Folder(tmp_path, tmp_path))
    for name in fields_of(options):
        with pytest.raises(AttributeError):
            setattr(made, name, "other")
        with pytest.raises(Refused, match=name):
            read_entry(options, {**fields, name: object()}, Folder(tmp_path, tmp_path))


@every_type
def test_type__dumps_as_data_without_a_path_of_this_machine(
    options: type[base.Options], tmp_path: Path
) -> None:
    made = read_entry(options, SAMPLES[options.type][0], Folder(tmp_path, tmp_path))
    assert str(tmp_path) not in json.dumps(to_data(made))
    assert cases.named(made, Folder(tmp_path, tmp_path)) == {}
    assert made.inner_gates() == ()
    assert isinstance(made.label(), str)


def test_evaluators_of_a_test__run_side_by_side(tmp_path: Path) -> None:
    # Each waits for the file that the other writes: one after the other they would run out of time.
    def meeting(mine: str, other: str) -> Any:
        return cases.evaluator(
            "code_judge",
            {"script": ["sh", "-c", f"touch {mine}; until test -e {other}; do sleep 0.01; done"]},
            tmp_path,
        )

    async def both() -> list[float | None]:
        case = cases.case(root=tmp_path, timeout=20)
        return [
            result.score
            for result in await asyncio.gather(
                *(base.grade(judge, case) for judge in (meeting("a", "b"), meeting("b", "a")))
            )
        ]

    assert asyncio.run(both()) == [1.0, 1.0]
