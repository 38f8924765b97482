"""`validate`: every error of every suite and of `.agentevals.yaml`, with its location."""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import click

from agentevals_action.cli.loaded_suites import load_suites
from agentevals_action.cli.options import READ_INPUTS, input_options, paths_argument
from agentevals_action.errors import ExitCode
from agentevals_action.formatting import counted
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.suite import BrokenSuite
from agentevals_action.reports.terminal import printable
from agentevals_action.suites.quarantine_file import read_quarantines

_LINE = 2_000  # characters


@click.command("validate")
@paths_argument
@input_options(*READ_INPUTS)
def command(paths: tuple[Path, ...], **inputs: str | None) -> int:
    """Read suites and report every error with file, line and column."""
    loaded = load_suites(inputs, paths)
    quarantine = read_quarantines(loaded.checkout.root, datetime.now(UTC).date())
    _print_errors(quarantine.errors)
    _print_warnings(quarantine.warnings)
    for suite in loaded.suites:
        if isinstance(suite, BrokenSuite):
            _print_errors(suite.errors)
        else:
            _print_warnings(suite.warnings)
            print(f"{printable(suite.path)}: valid, {counted(suite.test_count, 'test')}")
    return ExitCode.INVALID if quarantine.errors or loaded.broken else ExitCode.PASSED


def _print_errors(diagnostics: Iterable[Diagnostic]) -> None:
    for diagnostic in diagnostics:
        print(printable(str(diagnostic), _LINE))


def _print_warnings(diagnostics: Iterable[Diagnostic]) -> None:
    for diagnostic in diagnostics:
        print(f"warning: {printable(str(diagnostic), _LINE)}", file=sys.stderr)
