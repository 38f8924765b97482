"""Folders for temporary files that end with their run, and with the next one when theirs was
killed."""

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

log = logging.getLogger(__name__)

_LOCK = "lock"


@contextmanager
def locked_folder(prefix: str, temp: Path) -> Iterator[Path]:
    """A new folder in `temp`, gone at the end whatever ends it; what killed runs left under the
    same prefix is put away first."""
    mend(prefix, temp)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=temp))
    try:
        making = folder / f"{_LOCK}.new"
        with making.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            making.rename(folder / _LOCK)
            yield folder
    finally:
        remove(folder)


def mend(prefix: str, temp: Path) -> None:
    """Removes the folders whose run is dead: known by their lock, which the system lets go when a
    process ends, however it ends."""
    for folder in temp.glob(f"{prefix}*"):
        if _is_dead(folder):
            remove(folder)


def _is_dead(folder: Path) -> bool:
    """Whether a folder is one of ours whose lock nobody holds. A run locks its folder before it
    gives the lock its name, so a folder without one is just being made, or was left in that moment
    and holds nothing."""
    try:
        facts = folder.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
            return False
        descriptor = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def remove(folder: Path) -> None:
    """Removes a folder whatever its modes are; what stays is told in the log."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    with contextlib.suppress(OSError):  # said below, with what is left
        folder.chmod(0o700)
        for path, folders, _ in os.walk(folder):
            for below in (Path(path, name) for name in folders):
                if not below.is_symlink():
                    below.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        log.warning("%s could not be removed", folder)
