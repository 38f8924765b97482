"""The users as which programs of a repository run, so that none of them reaches a key, the files of
the action or the tree of the other side."""

import contextlib
import ctypes
import logging
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from agentevals_action.system.signals import in_thread

T = TypeVar("T")

log = logging.getLogger(__name__)

#: The users of head's programs, of base's programs, and of judges, from a range that neither Debian
#: nor systemd assigns. The Dockerfile names them.
UIDS = range(60801, 60804)
HEAD_UID = UIDS[0]
#: The folder for temporary files of a run with isolation, which only root writes.
#:
#: Attack: interpreters search the folders above a program for `node_modules`, `package.json`,
#: `tsconfig.json` or `.git`. Every user can write them into `/tmp`, for the other side as well.
PRIVATE_TEMP = Path("/var/lib/agentevals")
#: The most processes and threads of one user: an agent that starts more of them fails, before the
#: machine has none left for the action.
MAX_PROCESSES = 4096
#: The variable that only the action's image sets.
_IMAGE_VARIABLE = "AGENTEVALS_IMAGE"
#: What root needs to start programs as other users and to end them (<linux/capability.h>). Some
#: containers take it away (`--cap-drop`).
_CAPABILITIES = {"CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}
#: Of <linux/prctl.h>.
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
#: Seconds after which processes that cannot be killed are given up, and between two attempts.
_KILL_SECONDS, _PAUSE = 10.0, 0.01
#: The mode of a folder that others may pass through, but not list.
TRAVERSABLE = 0o711


@dataclass(frozen=True)
class ChildUser:
    """The user of one side's programs, or of judges. It alone can enter `home` and `temp`. `tree`
    is the tree that the program belongs to.

    Its only group is `group`, or one with the number of the user. Judges have the group of a side's
    programs: each reads and writes in a workspace what the other made."""

    uid: int
    home: Path
    temp: Path
    tree: Path | None = None
    group: int | None = None

    @property
    def gid(self) -> int:
        """The number of its only group."""
        return self.uid if self.group is None else self.group

    def make_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """An environment of child processes for this user: with its folders, and with a git that
        reads the trees although their metadata belongs to somebody else."""
        number = environment.get("GIT_CONFIG_COUNT", "")
        index = int(number) if number.isdecimal() else 0
        variables = {"HOME": str(self.home), "TMPDIR": str(self.temp)}
        variables |= {
            "GIT_CONFIG_COUNT": str(index + 1),
            f"GIT_CONFIG_KEY_{index}": "safe.directory",
            f"GIT_CONFIG_VALUE_{index}": "*",
        }
        # Base cannot enter head's checkout, and must not be evaluated with head's files.
        if self.tree is not None and "GITHUB_WORKSPACE" in environment:
            variables["GITHUB_WORKSPACE"] = str(self.tree)
        return {**environment, **variables}


@dataclass(frozen=True)
class Isolation:
    """The users of the programs of head, whose tree is `checkout` (absolute), of the programs of
    base, and of judges; None for the user of the action. The paths in `kept` are in the checkout
    and belong to none of these users.

    Attack: an agent that ran as the user of its judge would leave a module in the `HOME` that the
    judge's interpreter loads, or write a score into the judge's open standard output."""

    checkout: Path = Path()
    head: ChildUser | None = None
    base: ChildUser | None = None
    judge: ChildUser | None = None
    kept: tuple[Path, ...] = ()

    def choose_user(self, tree: Path) -> ChildUser | None:
        """The user of the programs of a tree: agents, hooks and `prepare`."""
        user = self.head if tree == self.checkout else self.base
        return replace(user, tree=tree) if user else None

    def choose_judge_user(self, tree: Path) -> ChildUser | None:
        """The user of the programs of a tree that score."""
        side = self.choose_user(tree)
        return replace(self.judge, tree=tree, group=side.gid) if self.judge and side else None


#: All programs run as the user of the action.
NO_ISOLATION = Isolation()


def find_obstacle(environ: Mapping[str, str]) -> str:
    """The reason why programs cannot run as users of their own; empty if they can."""
    if not sys.platform.startswith("linux") or environ.get(_IMAGE_VARIABLE) != "1":
        return "the action does not run in its own container"
    return "" if os.geteuid() == 0 else "the container does not run as root"


def missing_capabilities() -> tuple[str, ...]:
    """The capabilities that this process, which is root in the container, needs and has not."""
    lines = Path("/proc/self/status").read_text().splitlines()
    held = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return tuple(name for name, bit in _CAPABILITIES.items() if not held >> bit & 1)


def restrict_children() -> None:
    """From now on no child process gains rights (a program with the set-user-id bit, as `su`), and
    no user but root has more than 4,096 processes."""
    ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setgroups(())
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    limit = MAX_PROCESSES if most == resource.RLIM_INFINITY else min(MAX_PROCESSES, most)
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def hide_from_children() -> None:
    """Makes the memory and the start environment (`/proc/PID/environ`) of this process, with its
    tokens, unreadable for children of the same user. Linux only; root with CAP_SYS_PTRACE can still
    read them."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def adopt_orphans() -> None:
    """Makes this process the parent of its descendants whose parent ends, so that `end_processes`
    finds them: a daemon would outlive the run and write its outputs. Linux only."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _adopts_orphans() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    answer = ctypes.c_int()
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return bool(answer.value)


def reap_orphans(awaited: Iterable[int]) -> None:
    """Forgets the adopted processes that have ended: they count for the limit of their user.
    `awaited` are the children that have another waiter."""
    if _adopts_orphans():
        children = set[int]()
        for path in Path("/proc/self/task").glob("*/children"):
            with contextlib.suppress(OSError):  # the thread has ended
                children.update(map(int, path.read_text().split()))
        for pid in children.difference(awaited):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def end_processes() -> None:
    """Kills all descendants of a process that adopts orphans. None of the programs that `process`
    starts may be running.

    Prevents that a program which left its process group (`setsid`, double fork) changes results
    after the tests, or the outputs and files of later steps."""
    if not _adopts_orphans():
        return
    deadline, stopped = time.monotonic() + _KILL_SECONDS, set[int]()
    # All are stopped before they are killed, so that none can start another in between.
    while time.monotonic() < deadline and (running := _descendants()):
        fresh = running - stopped
        _signal(fresh or running, signal.SIGSTOP if fresh else signal.SIGKILL)
        stopped |= fresh
        if not fresh:
            for pid in running:
                with contextlib.suppress(ChildProcessError):  # another process is its parent
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(_PAUSE)
    if left := _descendants():
        _signal(left, signal.SIGKILL)
        log.warning("%d processes of the tests could not be ended", len(left))


def _signal(pids: Collection[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _descendants() -> set[int]:
    """The processes below this one that have not ended. A process whose first thread has ended
    looks like a zombie, but has more threads (proc_pid_stat(5))."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process is gone
            facts = path.read_text(errors="replace").rpartition(")")[2].split()
            state, parent, threads = facts[0], int(facts[1]), int(facts[17])
            if state not in "ZX" or threads > 1:
                parents[int(path.parent.name)] = parent
    pids = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= more
    return pids - {os.getpid()}


def new_folder(prefix: str, parent: Path, user: ChildUser | None = None) -> Path:
    """A new folder with a random name that `user` alone can enter."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    if user is not None:
        os.chown(folder, user.uid, user.gid)
    return folder


def give_folder(folder: Path, user: ChildUser | None) -> None:
    """Gives a folder and all that is in it to `user`. From now on only the user's own rights, or a
    descriptor, may be used to open something in it: it may be a link."""
    if user is not None:
        for parent, _, files in os.walk(folder, topdown=False):
            for name in (*files, ""):
                os.chown(Path(parent, name), user.uid, user.gid, follow_symlinks=False)


@contextmanager
def file_access_as(user: ChildUser | None) -> Iterator[None]:
    """Within the block this thread opens, makes and removes files with the rights of `user` alone.

    Prevents that a folder which a program replaces by a link leads root to a file that the program
    itself cannot read or write. The block must not wait for other tasks of an event loop."""
    if user is None:
        yield
        return
    libc = ctypes.CDLL(None)  # setfsuid(2) applies to the calling thread
    libc.setfsgid(user.gid)
    libc.setfsuid(user.uid)
    try:
        yield
    finally:
        libc.setfsuid(0)
        libc.setfsgid(0)


async def in_thread_as(user: ChildUser | None, work: Callable[..., T], *values: Any) -> T:
    """Works on files in a thread with the rights of `user`, as `in_thread` and `file_access_as`."""

    def run() -> T:
        with file_access_as(user):
            return work(*values)

    return await in_thread(run)


@contextmanager
def entered_as(user: ChildUser | None, folder: Path) -> Iterator[Path]:
    """A path under which a child process changes to a folder that `user` can reach. It stays the
    same folder if a program replaces it meanwhile. OSError.

    Attack: an agent replaces the folder of a later program by a link. A child process changes to it
    before it gives up root's rights, so that the link leads past folders that its user cannot
    enter: into the tree of the other side, or to files of the runner."""
    if user is None:
        yield folder
        return
    with file_access_as(user):
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
