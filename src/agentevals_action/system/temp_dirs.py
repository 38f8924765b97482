"""Temporary folders that are removed with their run, or by the next run if theirs was killed."""

import contextlib
import fcntl
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from agentevals_action.system.signals import in_thread

log = logging.getLogger(__name__)

_LOCK = "lock"
#: Seconds before each attempt to remove a folder: a process that is just being ended may make or
#: remove a file in it.
_PAUSES = (0.0, 0.05, 0.2)


@asynccontextmanager
async def locked_folder(prefix: str, temp: Path) -> AsyncIterator[Path]:
    """A new folder in `temp` that is removed at the end. Folders that killed runs left under the
    same prefix are removed first."""
    await in_thread(remove_abandoned, prefix, temp)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=temp))
    try:
        with _lock(folder):
            yield folder
    finally:
        await in_thread(remove_folder, folder)


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    unnamed = folder / f"{_LOCK}.new"
    with unnamed.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unnamed.rename(folder / _LOCK)
        yield


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


def remove_folder(folder: Path) -> None:
    """Removes a folder that any program may have filled. What remains is logged; the next run
    removes it where `locked_folder` made the folder."""
    problem: Exception | None = None
    for pause in _PAUSES:
        time.sleep(pause)
        try:
            shutil.rmtree(folder)
        except PermissionError as error:
            problem = error
            for path, _, _ in os.walk(folder):  # the rights of a folder, before it is read
                os.chmod(path, stat.S_IRWXU)  # noqa: PTH101  # the path is a text
        except (OSError, RecursionError) as error:
            problem = error
        if not os.path.lexists(folder):
            return
    log.warning("%s could not be removed: %s", folder, problem)
