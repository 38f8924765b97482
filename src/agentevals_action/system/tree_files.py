"""Files of workspaces: what lies in a folder that anybody may have filled; no link is ever
followed."""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_GIT = ".git"


@dataclass(frozen=True)
class Entry:
    """Something in a folder: its path relative to it (POSIX), and what the system says of it, of
    the link itself where it is one."""

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
    """Everything below a folder, each folder before what is in it; git's own folders and files
    (`.git`) only when asked for. OSError."""
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
    """Whether a link leads out of the folder; an absolute one does, since a copy of it would lead
    back to the original."""
    link = folder / path
    try:
        return link.readlink().is_absolute() or not link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a circle leads nowhere
        return False
