"""Signals: cleanup runs; a second SIGTERM does not stop it, a second SIGINT ends the process."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

PROGRAM = """
import asyncio, sys
from agentevals_action.errors import Interrupted
from agentevals_action.system.signals import end_process, run
async def main():
    try:
        print("begun", flush=True)
        await {waiting}
    finally:
        print("tidying", flush=True)
        await asyncio.to_thread(sys.stdin.read, 1)
        print("tidied", flush=True)
try:
    run(main())
except Interrupted as error:
    print(f"interrupted by {{error}}", flush=True)
    end_process(error.exit_code)
"""
WAITING = PROGRAM.format(waiting="asyncio.Event().wait()")
HANGING = PROGRAM.format(waiting="asyncio.to_thread(open, sys.argv[1])")  # a FIFO nobody writes


class Child(subprocess.Popen[str]):
    """A program whose streams the test writes and reads."""

    stdin: IO[str]
    stdout: IO[str]


def started(program: str, *arguments: str) -> Child:
    """The program, when it has begun."""
    child = Child(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "begun\n"
    return child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run__sigterm_does_not_stop_the_cleanup_after_a_signal(number: signal.Signals) -> None:
    with started(WAITING) as child:
        child.send_signal(number)
        assert child.stdout.readline() == "tidying\n"
        child.send_signal(signal.SIGTERM)
        child.stdin.write("x\n")
        child.stdin.close()
        assert child.stdout.read() == f"tidied\ninterrupted by {number.name}\n"
    assert child.returncode == 128 + number


def test_run__a_second_sigint_ends_the_process() -> None:
    with started(WAITING) as child:
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "tidying\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == ""
        assert child.wait(60) == 130


@pytest.mark.slow
def test_run__a_thread_that_hangs_does_not_keep_the_process(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with started(HANGING, str(tmp_path / "fifo")) as child:
        child.send_signal(signal.SIGTERM)
        child.stdin.close()
        assert child.stdout.read() == "tidying\ntidied\ninterrupted by SIGTERM\n"
        assert child.wait(60) == 143
