"""`validate`: every error of every suite and of `.agentevals.yaml`, with its location."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from agentevals_action.cli import output
from agentevals_action.cli.loaded_suites import LoadedSuites, load_suites
from agentevals_action.cli.options import READ_INPUTS, input_options, json_option, paths_argument
from agentevals_action.errors import ExitCode
from agentevals_action.formatting import counted
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.suites.checkout import distinct
from agentevals_action.suites.configuration_file import read_quarantines
from agentevals_action.suites.target_use import undeclared_target

_ADVICE = "correct the path, or `cwd`, where it starts (`/` is the repository's root)"


@click.command("validate")
@paths_argument
@json_option
@input_options(*READ_INPUTS)
async def command(paths: tuple[Path, ...], as_json: bool, **inputs: str | None) -> int:
    """Read suites and report every error with file, line and column."""
    loaded = await load_suites(inputs, paths)
    quarantine = read_quarantines(loaded.configuration, datetime.now(UTC).date())
    files = [
        _File(FILE, None, quarantine.errors, quarantine.warnings),
        *[await _check(suite, loaded) for suite in loaded.suites],
    ]
    if as_json:
        output.print_json([file.entry() for file in files if file.is_listed])
    else:
        output.print_lines(map(str, distinct(file.errors for file in files)))
        output.print_warnings(warning for file in files for warning in file.warnings)
        output.print_lines(
            f"{file.path}: valid, {counted(file.tests, 'test')}"
            for file in files
            if file.tests is not None and not file.errors
        )
    return ExitCode.INVALID if any(file.errors for file in files) else ExitCode.PASSED


@dataclass(frozen=True)
class _File:
    """A suite, or the configuration, with its diagnostics; `tests` is None if it has none, or if
    they could not be read."""

    path: str
    tests: int | None
    errors: Sequence[Diagnostic]
    warnings: Sequence[Diagnostic] = ()

    @property
    def is_listed(self) -> bool:
        """Whether there is anything to report; not for a configuration without a diagnostic."""
        return self.tests is not None or bool(self.errors or self.warnings)

    def entry(self) -> dict[str, Any]:
        """The JSON object of the file."""
        errors, warnings = (
            [item.entry() for item in self.errors],
            [item.entry() for item in self.warnings],
        )
        own = {"path": self.path, "valid": not errors, "tests": self.tests}
        return own | {"errors": errors, "warnings": warnings}


async def _check(suite: Suite | BrokenSuite, loaded: LoadedSuites) -> _File:
    if isinstance(suite, BrokenSuite):
        return _File(suite.path, None, suite.errors)
    return _File(suite.path, len(suite.tests), await _unusable(suite, loaded), suite.warnings)


async def _unusable(suite: Suite, loaded: LoadedSuites) -> tuple[Diagnostic, ...]:
    """The errors of targets that are not declared, and of judges whose script does not exist.

    A script that git ignores may be built before the tests, so that it is no error."""
    undeclared = undeclared_target(suite)
    found = {undeclared: None} if undeclared else {}
    for evaluator in (
        inner for test in suite.tests for own in test.evaluators for inner in own.walk()
    ):
        script = evaluator.missing_script()
        if script is not None and not await _is_ignored(script, loaded):
            path = os.path.relpath(script, suite.root)
            problem = f"the judge `{evaluator.name}` runs {path}, which does not exist"
            found[Diagnostic(evaluator.location, problem, _ADVICE)] = None
    return tuple(found)


async def _is_ignored(file: Path, loaded: LoadedSuites) -> bool:
    return loaded.repository is not None and await loaded.repository.ignores(file)
