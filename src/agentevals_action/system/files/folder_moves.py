"""Folders that programs move: the files in them change for everybody who names them by path."""

import ctypes
import os
import struct
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

#: <sys/inotify.h>: the watched folder itself was moved or removed; events were lost.
_MOVED_SELF, _DELETED_SELF, _OVERFLOW = 0x800, 0x400, 0x4000
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_EVENT = struct.Struct("iIII")
_BUFFER = 64 * 1024  # bytes of events that are read at once


class FolderMoves:
    """Counts how often folders were moved or removed since they were added. On other systems than
    Linux nothing is counted."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._folders: dict[int, Path] = {}
        self._known: set[Path] = set()
        self._counts = Counter[Path]()
        self._lost = 0

    def add(self, folders: Iterable[Path]) -> None:
        """Watches folders (absolute). OSError when the system has no watch left."""
        if not sys.platform.startswith("linux"):
            return
        libc = ctypes.CDLL(None, use_errno=True)
        if self._descriptor < 0:
            self._descriptor = _checked(libc.inotify_init1(_FLAGS))
        for folder in set(folders) - self._known:
            number = libc.inotify_add_watch(
                self._descriptor, os.fsencode(folder), _MOVED_SELF | _DELETED_SELF
            )
            self._folders[_checked(number)] = folder
            self._known.add(folder)

    def count(self, path: Path) -> int:
        """The number of moves of the watched folders that contain a path."""
        self._read()
        moves = (number for folder, number in self._counts.items() if folder in path.parents)
        return self._lost + sum(moves)

    def _read(self) -> None:
        if self._descriptor < 0:
            return
        while True:
            try:
                data = os.read(self._descriptor, _BUFFER)
            except BlockingIOError:
                return
            start = 0
            while start < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, start)
                start += _EVENT.size + length
                if mask & _OVERFLOW:
                    self._lost += 1
                elif mask & (_MOVED_SELF | _DELETED_SELF):
                    self._counts[self._folders[number]] += 1

    def close(self) -> None:
        """Stops to watch."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _checked(number: int) -> int:
    if number < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return number
