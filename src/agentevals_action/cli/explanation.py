"""The effective form of a test: messages, evaluators, gates, target and workspace."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from agentevals_action.cli.target_listing import TargetLimits, describe_options, limits_of
from agentevals_action.evaluators import base
from agentevals_action.execution.conversations import may_remember
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.messages import wire_message
from agentevals_action.model.result import Fingerprint, Record
from agentevals_action.model.suite import (
    Evaluator,
    Gate,
    Message,
    NamedFile,
    Origin,
    Repo,
    Reset,
    Suite,
    Test,
    Workspace,
)
from agentevals_action.model.target import Choice

_JUDGE_REASONS = {
    "evaluator": "the evaluator's `target`",
    "input": "the input `judge-target`",
    "agent": "the agent's own target, which is a model",
}
_HOOKS = ("before_all", "before_each", "after_each", "after_all")


class ExplainedTarget(TargetLimits):
    """The chosen target, `name` None if there is none; `reason` in words, `location` of its
    definition, `what` its model, command or address, shortened."""

    name: str | None
    reason: str
    provider: str | None = None
    what: str = ""
    location: Location | None = None


class ExplainedTurn(Record):
    """The position of a test in its conversation: `number` from 1, of `total`. If `is_remembered`,
    the agent may know earlier turns, and they run before this one."""

    id: str
    number: int
    total: int
    is_remembered: bool


class ExplainedMessage(Record):
    """One message: its text, with data as JSON, and its files, relative to the repository."""

    role: str
    text: str
    files: tuple[str, ...] = ()


class ExplainedEvaluator(Record):
    """One effective evaluator. `options` differ from the type's defaults; `threshold` is the gate's
    score (0-1), None for no gate; `children` are the evaluators of a composite."""

    name: str
    type: str
    origin: Origin
    location: Location
    options: Mapping[str, Any]
    config: Mapping[str, Any]
    weight: float
    threshold: float | None
    negate: bool
    judge: ExplainedTarget | None
    children: tuple["ExplainedEvaluator", ...] = ()


class ExplainedHook(Record):
    """A hook of the workspace: words, or a script of `sh`; `cwd` relative to the repository."""

    name: str
    command: str | tuple[str, ...]
    cwd: str
    timeout_seconds: float
    location: Location


class ExplainedWorkspace(Record):
    """The workspace of a test, with paths relative to the repository. `isolation` states who shares
    the folder: nobody (`per_test`), this test's samples (`own`), the suite's tests (`shared`)."""

    location: Location
    isolation: Literal["per_test", "own", "shared"]
    template: str | None
    repos: tuple[Repo, ...]
    hooks: tuple[ExplainedHook, ...]
    reset: Reset
    reset_before: Reset


class Explanation(Record):
    """One effective test. `time_limit` is in seconds."""

    suite: str
    suite_name: str
    id: str
    location: Location
    description: str | None
    criteria: str | None
    input: tuple[ExplainedMessage, ...]
    expected_output: tuple[ExplainedMessage, ...]
    evaluators: tuple[ExplainedEvaluator, ...]
    gates: tuple[Gate, ...]
    target: ExplainedTarget
    conversation: ExplainedTurn | None
    workspace: ExplainedWorkspace | None
    time_limit: float
    time_limit_reason: str
    files: tuple[NamedFile, ...]
    fingerprint: Fingerprint


def list_conversations(suite: Suite) -> Mapping[str, Sequence[str]]:
    """The ids of the tests of each conversation, in their order."""
    turns: dict[str, list[str]] = {}
    for test in suite.tests:
        if test.conversation_id is not None:
            turns.setdefault(test.conversation_id, []).append(test.id)
    return turns


def explain_test(
    suite: Suite, test: Test, timeout: float, fingerprint: Fingerprint, turns: Sequence[str] = ()
) -> Explanation:
    """Explains a test. `timeout` (seconds) applies if the test and the suite set none, `turns` are
    the ids of the test's conversation."""
    agent = suite.targets.agent_choice(test.target or suite.default_target)
    limit, reason = _time_limit(suite, test, timeout)
    conversation = None
    if test.conversation_id is not None:
        conversation = ExplainedTurn(
            id=test.conversation_id,
            number=turns.index(test.id) + 1,
            total=len(turns),
            is_remembered=may_remember(suite, test),
        )
    return Explanation(
        suite=suite.path,
        suite_name=suite.name,
        id=test.id,
        location=test.location,
        description=test.description,
        criteria=test.criteria,
        input=_messages(test.input, suite),
        expected_output=_messages(test.expected_output, suite),
        evaluators=tuple(_evaluator(evaluator, suite, agent.name) for evaluator in test.evaluators),
        gates=test.gates,
        target=_target(agent, _agent_reason(agent, test), suite),
        conversation=conversation,
        workspace=_workspace(suite.root, test.workspace) if test.workspace else None,
        time_limit=limit,
        time_limit_reason=reason,
        files=tuple(_files(suite, test, agent.name)),
        fingerprint=fingerprint,
    )


