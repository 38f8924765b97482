"""A child process of a run: the environment that it is given, time limit, process group killed,
output bounded."""

import contextlib
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentevals_action.system.errand import GRACE, MOMENT, begin, signal_group, unusable

if TYPE_CHECKING:
    import asyncio

    from agentevals_action.system.child import Child, Tell

#: Bytes of standard output, and of standard error, that `run` keeps; the child is drained beyond
#: it.
OUTPUT_LIMIT = 10 * 1024 * 1024

Env = Mapping[str, str]
_PR_SET_DUMPABLE = 4  # <linux/prctl.h>


@dataclass(frozen=True)
class Completed:
    """A child that ended. `returncode` is negative for a signal; texts are UTF-8 with replacement
    and bounded."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool = False
    truncated: bool = False
    duration_ms: float = 0.0


async def run(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Env,
    timeout: float,
    stdin: str = "",
    limit: int = OUTPUT_LIMIT,
    tell: "Tell" = None,
) -> Completed:
    """Runs a child in its own process group to its end or its time limit (seconds), keeping `limit`
    bytes of each stream; OSError when it cannot be started. When it returns or is cancelled,
    nothing of the group is left; a process that made a session of its own is not in it."""
    # late: targets and judges are read without an event loop
    from agentevals_action.system.child import (
        Child,
        place,
    )

    leave = await place()
    started = time.monotonic()
    try:
        child = Child(begin(command, cwd, environment), leave, limit, tell)
    except (OSError, ValueError) as error:
        leave()
        raise error if isinstance(error, OSError) else unusable(error) from None
    try:
        child.listen(stdin.encode("utf-8", "replace"))
        timed_out = not await _within(timeout, child.exited)
        duration_ms = (time.monotonic() - started) * 1000
    finally:
        returncode = await _end(child)
    return Completed(
        returncode, child.text(1), child.text(2), timed_out, child.truncated, duration_ms
    )


async def _end(child: "Child") -> int:
    """Takes what output is still to come, then ends the whole group; the killing happens even when
    this is itself cancelled."""
    group = child.process.pid
    try:
        if not child.exited.is_set():
            signal_group(group, signal.SIGTERM)
            await _within(GRACE, child.exited)
        await _within(MOMENT, child.drained)
    finally:
        signal_group(group, signal.SIGKILL)
        try:
            await _within(GRACE, child.exited)
            await _within(MOMENT, child.drained)
        finally:
            # What is still unread by then has no reader worth waiting for.
            returncode = child.close()
    return returncode


async def _within(seconds: float, event: "asyncio.Event") -> bool:
    """Whether it happens within that time."""
    if not event.is_set():  # most have happened, and a time limit costs more than the look
        import asyncio

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
    return event.is_set()


def hide_from_children() -> bool:
    """Makes this process's memory and start environment (`/proc/PID/environ`), tokens and all,
    unreadable for children of the same user; True where the system does that (Linux), root with
    CAP_SYS_PTRACE excepted."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes  # late: whoever runs nothing has nothing to hide

    return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
