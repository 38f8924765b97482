"""`explain`: the effective form of a test, for people who ask why it is scored as it is."""

import fnmatch
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from agentevals_action.cli import output
from agentevals_action.cli.loaded_suites import (
    complete_tests,
    load_suites,
    paths_argument,
)
from agentevals_action.cli.options import READ_INPUTS, input_options
from agentevals_action.errors import AgentEvalsError, ExitCode, InvalidInput
from agentevals_action.formatting import list_paths
from agentevals_action.judges.standing import Standings
from agentevals_action.model.evaluator import Evaluator, Gate
from agentevals_action.model.messages import wire_messages
from agentevals_action.model.result import as_declared
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.target import Choice, Target
from agentevals_action.model.tools import describe_tool
from agentevals_action.model.variant import Variant
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.run_folder import HEAD_RESULTS
from agentevals_action.runners.commands import SUITE, filled, split_commands
from agentevals_action.runners.suites import LoadedSuites
from agentevals_action.settings import Settings
from agentevals_action.system.redaction import Redactor, redact_record
from agentevals_action.validation.field_errors import did_you_mean

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
#: Fields that only the loader reads: other fields of the test contain what they lead to.
_READ = {"execution", "rubrics", "input_files", "vars"}
#: Of a file, the path and the role are printed.
_PART_OF_FILES: Mapping[str, Any] = {"files": {"__all__": {"importers"}}}
#: Fields of a workspace and of its hooks that repeat other fields.
_REPEATED = {"location", "files", "home"}


@click.command("explain")
@click.argument(
    "test",
    metavar="TEST",
    shell_complete=complete_tests,
    help="The id of a test, the path of a suite of a runner, or a glob over either.",
)
@paths_argument
@input_options(*READ_INPUTS, "timeout", "judge-floor")
async def command(test: str, paths: tuple[Path, ...], **inputs: str | None) -> int:
    """Print the effective form of a test as YAML: messages, evaluators and their origins, target,
    judges and their calibration, variants, gates. Of a suite of a runner: its commands, variables,
    gates and files."""
    loaded = await load_suites(inputs, paths)
    explained = [
        _suite_of_runner(suite, suite.runner, loaded)
        for suite in loaded.valid
        if suite.runner and fnmatch.fnmatch(suite.path, test)
    ]
    tests = _find(loaded, test, is_required=not explained)
    output.print_warnings(
        f"{broken.path} has errors and was not searched" for broken in loaded.broken
    )
    settings, standings = loaded.checkout.settings, Standings(loaded.checkout)
    output.print_warnings(standings.errors)
    redactor = Redactor.from_environ(loaded.checkout.environ, settings.env)
    for suite, matching in tests:
        standing = standings.of(suite, matching)
        calibration = {"calibration": standing} if standing else {}
        explained.append(effective_test(suite, matching, settings) | calibration)
    output.print_yaml(redact_record(entry, redactor) for entry in explained)
    return ExitCode.PASSED


def _find(loaded: LoadedSuites, wanted: str, *, is_required: bool) -> Iterable[tuple[Suite, Test]]:
    """The tests with the id, or else the tests that the glob matches; InvalidInput if there are
    none and a test `is_required`."""
    ids = dict.fromkeys(test.id for suite in loaded.valid for test in suite.tests)
    matching = {wanted} if wanted in ids else set(fnmatch.filter(ids, wanted))
    if matching or not is_required:
        return (
            (suite, test) for suite in loaded.valid for test in suite.tests if test.id in matching
        )
    loaded.all_valid()  # a suite with errors may have it
    hint = did_you_mean(wanted, ids, "`agentevals-action list` prints every id")
    if suites := [suite.path for suite in loaded.valid if suite.program]:
        hint += f"; of the tests of {list_paths(suites)}, name the suite"
    raise InvalidInput(f"no test has the id {wanted!r}, or an id that matches it", hint)


def _suite_of_runner(suite: Suite, runner: Runner, loaded: LoadedSuites) -> dict[str, Any]:
    """A suite of a runner as JSON data. Which of its tests are gates is known from its last run."""
    checkout = loaded.checkout
    results = checkout.folder / checkout.settings.report_dir / HEAD_RESULTS
    tests: list[str] = []
    with suppress(AgentEvalsError):  # there are no results, or they cannot be read
        rows = [row for row in as_declared(read_results(results)) if row.eval_path == suite.path]
        tests = [row.eval_id for row in rows if not row.error]
    command, again = (
        shlex.join(filled(words, {SUITE: suite.path})) for words in split_commands(runner)
    )
    gates = [test for test in tests if runner.requires(test)]
    shown_elsewhere = {"suites", "program", "location"}
    entry = runner.model_dump(by_alias=True, exclude_defaults=True, exclude=shown_elsewhere)
    return {
        "suite": suite.path,
        "runner": str(runner.location),
        **entry,
        "command": command,
        "again": again,
        "gates": gates if tests else "known when the runner has run",
        "files": [{"path": file.path, "role": file.role} for file in suite.files],
        "watch": [str(rule) for rule in checkout.settings.watch_rules if rule.affects(suite.path)],
    }


