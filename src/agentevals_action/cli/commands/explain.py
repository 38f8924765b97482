"""`explain`: the effective form of a test, for people who ask why it is scored as it is."""

import difflib
import fnmatch
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click
from pydantic_core import to_jsonable_python

from agentevals_action.cli.explanation import (
    ExplainedEvaluator,
    ExplainedMessage,
    ExplainedTarget,
    ExplainedTurn,
    ExplainedWorkspace,
    Explanation,
    explain_test,
    list_conversations,
)
from agentevals_action.cli.loaded_suites import LoadedSuites, load_suites
from agentevals_action.cli.options import READ_INPUTS, input_options, paths_argument
from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.escaping import printable
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.suite import Suite, Test
from agentevals_action.reports import console
from agentevals_action.reports.console import Line
from agentevals_action.system.redaction import Redactor, redact_record

_ORIGINS = {
    "test": "from the test",
    "rubrics": "from the test's `rubrics`",
    "suite": "from the suite",
    "default": "by default, because no other evaluator scores the test",
}
_ISOLATION = {
    "per_test": "a fresh folder for each sample",
    "own": "a folder of this test's own, its samples one after another",
    "shared": "one folder for the suite's tests, one after another",
}
_WHAT = 60  # characters of a command or an address
_TEXT = 160  # characters of a text in a line; `--json` contains all of it


@click.command("explain")
@click.argument("test", metavar="TEST", help="The id of a test, or a glob over ids.")
@paths_argument
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, without shortened texts."
)
@input_options(*READ_INPUTS, "timeout", "watch")
async def command(test: str, paths: tuple[Path, ...], as_json: bool, **inputs: str | None) -> int:
    """Explain the effective form of a test: messages, evaluators and their origins, target, judges,
    gates."""
    loaded = await load_suites(inputs, paths)
    found = _find(loaded, test)
    for suite in loaded.broken:
        path = printable(suite.path)
        print(f"warning: {path} has errors and was not searched", file=sys.stderr)
    explained = _explain(loaded, found)
    if as_json:
        # ASCII: a test may contain lone surrogates, which UTF-8 cannot encode.
        print(json.dumps([one.model_dump(mode="json") for one in explained], indent=2))
        return ExitCode.PASSED
    for number, one in enumerate(explained):
        if number:
            print()
        console.print_outline(_outline(one), sys.stdout)
    return ExitCode.PASSED


def _find(loaded: LoadedSuites, wanted: str) -> Iterable[tuple[Suite, Test]]:
    """The tests with the id, or else those that the glob matches; InvalidInput if there is none."""
    ids = dict.fromkeys(test.id for suite in loaded.valid for test in suite.tests)
    matching = {wanted} if wanted in ids else set(fnmatch.filter(ids, wanted))
    if matching:
        return (
            (suite, test) for suite in loaded.valid for test in suite.tests if test.id in matching
        )
    if loaded.broken:
        raise InvalidInput(
            f"no test of the suites without errors has the id {wanted!r}",
            "correct the errors, or the id",
            [str(diagnostic) for suite in loaded.broken for diagnostic in suite.errors],
        )
    near = difflib.get_close_matches(wanted, ids, 1)
    near = near or [name for name in ids if wanted and wanted in name]
    hint = f"did you mean {near[0]!r}?" if near else "`agentevals-action list` prints every id"
    raise InvalidInput(f"no test has the id {wanted!r}, or an id that matches it", hint)


def _explain(loaded: LoadedSuites, found: Iterable[tuple[Suite, Test]]) -> Iterator[Explanation]:
    settings = loaded.settings
    fingerprints = Fingerprints(settings.watch_rules)
    redactor = Redactor.from_environ(loaded.environ, settings.env)
    suites = {suite.path: suite for suite in loaded.valid}
    conversations = cache(lambda path: list_conversations(suites[path]))
    for suite, test in found:
        talk = test.conversation_id
        turns = conversations(suite.path)[talk] if talk is not None else ()
        fingerprint = fingerprints.of(suite, test)
        yield redact_record(
            explain_test(suite, test, settings.timeout, fingerprint, turns), redactor
        )


