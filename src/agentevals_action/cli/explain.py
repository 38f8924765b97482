"""`explain`: what one test comes to, for whoever asks why it is graded as it is."""

import difflib
import fnmatch
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from agentevals_action.cli import explanation
from agentevals_action.cli.explained_workspace import ExplainedWorkspace
from agentevals_action.cli.explanation import (
    ExplainedEvaluator,
    ExplainedMessage,
    ExplainedTarget,
    ExplainedTurn,
    Explanation,
)
from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.reports import console, terminal
from agentevals_action.reports.console import Line
from agentevals_action.settings import Settings
from agentevals_action.suites import checkout as wiring
from agentevals_action.system.redaction import Redactor, redact_record

_ORIGINS = {
    "test": "from the test",
    "rubrics": "from the test's `rubrics`",
    "suite": "from the suite",
    "default": "by default, since nothing else grades the test",
}
_SHARED = {
    "per_test": "a fresh folder for each sample",
    "own": "a folder of this test's own, its samples one after another",
    "shared": "one folder for the suite's tests, one after another",
}
_WHAT = 60  # characters of a command or an address
_CUT = 160  # characters of a text that a line shows; `--json` has all of it


def main(
    environ: Mapping[str, str],
    inputs: Mapping[str, str],
    folder: Path,
    wanted: str,
    paths: Sequence[Path],
    as_json: bool,
) -> int:
    """Prints an outline of every test whose id is `wanted`, or else matches it as a glob;
    InvalidInput names the nearest when none does."""
    settings = Settings.from_environ(inputs)
    checkout = wiring.Checkout.at(folder, settings, environ)
    loaded = wiring.load_all(
        checkout, settings, wiring.suite_paths(checkout, settings, paths), folder
    )
    suites = [suite for suite in loaded if isinstance(suite, Suite)]
    broken = [suite for suite in loaded if isinstance(suite, BrokenSuite)]
    found = _find(suites, broken, wanted)
    for suite in broken:
        print(
            f"warning: {terminal.printable(suite.path)} has faults and was not looked into",
            file=sys.stderr,
        )
    fingerprints = Fingerprints(settings.watch)
    redactor = Redactor.from_environ(environ, settings.env)
    turns = cache(
        lambda path: explanation.conversations(
            next(suite for suite in suites if suite.path == path)
        )
    )

    def explain(suite: Suite, test: Test) -> Explanation:
        own = turns(suite.path)[test.conversation_id] if test.conversation_id is not None else ()
        return explanation.explain(suite, test, settings.timeout, fingerprints.of(suite, test), own)

    explained = (redact_record(explain(suite, test), redactor) for suite, test in found)
    if as_json:
        # ASCII alone: a lone surrogate that a test holds could not be written otherwise.
        print(json.dumps([one.model_dump(mode="json") for one in explained], indent=2))
        return ExitCode.PASSED
    for number, one in enumerate(explained):
        if number:
            print()
        console.outline(_lines(one), sys.stdout)
    return ExitCode.PASSED


def _find(
    suites: Sequence[Suite], broken: Sequence[BrokenSuite], wanted: str
) -> Iterable[tuple[Suite, Test]]:
    exact = [(suite, test) for suite in suites for test in suite.tests if test.id == wanted]
    if exact:
        return exact
    if any(fnmatch.fnmatchcase(test.id, wanted) for suite in suites for test in suite.tests):
        # Not kept: a glob may match each of a file's many rows.
        return (
            (suite, test)
            for suite in suites
            for test in suite.tests
            if fnmatch.fnmatchcase(test.id, wanted)
        )
    if broken:
        errors = [str(diagnostic) for suite in broken for diagnostic in suite.errors]
        raise InvalidInput(
            f"no test of the suites without faults has the id {wanted!r}",
            "mend the faults, or the id",
            errors,
        )
    known = dict.fromkeys(test.id for suite in suites for test in suite.tests)
    if not known:
        raise InvalidInput(
            "there is no suite in this repository",
            "write an EVAL.yaml, or mend `suites` and `working-directory`",
        )
    near = difflib.get_close_matches(wanted, known, 1) or [
        name for name in known if wanted and wanted in name
    ]
    hint = f"did you mean {near[0]!r}?" if near else "`agentevals-action list` names every test"
    raise InvalidInput(f"no test has the id {wanted!r}, nor an id that matches it", hint)


