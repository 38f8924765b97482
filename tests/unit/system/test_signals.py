"""Signals: cleanup runs, in plain code and in an event loop, and a second signal does not stop it."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

PLAIN = """
import sys
from agentevals_action.errors import Interrupted
from agentevals_action.system.signals import interruptible
try:
    with interruptible():
        try:
            print("begun", flush=True)
            sys.stdin.read()
        finally:
            print("tidying", flush=True)
            sys.stdin.read(1)
            print("tidied", flush=True)
except Interrupted as error:
    print(f"interrupted by {error}", flush=True)
"""

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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted__in_an_event_loop_after_tidying(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(number)
        assert child.stdout.readline() == "tidying\n"
        child.stdin.write("x\n")
        child.stdin.close()
        assert child.stdout.read() == f"tidied\ninterrupted by {number.name}\n"
    assert child.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted__in_plain_code_and_a_second_signal_is_ignored(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PLAIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(number)
        assert child.stdout.readline() == "tidying\n"
        child.send_signal(number)
        child.stdin.write("x\n")
        child.stdin.close()
        assert child.stdout.read() == f"tidied\ninterrupted by {number.name}\n"


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
