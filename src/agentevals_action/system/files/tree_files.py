"""Files and folders that any program may have filled: walked and copied without following a link,
and output files that are written completely or not at all."""

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from agentevals_action.errors import OutputError

#: Advice for a file that cannot be written.
WRITE_ADVICE = (
    "check that the disk has free space and that the folder is writable, or name another folder, "
    "and run again"
)
_GIT = ".git"
_CHUNK = 1024 * 1024  # bytes that a copy has in memory
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: How a copy treats a link that leads out of the folder: it fails, omits the link, or copies it.
Links = Literal["refuse", "drop", "keep"]


@dataclass(frozen=True)
class TreeEntry:
    """A file, folder or link: its path relative to the walked folder (POSIX), and its `lstat`."""

    path: str
    facts: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Whether it is a real folder."""
        return stat.S_ISDIR(self.facts.st_mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.facts.st_mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.facts.st_mode)


class LeavingLink(ValueError):
    """A link that leads out of the folder that contains it."""


def walk(folder: Path, git: bool = False) -> Iterator[TreeEntry]:
    """All entries below a folder, each folder before its content; `git` includes `.git` files and
    folders. OSError."""
    waiting = [""]
    while waiting:
        for entry in list_folder(folder, waiting.pop()):
            if git or entry.path.rpartition("/")[2] != _GIT:
                yield entry
                if entry.is_folder:
                    waiting.append(entry.path)


def walk_open(folder: Path) -> Iterator[tuple[str, int, list["os.DirEntry[str]"]]]:
    """The folders below and with an absolute folder, each before those in it: its path, a
    descriptor, and its entries, from which the caller may remove folders that are not entered.

    A tree of any depth takes one descriptor. No link is followed; OSError if another program moves
    a folder meanwhile.

    Attack: `os.fwalk` fails on a folder 1,000 levels deep, which an agent leaves."""
    current, path = os.open(folder, _FOLDER_FLAGS), str(folder)
    above: list[tuple[str, tuple[int, int], list[str]]] = []
    try:
        while True:
            with os.scandir(current) as found:
                entries = list(found)
            yield path, current, entries
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
            above.append((path, _identity(current), names))
            path = ""
            while not path:
                parent, _, names = above[-1]
                if names:
                    name = names.pop()
                    with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # removed
                        current, path = _exchanged(current, name), f"{parent}/{name}"
                    continue
                above.pop()
                if not above:
                    return
                current = _exchanged(current, "..")
                if _identity(current) != above[-1][1]:
                    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), above[-1][0])
    finally:
        os.close(current)


def _identity(descriptor: int) -> tuple[int, int]:
    facts = os.fstat(descriptor)
    return facts.st_dev, facts.st_ino


def _exchanged(descriptor: int, name: str) -> int:
    """Opens a folder below an open one, which is closed."""
    opened = os.open(name, _FOLDER_FLAGS, dir_fd=descriptor)
    os.close(descriptor)
    return opened


def list_folder(folder: Path, path: str) -> Iterator[TreeEntry]:
    """The entries of the one folder `folder/path`, by name. OSError."""
    with os.scandir(folder / path) as found:
        names = sorted(entry.name for entry in found)
    for name in names:
        below = f"{path}/{name}" if path else name
        with contextlib.suppress(FileNotFoundError):  # removed since
            yield TreeEntry(below, (folder / below).lstat())


def leads_out(folder: Path, path: str) -> bool:
    """Whether a link leads out of the folder. An absolute link does: in a copy it would lead back
    to the original."""
    link = folder / path
    try:
        return link.readlink().is_absolute() or not link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a circle of links
        return False


def copy_tree(
    source: Path,
    target: Path,
    links: Links,
    git: bool = False,
    followed: Collection[Path] = (),
) -> None:
    """Copies the files, folders and links of a folder, with modes and times, into a new folder;
    `git` includes `.git`. For the links in `followed` what they lead to is copied.

    LeavingLink for a refused link, OSError if a copy fails."""
    target.mkdir(parents=True)
    folders = []
    for entry in walk(source, git):
        origin, copy = source / entry.path, target / entry.path
        if entry.is_folder:
            copy.mkdir()
            folders.append((origin, copy))
        elif origin in followed:
            _copy_linked(origin.readlink(), copy, links)
        elif entry.is_link:
            if links == "keep" or not leads_out(source, entry.path):
                copy.symlink_to(origin.readlink())
            elif links == "refuse":
                raise LeavingLink(f"the link {entry.path!r} leads out of {source.name!r}")
        elif entry.is_file:
            _copy_file(origin, copy, entry.facts.st_size)
    for origin, copy in reversed(folders):  # last, as a folder may be read-only
        shutil.copystat(origin, copy, follow_symlinks=False)


def _copy_linked(origin: Path, copy: Path, links: Links) -> None:
    if origin.is_symlink():
        copy.symlink_to(origin.readlink())
    elif origin.is_dir():
        copy_tree(origin, copy, links)
    else:
        _copy_file(origin, copy, origin.stat().st_size)


def _copy_file(origin: Path, copy: Path, size: int) -> None:
    """Copies a regular file, up to the size that it had.

    Attack: a process that an agent left puts a FIFO there after the folder was listed, which
    blocks the reader for ever, or appends to the file as long as it is read."""
    descriptor = os.open(origin, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "a program replaced it while it was copied", str(origin))
        with copy.open("xb") as new:
            while chunk := file.read(min(size, _CHUNK)):
                new.write(chunk)
                size -= len(chunk)
    shutil.copystat(origin, copy, follow_symlinks=False)


@dataclass(frozen=True)
class OutputFolder:
    """A folder for output files: `path` is relative to `root` (POSIX).

    Programs of a pull request may write there, too. No link below `root` is followed and no file
    that exists is opened, so that a link cannot lead a writer out of `root`, and a FIFO or a device
    cannot block it."""

    root: Path
    path: str

    def prepare(self, names: Iterable[str]) -> None:
        """Creates the folder and removes these files from it; OSError."""
        with self._opened() as folder:
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)

    def contains(self, name: str) -> bool:
        """Whether anything has this name in the folder."""
        return os.path.lexists(self.root / self.path / name)

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """Writes a file completely or not at all, and creates the folder; OutputError."""
        partial = partial_name(name)
        with output_errors(self.root / self.path / name), self._opened() as folder:
            new = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
            try:
                with os.fdopen(new, "wb") as file:
                    file.writelines(chunks)
                os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(partial, dir_fd=folder)
                raise

    @contextmanager
    def _opened(self) -> Iterator[int]:
        flags = os.O_RDONLY | os.O_DIRECTORY
        with ExitStack() as opened:
            folder = os.open(self.root, flags)
            opened.callback(os.close, folder)
            for part in PurePosixPath(self.path).parts:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
                folder = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
                opened.callback(os.close, folder)
            yield folder


def write_atomically(path: Path, text: str) -> None:
    """Writes UTF-8 completely or not at all, and creates the folder; OutputError."""
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    OutputFolder(path.parent, "").write(path.name, [text.encode("utf-8", "replace")])


def partial_name(name: str) -> str:
    """The name of a file until it is complete. It is random: a program that knew it could put a
    FIFO there, which would block the writer."""
    return f".{name}.{secrets.token_hex(8)}"


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Converts an OSError of code that writes a file to OutputError with the system's reason."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror or error}", WRITE_ADVICE
        ) from error
