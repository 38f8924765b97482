"""Errors that show that the machine is exhausted, and errors that do not."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentevals_action.errors import AttemptError, ResourceError
from agentevals_action.system import resources


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        (MemoryError(), "no memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "no memory"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "no process or thread"),
        (RuntimeError("can't start new thread"), "no process or thread"),
        (OSError(errno.EMFILE, "Too many open files"), "no open file"),
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), "no disk space"),
        (ExceptionGroup("tasks", [ValueError(), MemoryError()]), "no memory"),
        (ResourceError("the machine has no memory left"), "no memory"),
    ],
)
def test_exhausted__names_the_resource(error: Exception, missing: str) -> None:
    found = resources.exhausted(error)
    assert found is not None
    assert missing in str(found)


def test_exhausted__by_the_cause() -> None:
    error = AttemptError("target", "the command cannot be started")
    error.__cause__ = MemoryError()
    assert resources.exhausted(error) is not None


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory"),
        OSError("without a number"),
        RuntimeError("cannot schedule new futures after shutdown"),
        IndexError("list index out of range"),
        ExceptionGroup("tasks", [ValueError()]),
    ],
)
def test_exhausted__any_other_error_is_none(error: Exception) -> None:
    assert resources.exhausted(error) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the file is that of Linux")
def test_end_first__the_child_has_the_highest_score() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        resources.end_first(child.pid)
        score = Path(f"/proc/{child.pid}/oom_score_adj").read_text()
        child.kill()
    assert score == "1000\n"
    assert Path(f"/proc/{os.getpid()}/oom_score_adj").read_text() != score
    resources.end_first(child.pid)  # it has ended
