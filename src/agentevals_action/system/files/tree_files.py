"""Files and folders that any program may have filled: walked and copied without following a link,
and output files that are written completely or not at all."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agentevals_action.errors import OutputError

#: Advice for a file that cannot be written.
WRITE_ADVICE = (
    "check that the disk has free space and that the folder is writable, or name another folder, "
    "and run again"
)
#: The reason why a file is not written.
LINKED = "a link leads to another folder"


class LeavingLink(ValueError):
    """A link that leads out of the folder that contains it."""


def files_below(folder: Path) -> Iterator[Path]:
    """All files and links below a folder by name, without those of `.git`. No link is followed.
    OSError."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink() and path.name != ".git":
            yield from files_below(path)
        elif path.name != ".git":
            yield path


def leads_out(folder: Path, link: Path) -> bool:
    """Whether a link leads out of the folder. An absolute link does: in a copy it would lead back
    to the original."""
    try:
        return link.readlink().is_absolute() or not link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a circle of links
        return False


def leads_elsewhere(folder: Path) -> bool:
    """Whether a folder that is absolute and had no links is, or is below, a link by now."""
    return os.path.realpath(folder) != str(folder)


def copy_tree(
    source: Path,
    target: Path,
    *,
    complete: bool = False,
    followed: Collection[Path] = (),
) -> None:
    """Copies the files, folders and links of a folder, with modes and times, into a new folder;
    only a `complete` copy has `.git` and links that lead out. For the links in `followed` what they
    lead to is copied.

    LeavingLink for a refused link, OSError if a copy fails."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        """What is not copied: special files, and what is copied later."""
        return {name for name in names if not is_copied(Path(folder, name))}

    def is_copied(path: Path) -> bool:
        mode = path.lstat().st_mode
        if (path.name == ".git" and not complete) or path in followed:
            return False
        if stat.S_ISLNK(mode) and not complete and leads_out(source, path):
            name = path.relative_to(source).as_posix()
            raise LeavingLink(f"the link {name!r} leads out of {source.name!r}")
        return stat.S_ISLNK(mode) or stat.S_ISDIR(mode) or stat.S_ISREG(mode)

    shutil.copytree(source, target, symlinks=True, ignore=left_out, copy_function=_copy_file)
    for link in (path for path in followed if path.is_relative_to(source)):
        origin, copy = link.readlink(), target / link.relative_to(source)
        if origin.is_symlink():
            copy.symlink_to(origin.readlink())
        elif origin.is_dir():
            copy_tree(origin, copy)
        else:
            _copy_file(str(origin), str(copy))


def _copy_file(origin: str, copy: str) -> None:
    """Copies a regular file. A link or a FIFO that a process put there since is an OSError."""
    descriptor = os.open(origin, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "a program replaced it while it was copied", origin)
        with Path(copy).open("xb") as new:
            shutil.copyfileobj(file, new)
    shutil.copystat(origin, copy, follow_symlinks=False)


def write_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Writes a file completely or not at all, and creates its folder, which is absolute and without
    links: a link that a program put there since is refused. What has the file's name is replaced: a
    link is not followed, and a FIFO does not block. OutputError."""
    with output_errors(path):
        if leads_elsewhere(path.parent):
            raise OSError(errno.ELOOP, LINKED, str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            with partial.open("xb") as file:
                file.writelines(chunks)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Converts an OSError of code that writes a file to OutputError with the system's reason."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror or error}", WRITE_ADVICE
        ) from error
