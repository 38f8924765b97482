"""`validate`: every error of every suite, its labels and `.agentevals.yaml`, with its location."""

import asyncio
import shlex
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from agentevals_action.cli import output
from agentevals_action.cli.loaded_suites import load_suites, paths_argument
from agentevals_action.cli.options import READ_INPUTS, input_options, json_option
from agentevals_action.errors import ExitCode
from agentevals_action.judges.labels import read_labels
from agentevals_action.model.comparison import SmallestDrop
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.reports.view.suite_table import describe_drop
from agentevals_action.review.comparison.power import with_head
from agentevals_action.review.inputs.base_rules import choose_judge_rule
from agentevals_action.review.inputs.base_tree import Base
from agentevals_action.runners.commands import split_commands
from agentevals_action.runners.suites import LoadedSuites
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import distinct
from agentevals_action.suites.configuration_file import read_quarantines
from agentevals_action.suites.target_use import undeclared_target
from agentevals_action.suites.variants import undecidable_conditions
from agentevals_action.system.files.paths import Folder


@click.command("validate")
@paths_argument
@json_option
@input_options(*READ_INPUTS, "samples", "confirm", "alpha", "judge-floor")
async def command(paths: tuple[Path, ...], as_json: bool, **inputs: str | None) -> int:
    """Read suites and report every error with file, line and column; print the smallest drop that
    a suite can find, and the commands of runners."""
    loaded = await load_suites(inputs, paths, keeps_errors=True)
    settings = loaded.checkout.settings
    quarantine = read_quarantines(loaded.checkout.configuration, datetime.now(UTC).date())
    checked = [(suite, await _errors(suite, loaded)) for suite in loaded.suites]
    labels = await asyncio.to_thread(read_labels, loaded.checkout, loaded.suites)
    judges = await choose_judge_rule(loaded.checkout, Base(), "local")
    of_all = (quarantine.errors, loaded.errors, labels.errors, judges.errors)
    errors = distinct([*of_all, *(of_suite for _, of_suite in checked)])
    of_suites = (warning for suite in loaded.valid for warning in suite.warnings)
    others = (*quarantine.warnings, *loaded.warnings, *labels.warnings, *judges.warnings)
    warnings = dict.fromkeys((*others, *of_suites))
    valid = [suite for suite, of_suite in checked if isinstance(suite, Suite) and not of_suite]
    runners = {runner.location: runner for suite in valid if (runner := suite.runner)}.values()
    if as_json:
        document = {
            "suites": [
                {**output.suite_entry(suite), "smallestDrop": _smallest_drop(suite, settings)}
                for suite in valid
            ],
            "runners": [_runner_entry(runner) for runner in runners],
            "errors": [error.entry() for error in errors],
            "warnings": [warning.entry() for warning in warnings],
        }
        output.print_json(document)
    else:
        output.print_lines(map(str, errors))
        output.print_warnings(warnings)
        for suite in valid:
            output.print_lines([f"{suite.path}: valid, {output.describe_tests(suite)}"])
            if drop := _smallest_drop(suite, settings):
                output.print_lines([f"  can find: {describe_drop(drop)}"])
        for runner in runners:
            output.print_lines(_lines(runner, settings))
    return ExitCode.INVALID if errors else ExitCode.PASSED


def _smallest_drop(suite: Suite, settings: Settings) -> SmallestDrop | None:
    """The smallest drop that a suite finds when base runs again; None if its tests are unknown."""
    if not suite.tests:
        return None
    steady = sum(map(suite.is_deterministic, suite.tests))
    inputs = (settings.samples, settings.confirm, settings.alpha)
    return with_head(SmallestDrop(len(suite.tests) - steady, *inputs, steady=steady))


def _runner_entry(runner: Runner) -> dict[str, Any]:
    """The JSON object of an entry of `runners` with its commands."""
    command, again = split_commands(runner)
    program = command[0]
    return {
        "name": runner.name,
        "results": runner.results,
        "command": command,
        "again": again,
        "env": runner.env,
        "isInstalled": "/" in program or shutil.which(program) is not None,
    }


def _lines(runner: Runner, settings: Settings) -> Iterator[str]:
    entry = _runner_entry(runner)
    yield f"runner {runner.name}: {shlex.join(entry['command'])}"
    yield f"  again: {shlex.join(entry['again'])}"
    if not entry["isInstalled"]:
        yield f"  `{entry['command'][0]}` is not installed here; a step of the job installs it"
    if missing := [name for name in runner.env if name not in settings.env]:
        names = ",".join(missing)
        yield f"  it needs {names}: pass `--env {names}` here, and the input `env` in a job"


async def _errors(suite: Suite | BrokenSuite, loaded: LoadedSuites) -> tuple[Diagnostic, ...]:
    """The errors of a suite. A loaded suite has errors about targets that are not declared, judges
    and targets whose program does not exist, and conditions that cannot be decided.

    A program that git ignores may be built before the tests, and a program in a workspace by the
    workspace: these are no errors."""
    if isinstance(suite, BrokenSuite):
        return suite.errors
    undeclared = undeclared_target(suite)
    errors = {undeclared: None} if undeclared else {}
    errors |= dict.fromkeys(undecidable_conditions(suite, loaded.checkout.settings))
    programs = [
        (inner.missing_script(), inner.missing_program(suite.root))
        for test in suite.tests
        for evaluator in test.evaluators
        for inner in evaluator.walk()
    ]
    if all(test.workspace is None for test in suite.tests):
        folder = Folder(suite.root, suite.folder)
        targets = [suite.targets.targets[name] for name in suite.used_targets]
        programs += [
            (target.missing_script(folder), target.missing_program(folder)) for target in targets
        ]
    for script, error in programs:
        if script and error and not await _is_ignored(script, loaded):
            errors[error] = None
    return tuple(errors)


async def _is_ignored(file: Path, loaded: LoadedSuites) -> bool:
    repository = loaded.checkout.repository
    return repository is not None and await repository.ignores(file)