def effective_test(suite: Suite, test: Test, settings: Settings) -> dict[str, Any]:
    """The effective test as JSON data, without fields that have their defaults. Paths are relative
    to the repository."""
    agent = suite.targets.agent_choice(test.target or suite.default_target)
    effective = {
        "suite": suite.path,
        "id": test.id,
        "location": str(test.location),
        "reasons": _reasons(suite, test, agent, settings),
        "target": agent.name,
        "timeout_seconds": test.timeout_seconds or suite.timeout_seconds or settings.timeout,
        "input": wire_messages(test.input),
        "evaluators": [
            _evaluator(evaluator, test.list_gates(evaluator), suite, suite.find_agent(test))
            for evaluator in test.evaluators
        ],
    }
    of_variants = ((variant, suite.arm(variant)) for variant in suite.variants)
    running = (variant for variant, arm in of_variants if test.id in {run.id for run in arm.tests})
    if variants := ", ".join(map(_describe_arm, running)):
        effective["variants"] = variants
    if test.expected_output:
        effective["expected_output"] = wire_messages(test.expected_output)
    if test.workspace:
        workspace = test.workspace.model_dump(exclude_defaults=True)
        effective["workspace"] = _relative(workspace, suite.root)
    answered = {"tools": test.tools, "commands": test.commands}
    effective |= {
        name: [*map(describe_tool, entries)] for name, entries in answered.items() if entries
    }
    others = {**dict.fromkeys((*effective, "expected_output", *_READ), True), **_PART_OF_FILES}
    return effective | test.model_dump(mode="json", exclude_defaults=True, exclude=others)


def _describe_arm(variant: Variant) -> str:
    differs = f"target {variant.target}" if variant.target else "without the skill"
    condition = f", must: {variant.must}" if variant.must else ""
    return f"{variant.name} ({differs}{condition})"


def _evaluator(
    evaluator: Evaluator, gates: Iterable[Gate], suite: Suite, agent: Target | None
) -> dict[str, Any]:
    named = {"name": evaluator.name, "type": evaluator.type, "location": str(evaluator.location)}
    others = (*named, "written_type", "target_locations")
    computed = {**dict.fromkeys(others, True), **_PART_OF_FILES}
    data = named | evaluator.model_dump(mode="json", exclude_defaults=True, exclude=computed)
    if places := {gate.name: str(gate.location) for gate in gates}:
        data["gates"] = places
    if evaluator.needs_judge():
        judges = [choice.name for choice in suite.judge_choices(evaluator, agent)]
        data |= {"judges": judges} if len(judges) > 1 else {"judge": judges[0]}
    if children := evaluator.children():
        data["evaluators"] = [_evaluator(child, child.gates(), suite, agent) for child in children]
    return data


def _relative(value: Any, root: Path) -> Any:
    """A part of a workspace as JSON data, with paths relative to the repository."""
    if isinstance(value, Mapping):
        return {
            name: _relative(part, root) for name, part in value.items() if name not in _REPEATED
        }
    if isinstance(value, list | tuple):
        return [_relative(part, root) for part in value]
    if isinstance(value, Path):
        return (value.relative_to(root) if value.is_relative_to(root) else value).as_posix()
    return value


def _reasons(suite: Suite, test: Test, agent: Choice, settings: Settings) -> dict[str, str]:
    """Why the test has its target, its evaluators, its time limit and its judges."""
    origins: dict[str, list[str]] = {}
    judges: dict[str, list[str]] = {}
    for evaluator in test.evaluators:
        origins.setdefault(_ORIGINS[evaluator.origin], []).append(evaluator.name)
        for inner in filter(Evaluator.needs_judge, evaluator.walk()):
            for judge in suite.judge_choices(inner, suite.find_agent(test)):
                why = f"{_described(suite, judge.name)}, {_JUDGE_REASONS[judge.reason]}"
                judges.setdefault(why, []).append(inner.name)
    timeout = "the input `timeout`" if "timeout" in settings.model_fields_set else "default"
    for owner in (suite, test):
        if owner.timeout_seconds is not None:
            timeout = f"`execution.timeout_seconds` of the {owner.noun}"
    reasons = {
        "target": f"{_described(suite, agent.name)}, {_AGENT_REASONS[agent.reason]}",
        "evaluators": _grouped(origins),
        "timeout_seconds": timeout,
        "judges": _grouped(judges),
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _grouped(names: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{why}: {', '.join(of_reason)}" for why, of_reason in names.items())


def _described(suite: Suite, name: str | None) -> str:
    if name is None:
        return "none"
    target = suite.targets.get(name)
    where = f"{target.provider}, {target.location}" if target else "no targets file defines it"
    return f"{name} ({where})"
