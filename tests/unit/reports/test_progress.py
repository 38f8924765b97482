"""Progress on standard error."""

import os
import pty
import subprocess
import sys

import pytest

from agentevals_action.reports import progress
from tests.support import command, results

CONFIRM = """
from agentevals_action.reports import progress
from tests.support import results
with progress.show_progress() as shown:
    shown.expect("head", {"evals/EVAL.yaml": 1})
    shown.advance("head", results.result("a"))
    shown.confirm(2, 0, 0)
    shown.confirm(2, 0, 6)
    shown.confirm(2, 2, 11)
"""


def test_lines__at_the_beginning_and_the_end_of_each_part(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress.show_progress() as shown:
        shown.expect("head", {"a/EVAL.yaml": 1, "b/EVAL.yaml": 1})
        shown.expect("base", {"a/EVAL.yaml": 1})
        for side in ("head", "base", "head"):
            shown.advance(side, results.result("a"))
        shown.confirm(2, 0, 0)
        for settled, samples in ((0, 3), (1, 3), (1, 8), (2, 8)):
            shown.confirm(2, settled, samples)
    assert capsys.readouterr().err.splitlines() == [
        "head: 2 of 2 tests, base: 1 of 1 tests",
        "confirmed: 0 of 2 tests whose verdict dropped, 0 fresh samples",
        "confirmed: 2 of 2 tests whose verdict dropped, 8 fresh samples",
    ]


def test_table__shows_the_confirmation_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    environment = command.environment({"TERM": "xterm", "COLUMNS": "120"})
    with subprocess.Popen([sys.executable, "-c", CONFIRM], stderr=theirs, env=environment) as child:
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
    os.close(ours)
    assert child.returncode == 0
    assert b"confirmed: 2 of 2 tests whose verdict dropped, 11 fresh samples" in shown


def _read(descriptor: int) -> bytes:
    """What comes next, nothing at the end: Linux reports EIO when the last writer is gone."""
    try:
        return os.read(descriptor, 65_536)
    except OSError:
        return b""
