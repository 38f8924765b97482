"""Signals: cleanup runs, in plain code and in an event loop; a second SIGTERM does not stop it, a
second SIGINT ends the process."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import IO

import pytest

# A signal just before a call that blocks is handled only when the call returns: a program that waits
# for a signal looks at its input again and again.
WAIT = """
import select, sys
def wait_for_input():
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        pass
"""

PLAIN = (
    WAIT
    + """
from agentevals_action.errors import Interrupted
from agentevals_action.system.signals import interruptible
try:
    with interruptible():
        try:
            print("begun", flush=True)
            wait_for_input()
        finally:
            print("tidying", flush=True)
            wait_for_input()
            print("tidied", flush=True)
except Interrupted as error:
    print(f"interrupted by {error}", flush=True)
"""
)

LOOP = """
import asyncio, sys
from agentevals_action.errors import Interrupted
from agentevals_action.system.signals import interruptible, run
async def main():
    try:
        print("begun", flush=True)
        await asyncio.Event().wait()
    finally:
        print("tidying", flush=True)
        await asyncio.to_thread(sys.stdin.read, 1)
        print("tidied", flush=True)
try:
    with interruptible():
        run(main())
except Interrupted as error:
    print(f"interrupted by {error}", flush=True)
"""


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
def test_interrupted__in_an_event_loop_after_tidying(number: signal.Signals) -> None:
    with started(LOOP) as child:
        child.send_signal(number)
        assert child.stdout.readline() == "tidying\n"
        child.stdin.write("x\n")
        child.stdin.close()
        assert child.stdout.read() == f"tidied\ninterrupted by {number.name}\n"
    assert child.returncode == 0


@pytest.mark.parametrize("program", [PLAIN, LOOP])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted__sigterm_does_not_stop_the_tidying(
    program: str, number: signal.Signals
) -> None:
    with started(program) as child:
        child.send_signal(number)
        assert child.stdout.readline() == "tidying\n"
        child.send_signal(signal.SIGTERM)
        child.stdin.write("x\n")
        child.stdin.close()
        assert child.stdout.read() == f"tidied\ninterrupted by {number.name}\n"


@pytest.mark.parametrize("program", [PLAIN, LOOP])
def test_interrupted__a_second_sigint_ends_the_process(program: str) -> None:
    with started(program) as child:
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "tidying\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == ""
        assert child.wait(60) == 130


HANGING = """
import asyncio, sys
from agentevals_action.errors import Interrupted
from agentevals_action.system.signals import end_process, interruptible, run
async def main():
    print("begun", flush=True)
    await asyncio.to_thread(open, sys.argv[1])  # a FIFO that nobody writes
try:
    with interruptible():
        run(main())
except Interrupted as error:
    print(f"interrupted by {error}")
    end_process(error.exit_code)
"""


@pytest.mark.slow
def test_interrupted__a_thread_that_hangs_does_not_keep_the_process(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with started(HANGING, str(tmp_path / "fifo")) as child:
        child.send_signal(signal.SIGTERM)
        assert child.stdout.read() == "interrupted by SIGTERM\n"
        assert child.wait(60) == 143


LATE = (
    WAIT
    + """
from agentevals_action.errors import Interrupted
from agentevals_action.system.signals import interruptible
try:
    with interruptible():
        print("begun", flush=True)
        wait_for_input()
except Interrupted:
    print("ending", flush=True)
    wait_for_input()
"""
)


def test_interrupted__a_second_sigint_ends_the_process_after_the_tidying_too() -> None:
    with started(LATE) as child:
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "ending\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        assert child.stdout.read() == ""


BLOCKED = """
import asyncio, sys
from agentevals_action.errors import Interrupted
from agentevals_action.system.signals import interruptible, run
async def block():
    print("begun", flush=True)
    open(sys.argv[1])  # a FIFO that nobody writes
async def main():
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(block())
            tasks.create_task(asyncio.sleep(600))
    finally:
        print("tidied", flush=True)
try:
    with interruptible():
        run(main())
except Interrupted as error:
    print(f"interrupted by {error}", flush=True)
"""


@pytest.mark.slow
def test_interrupted__a_call_that_blocks_the_event_loop(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with started(BLOCKED, str(tmp_path / "fifo")) as child:
        child.send_signal(signal.SIGTERM)
        assert child.stdout.read() == "tidied\ninterrupted by SIGTERM\n"
        assert child.wait(60) == 0


def test_interruptible__gives_the_handlers_back() -> None:
    code = textwrap.dedent(
        """
        import signal
        from agentevals_action.system.signals import interruptible, run
        async def main(): return 7
        before = signal.getsignal(signal.SIGTERM)
        with interruptible():
            inside = signal.getsignal(signal.SIGTERM)
            assert run(main()) == 7
            assert signal.getsignal(signal.SIGTERM) is inside
        assert signal.getsignal(signal.SIGTERM) is before

        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        with interruptible():
            assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
        """
    )
    assert (
        subprocess.run([sys.executable, "-c", code], env={**os.environ}, timeout=60).returncode == 0
    )
