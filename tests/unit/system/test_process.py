import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.system import process
from agentevals_action.system.program import Program
from tests.support.processes import gone

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def run(
    tmp_path: Path,
    *command: str,
    timeout: float = 30,
    stdin: str = "",
    environment: Mapping[str, str] = ENVIRONMENT,
) -> process.Completed:
    return asyncio.run(
        process.run(Program(command, tmp_path, environment), timeout=timeout, stdin=stdin)
    )


def python(code: str) -> tuple[str, str, str]:
    return (sys.executable, "-c", code)


def test_run__gives_output_and_code(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", "-c", "cat; echo oops >&2; exit 3", stdin="hällo")
    assert (done.returncode, done.stdout, done.stderr) == (3, "hällo", "oops\n")
    assert (done.timed_out, done.truncated) == (False, False)


def test_run__starts_in_the_folder_with_nothing_but_the_environment_given(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        *python("import os; print(os.getcwd(), sorted(k for k in os.environ if k != 'LC_CTYPE'))"),
    )
    assert done.stdout.strip() == f"{tmp_path} ['PATH']"


def test_run__standard_input_can_be_opened_by_its_name(tmp_path: Path) -> None:
    assert run(tmp_path, "cat", "/dev/stdin", stdin="hello").stdout == "hello"


@pytest.mark.parametrize(("limit", "kept"), [(3, ""), (6, "hello\n"), (9, "hello\n")])
def test_run__keeps_the_complete_lines_of_what_is_asked_for(
    tmp_path: Path, limit: int, kept: str
) -> None:
    program = Program(("printf", "hello\nthere"), tmp_path, ENVIRONMENT)
    limited = process.run(program, timeout=30, limit=limit)
    done = asyncio.run(limited)
    assert (done.stdout, done.truncated) == (kept, True)


def test_run__a_flood_is_cut_and_drained(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        *python(
            "import sys\nfor _ in range(40): sys.stdout.write('x' * 1048575 + chr(10))\nsys.stderr.write('end')"
        ),
    )
    assert (done.returncode, len(done.stdout), done.stderr, done.truncated) == (
        0,
        process.OUTPUT_LIMIT,
        "end",
        True,
    )


@pytest.mark.parametrize("command", [("no-such-program-here",), ("./missing.sh",), ("/",)])
def test_run__what_cannot_be_started_is_an_os_error(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    with pytest.raises(OSError, match=r"No such file|Permission denied"):
        run(tmp_path, *command)


@pytest.mark.parametrize("word", ["a\0b", "a\ud800b"])
def test_run__a_word_that_the_system_cannot_take_is_an_os_error(tmp_path: Path, word: str) -> None:
    with pytest.raises(OSError, match="cannot be passed to the system"):
        run(tmp_path, "echo", word)


def test_run__time_out_kills_the_group_and_keeps_its_output(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", "-c", "sleep 300 & echo $! $$; echo why >&2; wait", timeout=2)
    assert (done.timed_out, done.returncode) == (True, -signal.SIGTERM)
    assert done.stderr == "why\n"
    sleeping, shell = map(int, done.stdout.split())
    assert gone(sleeping)
    assert gone(shell)


@pytest.mark.slow
def test_run__time_out_kills_what_ignores_the_polite_signal(tmp_path: Path) -> None:
    done = run(
        tmp_path, "sh", "-c", "trap '' TERM; echo $$; while :; do sleep 300; done", timeout=2
    )
    assert (done.timed_out, done.returncode) == (True, -signal.SIGKILL)
    assert gone(int(done.stdout))


def test_run__a_grandchild_that_outlives_the_child_is_killed(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", "-c", "sleep 300 >/dev/null 2>&1 </dev/null & echo $!")
    assert done.returncode == 0
    assert gone(int(done.stdout))


def test_run__a_daemon_that_holds_the_pipes_open_is_not_waited_for(tmp_path: Path) -> None:
    code = "import os, subprocess; print(subprocess.Popen(['sleep', '300'], start_new_session=True).pid, flush=True)"
    done = run(tmp_path, *python(code), stdin="x" * 2_000_000)
    try:
        assert (done.returncode, done.timed_out) == (0, False)
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)


def test_run__what_is_written_just_after_the_childs_end_still_counts(tmp_path: Path) -> None:
    assert run(tmp_path, "sh", "-c", "(sleep 0.05; echo late) & exit 0").stdout == "late\n"


def test_run__cancellation_kills_the_group_before_it_returns(tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)

    async def cancelled() -> list[int]:
        command = ("sh", "-c", "sleep 300 & echo $! $$ > started; wait")
        task = asyncio.create_task(
            process.run(Program(command, tmp_path, ENVIRONMENT), timeout=300)
        )
        pids = [int(pid) for pid in (await asyncio.to_thread(fifo.read_text)).split()]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pids

    pids = asyncio.run(cancelled())
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_run__a_second_cancellation_still_kills(tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)

    async def cancelled() -> int:
        command = ("sh", "-c", "trap '' TERM; echo $$ > started; while :; do sleep 300; done")
        task = asyncio.create_task(
            process.run(Program(command, tmp_path, ENVIRONMENT), timeout=300)
        )
        pid = int(await asyncio.to_thread(fifo.read_text))
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid

    assert gone(asyncio.run(cancelled()))


def test_run__cancellation_while_the_child_is_being_started_leaves_nothing(tmp_path: Path) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(
            process.run(Program(("sleep", "300.25"), tmp_path, ENVIRONMENT), timeout=300)
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    children = Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children")
    assert b"300.25" not in b"".join(
        Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children.read_text().split()
    )


def test_run__leaves_no_descriptor_open(tmp_path: Path) -> None:
    def count() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    async def counted() -> tuple[int, int]:
        before = count()
        for command in (("true",), ("sleep", "300"), ("no-such-program-here",)):
            with contextlib.suppress(FileNotFoundError):
                program = Program(command, tmp_path, ENVIRONMENT)
                await process.run(program, timeout=0.1, stdin="x" * 2_000_000)
        return before, count()

    before, after = asyncio.run(counted())
    assert after == before


@pytest.mark.parametrize(
    ("command", "options", "kind", "message"),
    [
        ("exit 3", {}, "evaluator", "the judge ended with exit code 3"),
        ("echo out; echo why >&2; exit 3", {}, "evaluator", "the judge ended with exit code 3: why"),
        ("printf '\\033[31mwhy\\033[0m'; exit 3", {}, "evaluator", "the judge ended with exit code 3: why"),
        ("seq 2; echo; echo end; exit 3", {}, "evaluator", "the judge ended with exit code 3:\n1\n2\nend"),
        ("kill -9 $$", {"codes": range(256)}, "evaluator", "the judge was ended by signal 9"),
        ("exec sleep 60", {"timeout": 0.1}, "evaluator", "the judge did not end within 0.1 s"),
        ("exec sleep 60", {"timeout": 0.1, "kind": "target"}, "timeout", "the judge did not end within 0.1 s"),
        ("head -c 10485761 /dev/zero", {}, "evaluator", "the judge wrote more than 10 MB"),
        ("true", {"folder": Path("/nowhere")}, "evaluator", "the judge cannot be started: there is no folder /nowhere"),
    ],
)  # fmt: skip
def test_run_checked__explains_the_end(
    tmp_path: Path, command: str, options: dict[str, Any], kind: str, message: str
) -> None:
    options = {"kind": "evaluator", "timeout": 30, **options}
    program = Program(("sh", "-c", command), options.pop("folder", tmp_path), ENVIRONMENT)
    with pytest.raises(AttemptError) as caught:
        asyncio.run(process.run_checked("the judge", program, **options))
    assert (caught.value.kind, str(caught.value)) == (kind, message)


@pytest.mark.parametrize(
    ("command", "options"), [("exit 3", {"codes": (0, 3)}), ("head -c 10485761 /dev/zero", {"complete": False})]
)  # fmt: skip
def test_run_checked__what_the_caller_accepts_is_no_error(
    tmp_path: Path, command: str, options: dict[str, Any]
) -> None:
    program = Program(("sh", "-c", command), tmp_path, ENVIRONMENT)
    done = process.run_checked("it", program, kind="target", timeout=30, **options)
    assert asyncio.run(done).failure
