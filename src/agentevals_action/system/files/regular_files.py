"""Reads files of a repository. Any program may have put a FIFO or a device in the path of one."""

import errno
import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path

_TYPES = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_MAX_DIGESTED = 4 * 1024**3  # bytes
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegularFile(OSError):
    """A path with something else than a regular file; `strerror` names it."""


def open_regular(path: Path) -> BufferedReader:
    """Opens a regular file to read its bytes; links are followed. A FIFO without a writer, which a
    program may have put there, does not block. OSError, NotRegularFile."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _not_regular(path, stat.S_IFSOCK) from None
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise _not_regular(path, mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def open_resolved(path: Path) -> BufferedReader:
    """As `open_regular`, for an absolute path without links, which programs may have replaced
    since: a link to `/proc/self/environ` or to a file of the runner, which the action can read, is
    not followed. OSError, NotRegularFile."""
    file = open_regular(path)
    opened = Path(f"/proc/self/fd/{file.fileno()}")
    if (opened.readlink() if opened.is_symlink() else path.resolve()) != path:
        file.close()
        problem = "a program replaced it, or a folder above it, by a link"
        raise NotRegularFile(errno.ELOOP, problem, str(path))
    return file


def read_regular(path: Path, limit: int) -> bytes:
    """The first `limit` bytes of a regular file. OSError, NotRegularFile."""
    return _read(open_regular(path), limit)


def read_resolved(path: Path, limit: int) -> bytes:
    """As `read_regular`, for a path that `open_resolved` takes."""
    return _read(open_resolved(path), limit)


def _read(opened: BufferedReader, limit: int) -> bytes:
    with opened as file:
        # Python allocates what is asked for before it reads.
        return file.read(min(limit, os.fstat(file.fileno()).st_size))


def digest_of(path: Path) -> str:
    """The SHA-256 of a regular file of at most 4 GB, hexadecimal. OSError, NotRegularFile."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > _MAX_DIGESTED:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_present(path: Path) -> bool:
    """Whether there is anything but a folder: what is not a regular file is an error of its reader,
    and never ignored."""
    return path.exists() and not path.is_dir()


def _not_regular(path: Path, mode: int) -> NotRegularFile:
    found = _TYPES.get(stat.S_IFMT(mode), "a special file")
    return NotRegularFile(errno.EINVAL, f"it is {found}, not a regular file", str(path))
