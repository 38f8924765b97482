"""Real runners of suites, which slow tests start."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentevals_action.model.suite import Suite
from agentevals_action.runners.commands import filled
from agentevals_action.runners.formats.base import Format, Row, Selection


def find_runner(name: str) -> str:
    """The program of a runner on PATH; the test is skipped where it is not installed."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not on PATH; install it to run this test")
    return program


def started(
    known: Format, suite: Suite, results: Path, selection: Selection | None = None
) -> Sequence[Row]:
    """The rows of a start of the real program with two samples, of all tests or of a selection;
    `results` is the folder that it gets."""
    file, state = results.with_name(f"{results.name}-selection.json"), results.with_name("state")
    file.write_text((selection and selection.text) or "")
    results.mkdir()
    values = {
        "{SUITE}": str(suite.root / suite.path if known.is_absolute else suite.path),
        "{SAMPLES}": "2",
        "{RESULTS}": str(results),
        "{SELECTION}": str(file),
        "{STATE}": str(state),
    }
    words = selection.words if selection and selection.text is None else None
    command = known.again if selection else known.command
    variables = {name: filled([text], values)[0] for name, text in known.variables.items()}
    done = subprocess.run(
        [find_runner(known.program), *filled(command, values, words)],
        cwd=suite.root,
        env={**os.environ, "HOME": str(results.parent), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in known.exit_codes, done.stdout + done.stderr
    return known.read(results, suite)