def _outline(one: Explanation) -> Iterator[Line]:
    yield Line(0, "suite", f"{one.suite} ({one.suite_name})")
    yield Line(0, "test", f"{one.id} ({one.location})")
    if one.description:
        yield Line(0, "description", _short(one.description))
    yield Line(0, "target", _target(one.target))
    if limits := one.target.limit_words:
        yield Line(1, "limits", ", ".join(limits))
    if one.conversation:
        yield Line(0, "conversation", _turn(one.conversation))
    yield Line(0, "time-out", f"{one.time_limit:g} s: {one.time_limit_reason}")
    if one.workspace:
        shared = _ISOLATION[one.workspace.isolation]
        yield Line(0, "workspace", f"{shared} ({one.workspace.location})")
        yield from _workspace(one.workspace)
    yield from _section("input", _messages(one.input))
    if one.expected_output:
        yield from _section("expected output", _messages(one.expected_output))
    if one.criteria:
        yield Line(0, "criteria", _short(one.criteria))
    yield from _section("evaluators", _evaluators(one.evaluators, 1))
    gates = (Line(1, f"- {gate.name}", str(gate.location)) for gate in one.gates)
    yield from _section("gates", gates)
    yield from _section("files", (Line(1, f"- {file.path}", file.role) for file in one.files))
    digests = to_jsonable_python(one.fingerprint)
    yield from _section("fingerprint", (Line(1, name, digests[name]) for name in digests))


def _turn(turn: ExplainedTurn) -> str:
    position = f"{_short(turn.id)}, turn {turn.number:,} of {turn.total:,}"
    if turn.is_remembered and turn.number > 1:
        return f"{position}; the agent may remember earlier turns, which run first"
    return position


def _workspace(workspace: ExplainedWorkspace) -> Iterator[Line]:
    if workspace.template:
        yield Line(1, "template", workspace.template)
    for repo in workspace.repos:
        label = f"repo {printable(repo.path)}"
        yield Line(1, label, _short(f"{repo.source} at {repo.commit or 'HEAD'}"))
    for hook in workspace.hooks:
        command = hook.command if isinstance(hook.command, str) else shlex.join(hook.command)
        limit = f"at most {hook.timeout_seconds:g} s ({hook.location})"
        yield Line(1, hook.name, f"{_short(command)} in {hook.cwd}, {limit}")
    yield Line(1, "reset", f"{workspace.reset} after each test, {workspace.reset_before} before")


def _section(title: str, lines: Iterable[Line]) -> Iterator[Line]:
    inner = list(lines)
    yield Line(0, title, "" if inner else "none")
    yield from inner


def _messages(messages: Sequence[ExplainedMessage]) -> Iterator[Line]:
    for message in messages:
        yield Line(1, message.role, _short(message.text))
        yield from (Line(2, "file", path) for path in message.files)


def _evaluators(evaluators: Sequence[ExplainedEvaluator], depth: int) -> Iterator[Line]:
    for number, one in enumerate(evaluators, 1):
        origin = f", {_ORIGINS[one.origin]}" if depth == 1 else ""
        label = f"{number} {printable(one.name)}"
        yield Line(depth, label, f"{one.type}{origin} ({one.location})")
        for name, value in one.options.items():
            yield from _option(name, value, depth + 1)
        if one.config:
            yield from _option("config", one.config, depth + 1)
        yield Line(depth + 1, "weight", f"{one.weight:g}")
        if one.threshold is not None:
            yield Line(depth + 1, "gate", f"the test fails below {one.threshold:g}")
        if one.negate:
            yield Line(depth + 1, "negate", "the score becomes 1 - score")
        if one.judge:
            yield Line(depth + 1, "judge", _target(one.judge))
        yield from _evaluators(one.children, depth + 1)


def _option(name: str, value: Any, depth: int) -> Iterator[Line]:
    if isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
        yield Line(depth, name)
        yield from (Line(depth + 1, f"- {_short(item)}") for item in value)
    else:
        yield Line(depth, name, _short(value))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return printable(text, _TEXT)


def _target(target: ExplainedTarget) -> str:
    if target.name is None:
        return f"none: {target.reason}"
    what = f"{target.provider} {printable(target.what, _WHAT)}".rstrip()
    defined = f" ({what}, {target.location})" if target.location else ""
    return f"{target.name}{defined}: {target.reason}"
