"""Folders that anybody may have filled, copied and removed; no link is ever followed."""

import os
import shutil
from pathlib import Path
from typing import Literal

from agentevals_action.system import errand, temp_dirs
from agentevals_action.system.tree_files import entries, leads_out

#: What becomes of a link that leads out of the folder: the copy is refused, goes without it, or has
#: it as it is.
Links = Literal["refuse", "drop", "keep"]
_REMOVAL_SECONDS = 120.0


class LeavingLink(ValueError):
    """A link that leads out of the folder in which it lies."""


def copy_tree(source: Path, target: Path, links: Links, git: bool = False) -> None:
    """Copies a folder with modes and times into a new one; what is neither file, folder nor link is
    left out.

    `git` takes git's own folders along. LeavingLink for a link that is refused, OSError when
    something cannot be copied."""
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
        temp_dirs.remove(folder)
    except RecursionError:  # folders in folders, deeper than Python goes
        environment = {"PATH": os.defpath}
        errand.call(
            ("rm", "-rf", "--", str(folder)),
            cwd=folder.parent,
            environment=environment,
            timeout=_REMOVAL_SECONDS,
        )
