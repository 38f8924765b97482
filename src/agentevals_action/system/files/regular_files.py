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
#: Linux opens a folder to search it without the right to list it.
_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


class NotRegularFile(OSError):
    """A path with something else than a regular file; `strerror` names it."""


def open_regular(path: Path) -> BufferedReader:
    """Opens a regular file to read its bytes; links are followed. OSError, NotRegularFile.

    Attack: a FIFO without a writer blocks the run forever when it is opened in the usual way."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _not_regular(path, stat.S_IFSOCK) from None
        raise
    return _file_of(descriptor, path)


def open_resolved(path: Path) -> BufferedReader:
    """As `open_regular`, for an absolute path that was resolved when its suite was loaded: no link
    is followed, also not to a folder. OSError, NotRegularFile.

    Attack: an agent replaces a file of a later prompt by a link to `/proc/self/environ` or to a
    file of the runner, which the action can read, and gets its content with the prompt."""
    folder = os.open(path.anchor, _FOLDER_FLAGS)
    try:
        for part in path.parts[1:-1]:
            below = os.open(part, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = below
        descriptor = os.open(path.name, _FLAGS | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and path.exists():
            problem = "a program replaced it, or a folder above it, by a link"
            raise NotRegularFile(error.errno, problem, str(path)) from None
        if error.errno == errno.ENXIO:
            raise _not_regular(path, stat.S_IFSOCK) from None
        raise
    finally:
        os.close(folder)
    return _file_of(descriptor, path)


def _file_of(descriptor: int, path: Path) -> BufferedReader:
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise _not_regular(path, mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


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
    """The SHA-256 of a regular file of at most 4 GB, hexadecimal. OSError, NotRegularFile.

    Attack: reading a file of a terabyte, which takes no space where it is empty, takes an hour."""
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