def _lines(one: Explanation) -> Iterator[Line]:
    yield Line(0, "suite", f"{one.suite} ({one.suite_name})")
    yield Line(0, "test", f"{one.id} ({one.location})")
    if one.description:
        yield Line(0, "description", _cut(one.description))
    yield Line(0, "target", _target(one.target))
    if words := [
        *one.target.words,
        *([f"cached by {', '.join(one.target.cache_key)}"] if one.target.cache_key else []),
    ]:
        yield Line(1, "limits", ", ".join(words))
    if one.conversation:
        yield Line(0, "conversation", _turn(one.conversation))
    yield Line(0, "time limit", f"{one.time_limit:g} s: {one.time_limit_reason}")
    if one.workspace:
        yield Line(0, "workspace", f"{_SHARED[one.workspace.isolation]} ({one.workspace.location})")
        yield from _workspace(one.workspace)
    yield from _section("input", _messages(one.input))
    if one.expected_output:
        yield from _section("expected output", _messages(one.expected_output))
    if one.criteria:
        yield Line(0, "criteria", _cut(one.criteria))
    yield from _section("evaluators", _evaluators(one.evaluators, 1))
    yield from _section(
        "gates", (Line(1, f"- {gate.name}", str(gate.location)) for gate in one.gates)
    )
    yield from _section("files", (Line(1, f"- {file.path}", file.role) for file in one.files))
    yield from _section(
        "fingerprint",
        (Line(1, name, digest) for name, digest in to_jsonable_python(one.fingerprint).items()),
    )


def _turn(turn: ExplainedTurn) -> str:
    remembered = (
        "; the agent may remember the turns before, which are run first"
        if turn.is_remembered and turn.number > 1
        else ""
    )
    return f"{_cut(turn.id)}, turn {turn.number:,} of {turn.total:,}{remembered}"


def _workspace(workspace: ExplainedWorkspace) -> Iterator[Line]:
    if workspace.template:
        yield Line(1, "template", workspace.template)
    for repo in workspace.repos:
        commit = f"{repo.commit or 'HEAD'}{f'~{repo.ancestor}' if repo.ancestor else ''}"
        only = f", only {', '.join(repo.sparse)}" if repo.sparse else ""
        yield Line(
            1, f"repo {terminal.printable(repo.path)}", _cut(f"{repo.source} at {commit}{only}")
        )
    for hook in workspace.hooks:
        command = hook.command if isinstance(hook.command, str) else shlex.join(hook.command)
        yield Line(
            1,
            hook.name,
            f"{_cut(command)} in {hook.cwd}, at most {hook.timeout_seconds:g} s ({hook.location})",
        )
    yield Line(1, "reset", f"{workspace.reset} after each test, {workspace.reset_before} before")


def _section(title: str, lines: Iterable[Line]) -> Iterator[Line]:
    inner = list(lines)
    yield Line(0, title, "" if inner else "none")
    yield from inner


def _messages(messages: Sequence[ExplainedMessage]) -> Iterator[Line]:
    for message in messages:
        yield Line(1, message.role, _cut(message.text))
        yield from (Line(2, "file", path) for path in message.files)


def _evaluators(evaluators: Sequence[ExplainedEvaluator], depth: int) -> Iterator[Line]:
    for number, evaluator in enumerate(evaluators, 1):
        source = f", {_ORIGINS[evaluator.origin]}" if depth == 1 else ""
        yield Line(
            depth,
            f"{number} {terminal.printable(evaluator.name)}",
            f"{evaluator.type}{source} ({evaluator.location})",
        )
        for name, value in evaluator.options.items():
            yield from _option(name, value, depth + 1)
        if evaluator.config:
            yield from _option("config", evaluator.config, depth + 1)
        yield Line(depth + 1, "weight", f"{evaluator.weight:g}")
        if evaluator.threshold is not None:
            yield Line(depth + 1, "gate", f"fails the test under {evaluator.threshold:g}")
        if evaluator.negate:
            yield Line(depth + 1, "negate", "the score is turned into 1 - score")
        if evaluator.judge:
            yield Line(depth + 1, "judge", _target(evaluator.judge))
        yield from _evaluators(evaluator.children, depth + 1)


def _option(name: str, value: Any, depth: int) -> Iterator[Line]:
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        yield Line(depth, name)
        yield from (Line(depth + 1, f"- {_short(item)}") for item in value)
    else:
        yield Line(depth, name, _short(value))


def _short(value: Any) -> str:
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return terminal.printable(text, _CUT)


def _target(target: ExplainedTarget) -> str:
    if target.name is None:
        return f"none: {target.reason}"
    what = f"{target.provider} {terminal.printable(target.what, _WHAT)}".rstrip()
    defined = f" ({what}, {target.location})" if target.location else ""
    return f"{target.name}{defined}: {target.reason}"
