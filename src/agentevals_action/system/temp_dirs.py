"""Temporary folders that are removed with their run, or by the next run if theirs was killed."""

import contextlib
import fcntl
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentevals_action.system import process

log = logging.getLogger(__name__)

_LOCK = "lock"
_REMOVAL_SECONDS = 120.0


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
    for folder in temp.glob(f"{prefix}*"):
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


def remove_folder(folder: Path) -> None:
    """Removes a folder that any program may have filled; a remaining folder is logged."""
    with contextlib.suppress(RecursionError):  # deeper than Python's stack
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        with contextlib.suppress(OSError):  # logged below
            process.call(
                (*command, "--", str(folder)),
                cwd=folder.parent,
                environment={"PATH": os.defpath},
                timeout=_REMOVAL_SECONDS,
            )
    if folder.exists():
        log.warning("%s could not be removed", folder)
