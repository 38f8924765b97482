"""Exhausted resources of the machine: their errors, and what the kernel ends first."""

import contextlib
import errno
from pathlib import Path

from agentevals_action.errors import ResourceError

_ADVICE = (
    "see which agent, hook or judge leaves processes behind or fills the memory or the disk, or "
    "use a larger runner"
)
_ERRNOS = {
    errno.ENOMEM: "no memory",
    errno.EAGAIN: "no process or thread",  # fork(2), at a limit of processes
    errno.EMFILE: "no open file",
    errno.ENFILE: "no open file",
    errno.ENOSPC: "no disk space",
    errno.EDQUOT: "no disk space",
}
#: CPython's message of the RuntimeError when the system refuses a thread.
_NO_THREAD = "can't start new thread"
#: The highest value: the process is ended first (proc_pid_oom_score_adj(5)).
_FIRST = "1000"


def exhausted(error: BaseException) -> ResourceError | None:
    """The resource that is exhausted if the error, one of its group or its cause shows this, else
    None."""
    if isinstance(error, ResourceError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(exhausted, error.exceptions)), None)
    missing = None
    if isinstance(error, MemoryError):
        missing = "no memory"
    elif isinstance(error, OSError):
        missing = _ERRNOS.get(error.errno or 0)
    elif isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        missing = "no process or thread"
    if missing:
        return ResourceError(f"the machine has {missing} left for the run", _ADVICE)
    return exhausted(error.__cause__) if error.__cause__ else None


def end_first(pid: int) -> None:
    """Makes the kernel end this process and its children, rather than the action, when the memory
    is exhausted: an action that is killed writes no check run."""
    with contextlib.suppress(OSError):  # the process has ended, or the system is not Linux
        Path(f"/proc/{pid}/oom_score_adj").write_text(_FIRST)