def _time_limit(suite: Suite, test: Test, timeout: float) -> tuple[float, str]:
    if test.timeout_seconds:
        return test.timeout_seconds, "the test's `execution.timeout_seconds`"
    if suite.timeout_seconds:
        reason = "the suite's `execution.timeout_seconds`"
        return suite.timeout_seconds, reason
    return timeout, "the input `timeout`"


def _agent_reason(agent: Choice, test: Test) -> str:
    owner = "test" if test.target else "suite"
    reasons = {
        "input": "the input `target`",
        "suite": f"the {owner}'s `execution.target`",
        "default": "no target is named, and this one is called `default`",
    }
    return reasons.get(agent.reason, "no target is named, and none is called `default`")


def _target(choice: Choice, reason: str, suite: Suite) -> ExplainedTarget:
    found = suite.targets.get(choice.name)
    if found is None:
        undefined = "; no targets file defines it" if choice.name else ""
        return ExplainedTarget(name=choice.name, reason=f"{reason}{undefined}")
    return ExplainedTarget(
        name=choice.name,
        reason=reason,
        provider=found.provider,
        what=describe_options(found.options),
        location=found.location,
        **limits_of(found),
    )


def _judge(evaluator: Evaluator, suite: Suite, agent: str | None) -> ExplainedTarget | None:
    if not evaluator.options.needs_judge():
        return None
    choice = suite.targets.judge_choice(evaluator.target, agent)
    reasons = {**_JUDGE_REASONS, "judge_target": f"`judge_target` of `{agent}`"}
    unnamed = "no judge is named, and the agent is not a model"
    return _target(choice, reasons.get(choice.reason, unnamed), suite)


def _evaluator(evaluator: Evaluator, suite: Suite, agent: str | None) -> ExplainedEvaluator:
    return ExplainedEvaluator(
        name=evaluator.name,
        type=evaluator.type,
        origin=evaluator.origin,
        location=evaluator.location,
        options=evaluator.options.model_dump(exclude_defaults=True),
        config=evaluator.config,
        weight=evaluator.weight,
        threshold=evaluator.threshold,
        negate=evaluator.negate,
        judge=_judge(evaluator, suite, agent),
        children=tuple(_evaluator(child, suite, agent) for child in evaluator.options.children()),
    )


def _messages(messages: Sequence[Message], suite: Suite) -> tuple[ExplainedMessage, ...]:
    explained = []
    for message in messages:
        paths = [block.path for block in message.blocks if block.path]
        files = [path.relative_to(suite.root).as_posix() for path in paths]
        explained.append(
            ExplainedMessage(role=message.role, text=_text(message), files=tuple(files))
        )
    return tuple(explained)


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        parts = [message.content] if message.content else []
    else:
        parts = [
            json.dumps(block.value, ensure_ascii=False)
            if block.type == "json"
            else str(block.value)
            for block in message.content
            if block.path is None
        ]
    calls = (call["function"] for call in wire_message(message).get("tool_calls", ()))
    return "\n".join([*parts, *(f"calls {call['name']}({call['arguments']})" for call in calls)])


def _files(suite: Suite, test: Test, agent: str | None) -> Iterator[NamedFile]:
    """The files that the test depends on, each once: of itself, its evaluators and its targets."""
    files = list(test.files)
    targets = [agent]
    for evaluator in (inner for declared in test.evaluators for inner in base.walk(declared)):
        files += evaluator.files
        judge = _judge(evaluator, suite, agent)
        targets += [judge.name] if judge else []
    for name in dict.fromkeys(targets):
        target = suite.targets.get(name)
        files += [NamedFile(path, "target's command") for path in (target.files if target else ())]
    if suite.targets.path:
        files.append(NamedFile(suite.targets.path, "targets file"))
    roles: dict[str, str] = {}
    for file in files:
        roles.setdefault(file.path, file.role)
    return (NamedFile(path, role) for path, role in roles.items())


def _workspace(root: Path, workspace: Workspace) -> ExplainedWorkspace:
    hooks = ((name, getattr(workspace, name)) for name in _HOOKS)
    return ExplainedWorkspace(
        location=workspace.location,
        isolation="per_test" if workspace.per_test else "own" if workspace.own else "shared",
        template=_relative(workspace.template, root) if workspace.template else None,
        repos=tuple(replace(repo, source=_relative(repo.source, root)) for repo in workspace.repos),
        hooks=tuple(
            ExplainedHook(
                name=name,
                command=hook.command,
                cwd=_relative(hook.cwd, root),
                timeout_seconds=hook.timeout_seconds,
                location=hook.location,
            )
            for name, hook in hooks
            if hook
        ),
        reset=workspace.reset,
        reset_before=workspace.reset_before,
    )


def _relative(source: Path | str, root: Path) -> str:
    """A path relative to the repository; a URL as it is."""
    if isinstance(source, str):
        return source
    return (source.relative_to(root) if source.is_relative_to(root) else source).as_posix()
