"""What one test comes to once all that a suite says is put together: messages, evaluators, gates,
target, and where each came from."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.cli.explained_workspace import ExplainedWorkspace, explain_workspace
from agentevals_action.cli.target_listing import Limits, limits_of, what_is
from agentevals_action.evaluators import base
from agentevals_action.execution.conversations import may_remember
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.messages import wire_message
from agentevals_action.model.result import Fingerprint, Record
from agentevals_action.model.suite import Evaluator, Gate, Message, NamedFile, Origin, Suite, Test
from agentevals_action.model.target import Choice, Target

_JUDGE_REASONS = {
    "evaluator": "the evaluator's `target`",
    "input": "the input `judge-target`",
    "agent": "the agent's own target, which is a model",
}


class ExplainedTarget(Limits):
    """A target that was chosen, or `name` None when there is none; `reason` in words, `location`
    where it is defined, `what` its model, command or address, short."""

    name: str | None
    reason: str
    provider: str | None = None
    what: str = ""
    location: Location | None = None


class ExplainedTurn(Record):
    """The place of a test in its conversation: `number` from 1, of `total`. `is_remembered` says
    that its agent may know the turns before it, so that they are run before it wherever it is
    run."""

    id: str
    number: int
    total: int
    is_remembered: bool


class ExplainedMessage(Record):
    """One message: its text with data as JSON, and the files in it, relative to the repository."""

    role: str
    text: str
    files: tuple[str, ...] = ()


class ExplainedEvaluator(Record):
    """One effective evaluator. `options` are those that differ from the type's defaults;
    `threshold` is the gate's score (0-1), None when it is none; `judge` None when it asks none;
    `children` are what a composite puts together."""

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


class ExplainedGate(Record):
    """A gate by its full name, and where an annotation goes when it fails."""

    name: str
    location: Location


class ExplainedFile(Record):
    """A file that the test depends on, relative to the repository, and what it is."""

    path: str
    role: str


class Explanation(Record):
    """One test, effective. `time_limit` is in seconds."""

    suite: str
    suite_name: str
    id: str
    location: Location
    description: str | None
    criteria: str | None
    input: tuple[ExplainedMessage, ...]
    expected_output: tuple[ExplainedMessage, ...]
    evaluators: tuple[ExplainedEvaluator, ...]
    gates: tuple[ExplainedGate, ...]
    target: ExplainedTarget
    conversation: ExplainedTurn | None
    workspace: ExplainedWorkspace | None
    time_limit: float
    time_limit_reason: str
    files: tuple[ExplainedFile, ...]
    fingerprint: Fingerprint


def conversations(suite: Suite) -> Mapping[str, Sequence[str]]:
    """The ids of the tests of each conversation, in their order."""
    turns: dict[str, list[str]] = {}
    for test in suite.tests:
        if test.conversation_id is not None:
            turns.setdefault(test.conversation_id, []).append(test.id)
    return turns


def explain(
    suite: Suite, test: Test, timeout: float, fingerprint: Fingerprint, turns: Sequence[str] = ()
) -> Explanation:
    """Puts together what a test comes to; `timeout` (seconds) is for a test that says nothing
    itself, `turns` are the ids of its conversation, as `conversations` tells them."""
    agent = suite.targets.agent_choice(test.target or suite.default_target)
    limit, reason = _time_limit(suite, test, timeout)
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
        gates=tuple(_gate(gate) for gate in test.gates),
        target=_target(agent, _agent_reason(agent, test), suite),
        conversation=_turn(suite, test, turns),
        workspace=explain_workspace(suite, test.workspace) if test.workspace else None,
        time_limit=limit,
        time_limit_reason=reason,
        files=tuple(
            ExplainedFile(path=file.path, role=file.role)
            for file in _files(suite, test, agent.name)
        ),
        fingerprint=fingerprint,
    )


def _turn(suite: Suite, test: Test, turns: Sequence[str]) -> ExplainedTurn | None:
    if test.conversation_id is None:
        return None
    number = turns.index(test.id) + 1
    return ExplainedTurn(
        id=test.conversation_id,
        number=number,
        total=len(turns),
        is_remembered=may_remember(suite, test),
    )


def _time_limit(suite: Suite, test: Test, timeout: float) -> tuple[float, str]:
    if test.timeout_seconds:
        return test.timeout_seconds, "the test's `execution.timeout_seconds`"
    if suite.timeout_seconds:
        return (
            suite.timeout_seconds,
            "`timeout_seconds` of the suite's `execution`, else of .agentv/config.yaml",
        )
    return timeout, "the input `timeout`"


def _agent_reason(agent: Choice, test: Test) -> str:
    owner = "test" if test.target else "suite"
    words = {
        "input": "the input `target`",
        "suite": f"the {owner}'s `execution.target`",
        "configuration": "`defaults.target` of .agentv/config.yaml",
        "default": "nothing names one, and this one is called `default`",
    }
    return words.get(agent.reason, "nothing names one, and none is called `default`")


def _target(choice: Choice, reason: str, suite: Suite) -> ExplainedTarget:
    found = suite.targets.targets.get(choice.name) if choice.name else None
    if choice.name and found is None:
        reason = f"{reason}; it is not defined in any targets file"
    if found is None:
        return ExplainedTarget(name=choice.name, reason=reason)
    what, limits = what_is(found.options), limits_of(found)
    return ExplainedTarget(
        name=choice.name,
        reason=reason,
        provider=found.provider,
        what=what,
        location=found.location,
        **limits,
    )


def _judge(evaluator: Evaluator, suite: Suite, agent: str | None) -> ExplainedTarget | None:
    if not _options(evaluator).needs_judge():
        return None
    choice = suite.targets.judge_choice(evaluator.target, agent)
    words = {**_JUDGE_REASONS, "judge_target": f"`judge_target` of `{agent}`"}
    return _target(
        choice, words.get(choice.reason, "nothing names one, and the agent is no model"), suite
    )


def _options(evaluator: Evaluator) -> base.EvaluatorOptions:
    if not isinstance(evaluator.options, base.EvaluatorOptions):
        raise TypeError(f"{evaluator.type} has no evaluator behind it")
    return evaluator.options


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
        children=tuple(_evaluator(child, suite, agent) for child in _options(evaluator).children()),
    )


def _gate(gate: Gate) -> ExplainedGate:
    return ExplainedGate(name=gate.name, location=gate.location)


def _messages(messages: Sequence[Message], suite: Suite) -> tuple[ExplainedMessage, ...]:
    return tuple(
        ExplainedMessage(
            role=message.role, text=_text(message), files=tuple(_paths(message, suite))
        )
        for message in messages
    )


def _paths(message: Message, suite: Suite) -> Iterator[str]:
    for block in message.content if isinstance(message.content, tuple) else ():
        if block.path is not None:
            yield block.path.relative_to(suite.root).as_posix()


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        parts = [message.content] if message.content else []
    else:
        parts = [
            _data(block.value) if block.type == "json" else str(block.value)
            for block in message.content
            if block.path is None
        ]
    calls = (call["function"] for call in wire_message(message).get("tool_calls", ()))
    return "\n".join([*parts, *(f"calls {call['name']}({call['arguments']})" for call in calls)])


def _data(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _files(suite: Suite, test: Test, agent: str | None) -> Iterator[NamedFile]:
    """What the test depends on, each file once: its own files, its evaluators', and what its
    targets are made of."""
    named: dict[str, NamedFile] = {file.path: file for file in test.files}
    targets = [agent]
    for evaluator in (inner for declared in test.evaluators for inner in base.walk(declared)):
        for file in evaluator.files:
            named.setdefault(file.path, file)
        judge = _judge(evaluator, suite, agent)
        targets += [judge.name] if judge else []
    for name in dict.fromkeys(targets):
        target: Target | None = suite.targets.targets.get(name) if name else None
        for path in target.files if target else ():
            named.setdefault(path, NamedFile(path, "target's command"))
    if suite.targets.path:
        named.setdefault(suite.targets.path, NamedFile(suite.targets.path, "targets file"))
    yield from named.values()
