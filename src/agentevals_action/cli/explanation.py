"""The effective form of a test as plain data: its fields that differ from their defaults, and the
reasons for its target, its evaluators and its judges."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.messages import Block
from agentevals_action.model.suite import Evaluator, Suite, Test
from agentevals_action.model.target import Choice
from agentevals_action.model.workspace import Hook, ResettingHook, Workspace

_ORIGINS = {
    "test": "from the test",
    "rubrics": "from the test's `rubrics`",
    "suite": "from the suite",
    "default": "by default, because no other evaluator scores the test",
}
_AGENT_REASONS = {
    "input": "the input `target`",
    "suite": "`execution.target`",
    "default": "because no other is named",
    "": "because no target is named, and none is called `default`",
}
_JUDGE_REASONS = {
    "evaluator": "the evaluator's `target`",
    "input": "the input `judge-target`",
    "judge_target": "`judge_target` of the agent's target",
    "agent": "the agent's own target, which is a model",
    "": "because no judge is named, and the agent is not a model",
}
#: Contents of files, lists of files that only repeat a folder, and fields that are already part of
#: others.
_OMITTED = {
    *((Block, "data"), (Workspace, "files"), (Hook, "home"), (ResettingHook, "home")),
    *((Test, name) for name in ("execution", "rubrics", "input_files", "vars")),
    *((Evaluator, name) for name in ("written_type", "target_location")),
}


def effective_test(suite: Suite, test: Test, timeout: float) -> dict[str, Any]:
    """The effective test as JSON data, with paths relative to the repository and locations as
    `path:line:column`. `timeout` (seconds) applies if neither the test nor the suite sets one."""
    agent = suite.targets.agent_choice(test.target or suite.default_target)
    effective = {
        "suite": suite.path,
        "id": test.id,
        "location": test.location,
        "reasons": _reasons(suite, test, agent),
        "target": agent.name,
        "timeout_seconds": test.timeout_seconds or suite.timeout_seconds or timeout,
    }
    evaluators = [_evaluator(evaluator, suite, agent.name) for evaluator in test.evaluators]
    effective |= {name: value for name, value in _fields(test).items() if name not in effective}
    data: dict[str, Any] = _plain(effective | {"evaluators": evaluators}, suite.root)
    return data


def _reasons(suite: Suite, test: Test, agent: Choice) -> dict[str, str]:
    origins: dict[str, list[str]] = {}
    judges: dict[Choice, list[str]] = {}
    for evaluator in test.evaluators:
        origins.setdefault(_ORIGINS[evaluator.origin], []).append(evaluator.name)
        for inner in evaluator.walk():
            if inner.needs_judge():
                judge = suite.targets.judge_choice(inner.judge_name(), agent.name)
                judges.setdefault(judge, []).append(inner.name)
    reasons = {
        "target": f"{_described(suite, agent.name)}, {_AGENT_REASONS[agent.reason]}",
        "evaluators": "; ".join(f"{why}: {', '.join(names)}" for why, names in origins.items()),
    }
    if judges:
        reasons["judges"] = "; ".join(
            f"{_described(suite, judge.name)}, {_JUDGE_REASONS[judge.reason]}: {', '.join(names)}"
            for judge, names in judges.items()
        )
    return reasons


def _described(suite: Suite, name: str | None) -> str:
    if name is None:
        return "none"
    target = suite.targets.get(name)
    where = f"{target.provider}, {target.location}" if target else "no targets file defines it"
    return f"{name} ({where})"


def _evaluator(evaluator: Evaluator, suite: Suite, agent: str | None) -> dict[str, Any]:
    children = [_evaluator(child, suite, agent) for child in evaluator.children()]
    data = {"name": evaluator.name, "type": evaluator.type, **_fields(evaluator, Evaluator)}
    data["options"] = evaluator.own_fields(exclude_defaults=True)
    if evaluator.needs_judge():
        data["judge"] = suite.targets.judge(evaluator.judge_name(), agent)
    if children:
        data["children"] = children
    return {name: value for name, value in data.items() if value != {}}


def _fields(record: Any, model: type[Any] | None = None) -> dict[str, Any]:
    """The fields of a record, or only those of its class `model`, that differ from their
    defaults."""
    model = model or type(record)
    found = {}
    for name, default in _defaults(model):
        value = getattr(record, name)
        if value != default and (model, name) not in _OMITTED:
            found[name] = value
    return found


def _defaults(model: type[Any]) -> Iterator[tuple[str, Any]]:
    if issubclass(model, BaseModel):
        for name, model_field in model.model_fields.items():
            yield name, model_field.get_default(call_default_factory=True)
        return
    for field in fields(model):
        factory = field.default_factory
        yield field.name, field.default if factory is MISSING else factory()


def _plain(value: Any, root: Path) -> Any:
    if isinstance(value, Location):
        return str(value)
    if isinstance(value, Path):
        return (value.relative_to(root) if value.is_relative_to(root) else value).as_posix()
    if is_dataclass(value) or isinstance(value, BaseModel):
        value = _fields(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item, root) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, root) for item in value]
    return str(value) if isinstance(value, str) else value
