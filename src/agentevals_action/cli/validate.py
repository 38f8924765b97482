"""`validate`: every fault of every suite and of `.agentevals.yaml`, with file, line and column."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.model.suite import BrokenSuite
from agentevals_action.reports import terminal
from agentevals_action.settings import Settings
from agentevals_action.suites import checkout as wiring
from agentevals_action.suites.quarantine_file import read_quarantines

_LINE = 2_000  # characters


def main(
    environ: Mapping[str, str], inputs: Mapping[str, str], folder: Path, paths: Sequence[Path]
) -> int:
    """Prints a line a fault and a line a suite; 2 when there is a fault, or nothing to validate."""
    settings = Settings.from_environ(inputs)
    checkout = wiring.Checkout.at(folder, settings, environ)
    suites = wiring.load_all(
        checkout, settings, wiring.suite_paths(checkout, settings, paths), folder
    )
    if not suites:
        raise InvalidInput(
            "there is no suite in this repository",
            "write an EVAL.yaml, or mend `suites` and `working-directory`",
        )
    broken = _quarantines(checkout)
    for suite in suites:
        if isinstance(suite, BrokenSuite):
            broken += 1
            for diagnostic in suite.errors:
                print(terminal.printable(str(diagnostic), _LINE))
            continue
        for warning in suite.warnings:
            print(f"warning: {terminal.printable(str(warning), _LINE)}", file=sys.stderr)
        print(
            f"{terminal.printable(suite.path)}: valid, {suite.test_count} test{'' if suite.test_count == 1 else 's'}"
        )
    return ExitCode.INVALID if broken else ExitCode.PASSED


def _quarantines(checkout: wiring.Checkout) -> int:
    """How many faults `.agentevals.yaml` has; they are printed."""
    read = read_quarantines(checkout.root, datetime.now(UTC).date())
    for diagnostic in read.errors:
        print(terminal.printable(str(diagnostic), _LINE))
    for warning in read.warnings:
        print(f"warning: {terminal.printable(str(warning), _LINE)}", file=sys.stderr)
    return len(read.errors)
