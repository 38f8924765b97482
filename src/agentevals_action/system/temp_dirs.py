"""Temporary folders that are removed with their run."""

import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from agentevals_action.system.signals import in_thread

log = logging.getLogger(__name__)

#: Seconds before each attempt to remove a folder: a process that is just being ended may make or
#: remove a file in it.
_PAUSES = (0.0, 0.05, 0.2)


@asynccontextmanager
async def temp_folder(prefix: str, parent: Path) -> AsyncIterator[Path]:
    """A new folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield folder
    finally:
        await in_thread(remove_folder, folder)


def remove_folder(folder: Path) -> None:
    """Removes a folder that any program may have filled. What remains is logged."""
    problem: Exception | None = None
    for pause in _PAUSES:
        time.sleep(pause)
        try:
            shutil.rmtree(folder)
        except PermissionError as error:
            problem = error
            _permit(folder)
            for parent, names, _ in os.walk(folder):
                for name in names:
                    _permit(Path(parent, name))
        except (OSError, RecursionError) as error:
            problem = error
        if not os.path.lexists(folder):
            return
    log.warning("%s could not be removed: %s", folder, problem)


def _permit(folder: Path) -> None:
    """Gives the owner all rights to a folder, before it is read. It may be a link, or belong to
    another user: a program can start a container that runs as root."""
    with suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(stat.S_IRWXU)
