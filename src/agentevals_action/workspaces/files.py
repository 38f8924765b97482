"""Files of workspaces: what lies in a folder that anybody may have filled, and copies of it; no link is ever followed."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agentevals_action import process, scratch

#: What becomes of a link that leads out of the folder: the copy is refused, goes without it, or has it as it is.
Links = Literal["refuse", "drop", "keep"]
_GIT = ".git"
_REMOVAL_SECONDS = 120.0


class LeavingLink(ValueError):
    """A link that leads out of the folder in which it lies."""


class Entry(Struct, frozen=True):
    """Something in a folder: its path relative to it (POSIX), and what the system says of it, of the link itself where it is one."""

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


def entries(folder: Path, git: bool = False) -> Iterator[Entry]:
    """Everything below a folder, each folder before what is in it; git's own folders and files (`.git`) only when asked for. OSError."""
    waiting = [""]
    while waiting:
        for entry in listed(folder, waiting.pop()):
            if git or entry.path.rpartition("/")[2] != _GIT:
                yield entry
                if entry.is_folder:
                    waiting.append(entry.path)


def listed(folder: Path, path: str) -> Iterator[Entry]:
    """What lies directly in one folder below `folder`, by name. OSError."""
    with os.scandir(folder / path) as found:
        names = sorted(entry.name for entry in found)
    for name in names:
        below = f"{path}/{name}" if path else name
        with contextlib.suppress(FileNotFoundError):  # gone since
            yield Entry(below, (folder / below).lstat())


def leads_out(folder: Path, path: str) -> bool:
    """Whether a link leads out of the folder; an absolute one does, since a copy of it would lead back to the original."""
    link = folder / path
    try:
        return link.readlink().is_absolute() or not link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a circle leads nowhere
        return False


def copy_tree(source: Path, target: Path, links: Links, git: bool = False) -> None:
    """Copies a folder with modes and times into a new one; what is neither file, folder nor link is left out.

    `git` takes git's own folders along. LeavingLink for a link that is refused, OSError when something cannot be copied.
    """
    target.mkdir(parents=True)
    folders = []
    for entry in entries(source, git):
        origin, copy = source / entry.path, target / entry.path
        if entry.is_folder:
            copy.mkdir()
            folders.append((origin, copy))
        elif entry.is_link:
            if links == "keep" or not leads_out(source, entry.path):
                copy.symlink_to(origin.readlink())
            elif links == "refuse":
                raise LeavingLink(f"the link {entry.path!r} leads out of {source.name!r}")
        elif entry.is_file:
            shutil.copy2(origin, copy, follow_symlinks=False)
    for origin, copy in reversed(folders):  # a folder that is read-only takes nothing more
        shutil.copystat(origin, copy, follow_symlinks=False)


def remove(folder: Path) -> None:
    """Removes a folder whatever is in it; what stays is told in the log."""
    try:
        scratch.remove(folder)
    except RecursionError:  # folders in folders, deeper than Python goes
        environment = {"PATH": os.defpath}
        process.call(("rm", "-rf", "--", str(folder)), cwd=folder.parent, environment=environment, timeout=_REMOVAL_SECONDS)
