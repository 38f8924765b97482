import asyncio
import contextlib
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.system.isolation import ChildUser
from agentevals_action.system.program import Program
from agentevals_action.system.redaction import Redactor, redacting
from agentevals_action.system.workers import RequestUnread, Worker, WorkerEnded, Workers
from tests.support.processes import alive, gone

Result = TypeVar("Result")
#: Answers each line with its process and the line.
ECHO = "import os, sys\nfor line in sys.stdin: print(os.getpid(), line, end='', flush=True)"


def program(folder: Path, code: str = ECHO, user: ChildUser | None = None) -> Program:
    return Program((sys.executable, "-c", code), folder, {"PATH": os.environ["PATH"]}, user)


def run(calls: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(calls)


async def ask(workers: Workers, of: Program, text: str = "hello") -> int:
    """The process that answers."""
    async with workers.lend(of) as worker:
        process, answer = (await worker.ask(text.encode())).split()
    assert answer == text.encode()
    return int(process)


def test_lend__a_worker_serves_one_call_at_a_time(tmp_path: Path) -> None:
    async def calls() -> tuple[set[int], int]:
        workers = Workers()
        together = await asyncio.gather(*(ask(workers, program(tmp_path)) for _ in range(3)))
        later = await ask(workers, program(tmp_path))
        await workers.close()
        return set(together), later

    together, later = run(calls())
    assert later in together


def test_lend__programs_do_not_share_workers(tmp_path: Path) -> None:
    """Head and base, or two targets with other variables."""
    other = tmp_path / "other"
    other.mkdir()

    async def calls() -> set[int]:
        workers = Workers()
        found = {await ask(workers, program(folder)) for folder in (tmp_path, other)}
        await workers.close()
        return found

    assert len(run(calls())) == 2


def test_lend__idle_workers_end_when_there_are_too_many(tmp_path: Path) -> None:
    """A repository with many suites, each with an agent that takes a gigabyte."""
    folders = [tmp_path / str(number) for number in range(4)]
    for folder in folders:
        folder.mkdir()

    async def calls() -> list[bool]:
        workers = Workers(limit=2)
        found = [await ask(workers, program(folder)) for folder in folders]
        running = [alive(process) for process in found]
        await workers.close()
        assert all(map(gone, found))
        return running

    assert run(calls()) == [False, False, True, True]


def test_lend__an_exception_ends_the_worker(tmp_path: Path) -> None:
    async def calls() -> tuple[int, int]:
        workers = Workers()
        with contextlib.suppress(KeyError):
            async with workers.lend(program(tmp_path)) as worker:
                first = int((await worker.ask(b"hello")).split()[0])
                raise KeyError
        second = await ask(workers, program(tmp_path))
        await workers.close()
        return first, second

    first, second = run(calls())
    assert gone(first)
    assert first != second


#: Answers one line, then ends as the statement says when the next request is there.
ONCE = "import os, select\nprint(os.getpid(), input(), flush=True)\nselect.select([0], [], [])\n"


@pytest.mark.parametrize("size", [5, 300_000], ids=["short", "longer than a pipe holds"])
@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("os._exit(5)", RequestUnread),
        ("os.read(0, 1); os._exit(5)", WorkerEnded),
        ("os.close(1); input()", WorkerEnded),
    ],
)
def test_ask__a_request_that_nobody_read_can_be_sent_again(
    tmp_path: Path, statement: str, error: type[Exception], size: int
) -> None:
    async def calls() -> None:
        workers = Workers()
        await ask(workers, program(tmp_path, ONCE + statement))
        async with workers.lend(program(tmp_path, ONCE + statement)) as worker:
            await worker.ask(b"x" * size)

    with pytest.raises(WorkerEnded) as caught:
        run(calls())
    assert caught.type is error


def test_ask__a_worker_that_never_answered_is_not_replaced(tmp_path: Path) -> None:
    """Otherwise a program that ends at once is started for ever."""

    async def call() -> None:
        async with Workers().lend(program(tmp_path, "import sys; sys.exit(5)")) as worker:
            await worker.ask(b"hello")

    with pytest.raises(WorkerEnded, match="exit code 5") as caught:
        run(call())
    assert caught.type is WorkerEnded


def _children() -> set[int]:
    folder = Path(f"/proc/{os.getpid()}/task")
    return {
        int(pid) for task in folder.iterdir() for pid in (task / "children").read_text().split()
    }


def test_lend__a_start_that_fails_later_is_an_error_of_one_call(tmp_path: Path) -> None:
    opened: list[Worker] = []

    async def open_worker(worker: Worker) -> None:
        opened.append(worker)
        if len(opened) == 2:
            raise AttemptError("target", "no memory")

    async def calls() -> list[str]:
        workers, found = Workers(), []
        for fails in (True, False, False):
            try:
                async with workers.lend(program(tmp_path), open_worker):
                    found.append("fine")
                    if fails:
                        raise KeyError
            except AttemptError as error:
                found.append(str(error))
            except KeyError:
                pass
        await workers.close()
        return found

    assert run(calls()) == ["fine", "no memory", "fine"]


def test_close__cancelled_calls_leave_no_process(tmp_path: Path) -> None:
    """A signal ends the run while workers start and answer."""
    before = _children()  # of other tests
    code = "import sys\nfor line in sys.stdin: pass"

    async def calls() -> None:
        workers = Workers()
        tasks = [asyncio.create_task(ask(workers, program(tmp_path, code))) for _ in range(3)]
        while len(_children() - before) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        await workers.close()
        assert not _children() - before

    run(calls())


def test_ask__a_worker_that_writes_without_an_end_is_an_error(tmp_path: Path) -> None:
    endless = program(tmp_path, "import os\nwhile True: os.write(1, b'hello' * 10_000)")

    async def call() -> None:
        async with Workers().lend(endless) as worker:
            await worker.ask(b"hello")

    with pytest.raises(WorkerEnded, match="more than 10 MB"):
        run(call())


def test_errors__part_of_a_secret_is_not_kept(tmp_path: Path) -> None:
    secret = "key-0123456789abcdefghijklmnopqrstuvwxyz"
    filler = 64 * 1024 - 20  # the end that is kept begins in the middle of the secret
    code = (
        f"import sys; sys.stderr.write('{secret}\\n' + 'y' * {filler} + '\\n'); sys.stderr.flush()"
    )

    async def calls() -> str:
        worker = await Worker.start(program(tmp_path, code))
        with pytest.raises(WorkerEnded, match="ended with exit code 0"):
            await worker.next_line()
        await worker.end()
        return worker.errors

    with redacting(Redactor([secret])):
        errors = run(calls())
    assert errors.startswith("y")
