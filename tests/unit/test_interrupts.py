"""Signals: what was begun is put away, in plain code and in an event loop, and a second signal does
not stop that."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

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


LOST = """
import asyncio, os, signal
from agentevals_action.errors import Interrupted
from agentevals_action.system.signals import interruptible, run
class Lost:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        [number for number in range(9)]
class Changed:
    def __set_name__(self, owner, name):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            [number for number in range(9)]
        except Interrupted:
            raise RuntimeError("a class could not be made") from None
def made():
    class Whole:
        part = Changed()
async def main():
    print("begun")
    await asyncio.sleep(0)
    print("gone on")
try:
    with interruptible():
        BODY
    print("passed")
except Interrupted as error:
    print(f"interrupted by {error}")
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("Lost()", "interrupted by SIGTERM\n"),
        ("made()", "interrupted by SIGTERM\n"),
        ("Lost(); raise SystemExit(0)", "interrupted by SIGTERM\n"),
        ("Lost(); run(main())", "interrupted by SIGTERM\n"),
    ],
    ids=["in a destructor", "while a class is made", "before the exit", "before an event loop"],
)
def test_interrupted__is_not_forgotten_where_what_it_raised_is_lost(body: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST.replace("BODY", body)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, said), done.stderr


LOADING = """
import sys, time
from agentevals_action.errors import Interrupted
from agentevals_action.system.signals import interruptible
try:
    with interruptible():
        sys.path.insert(0, sys.argv[1])
        import slow_to_load
        print("loaded", flush=True)
        while True:
            time.sleep(100)
except Interrupted as error:
    print(f"interrupted by {error}")
"""


def test_interrupted__within_an_import_once_it_is_over(tmp_path: Path) -> None:
    (tmp_path / "slow_to_load.py").write_text(
        "import sys\nprint('begun', flush=True)\nsys.stdin.read(1)\n"
    )
    command = [sys.executable, "-c", LOADING, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGTERM)
        child.stdin.write("x\n")
        child.stdin.close()
        assert child.stdout.read() == "loaded\ninterrupted by SIGTERM\n"
    assert child.returncode == 0


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
