"""Temporary folders that are removed with their run, or by the next run if theirs was killed."""

import contextlib
import fcntl
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentevals_action.system import process, signals

log = logging.getLogger(__name__)

_LOCK = "lock"
#: Seconds until a removal is given up: an agent may leave millions of files. After a signal the run
#: has to end, and the next run removes the rest.
_REMOVAL_SECONDS, _ENDING_SECONDS = 60.0, 2.0
#: Seconds of these in which this process removes the files itself, without starting another one.
_OWN_SECONDS = 0.5


@contextmanager
def locked_folder(prefix: str, temp: Path) -> Iterator[Path]:
    """A new folder in `temp` that is removed at the end. Folders that killed runs left under the
    same prefix are removed first."""
    remove_abandoned(prefix, temp)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=temp))
    try:
        unnamed = folder / f"{_LOCK}.new"
        with unnamed.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            unnamed.rename(folder / _LOCK)
            yield folder
    finally:
        remove_folder(folder)


def remove_abandoned(prefix: str, temp: Path) -> None:
    """Removes the folders of ended runs. The system releases the lock of a folder when its process
    ends, in whichever way."""
    folders: list[Path] = []
    with contextlib.suppress(OSError), os.scandir(temp) as found:  # whoever makes a folder sees it
        folders = [temp / entry.name for entry in found if entry.name.startswith(prefix)]
    for folder in folders:
        if _is_abandoned(folder):
            remove_folder(folder)


def _is_abandoned(folder: Path) -> bool:
    """Whether this user's folder has a lock that no process holds. A run locks the file before it
    renames it, so a folder without a lock is either being created or empty."""
    try:
        facts = folder.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
            return False
        # Another program may have made the folder: a FIFO as its lock would block every run.
        descriptor = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def remove_folder(folder: Path, seconds: float | None = None) -> None:
    """Removes a folder that any program may have filled, within `seconds`. What remains is logged;
    the next run removes it where `locked_folder` made the folder."""
    if seconds is None:
        seconds = _ENDING_SECONDS if signals.is_ending() else _REMOVAL_SECONDS
    deadline = time.monotonic() + seconds
    # Deeper than Python's stack, or than the number of open files, or without permissions.
    with contextlib.suppress(RecursionError, OSError):
        _remove_files(folder, time.monotonic() + min(seconds, _OWN_SECONDS))
    for command in (("rm", "-rf"), ("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        left = deadline - time.monotonic()
        if left > 0 and os.path.lexists(folder):
            with contextlib.suppress(OSError):  # logged below
                process.call(
                    (*command, "--", str(folder)),
                    cwd=folder.parent,
                    environment={"PATH": os.defpath},
                    timeout=left,
                )
    if os.path.lexists(folder):
        log.warning("%s could not be removed within %g s", folder, seconds)


def _remove_files(folder: Path, deadline: float) -> None:
    """Removes a folder, or a part of it until the deadline. OSError."""
    for _, folders, files, descriptor in os.fwalk(folder, topdown=False):
        for name in files:
            if time.monotonic() > deadline:
                return
            os.unlink(name, dir_fd=descriptor)
        for name in folders:
            try:
                os.rmdir(name, dir_fd=descriptor)
            except NotADirectoryError:  # a link to one
                os.unlink(name, dir_fd=descriptor)
    folder.rmdir()
