"""Reads files of a repository. Any program may have put a FIFO or a device in the path of one."""

import errno
import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path

_MAX_DIGESTED = 4 * 1024**3  # bytes
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegularFile(OSError):
    """A path with something else than a regular file; `strerror` says so."""

    def __init__(self, path: Path, problem: str = "it is not a regular file") -> None:
        super().__init__(errno.EINVAL, problem, str(path))


def open_regular(path: Path) -> BufferedReader:
    """Opens a regular file to read its bytes; links are followed. A FIFO without a writer, which a
    program may have put there, does not block. OSError, NotRegularFile."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise NotRegularFile(path) from None
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise NotRegularFile(path)


def read_regular(path: Path, limit: int) -> bytes:
    """The first `limit` bytes of a regular file. OSError, NotRegularFile."""
    with open_regular(path) as file:
        return _read(file, limit)


def read_resolved(path: Path, limit: int) -> bytes:
    """As `read_regular`, for an absolute path without links, which programs may have replaced
    since: a link to `/proc/self/environ` or to a file of the runner, which the action can read, is
    not followed. OSError, NotRegularFile."""
    with open_regular(path) as file:
        opened = Path(f"/proc/self/fd/{file.fileno()}")
        if (opened.readlink() if opened.is_symlink() else path.resolve()) != path:
            problem = "a program replaced it, or a folder above it, by a link"
            raise NotRegularFile(path, problem)
        return _read(file, limit)


def _read(file: BufferedReader, limit: int) -> bytes:
    # Python allocates what is asked for before it reads.
    return file.read(min(limit, os.fstat(file.fileno()).st_size))


def digest_file(path: Path) -> str:
    """The SHA-256 of a regular file of at most 4 GB, hexadecimal. OSError, NotRegularFile."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > _MAX_DIGESTED:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_present(path: Path) -> bool:
    """Whether there is anything but a folder: what is not a regular file, or a link that leads
    nowhere, is an error of its reader, and never ignored."""
    return os.path.lexists(path) and not path.is_dir()
