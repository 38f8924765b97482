"""The users as which programs of a repository run, so that none of them reaches a key, the files of
the action or the tree of the other side."""

import ctypes
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class ChildUser:
    """The user of one side's programs. Its group has the same number, and it is in no other.

    It alone can enter `home` and `temp`. `tree` is the tree that the program belongs to."""

    uid: int
    home: Path
    temp: Path
    tree: Path | None = None

    def environment_of(self, environment: Mapping[str, str]) -> dict[str, str]:
        """An environment of child processes for this user: with its folders, and with a git that
        reads the trees although their metadata belongs to somebody else."""
        number = environment.get("GIT_CONFIG_COUNT", "")
        index = int(number) if number.isdecimal() else 0
        own = {"HOME": str(self.home), "TMPDIR": str(self.temp)}
        own |= {
            "GIT_CONFIG_COUNT": str(index + 1),
            f"GIT_CONFIG_KEY_{index}": "safe.directory",
            f"GIT_CONFIG_VALUE_{index}": "*",
        }
        # Base cannot enter head's checkout, and must not be evaluated with head's files.
        if self.tree is not None and "GITHUB_WORKSPACE" in environment:
            own["GITHUB_WORKSPACE"] = str(self.tree)
        return {**environment, **own}


@dataclass(frozen=True)
class Isolation:
    """The users of head, whose tree is `checkout` (absolute), and of base; None for the user of the
    action."""

    checkout: Path = Path()
    head: ChildUser | None = None
    base: ChildUser | None = None

    def user_of(self, tree: Path) -> ChildUser | None:
        """The user of the programs of a tree."""
        user = self.head if tree == self.checkout else self.base
        return replace(user, tree=tree) if user else None


#: The mode of a folder that others may pass through, but not list.
TRAVERSABLE = 0o711


def new_folder(prefix: str, parent: Path, user: ChildUser | None = None) -> Path:
    """A new folder with a random name that `user` alone can enter."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    if user is not None:
        os.chown(folder, user.uid, user.uid)
    return folder


def give_folder(folder: Path, user: ChildUser | None) -> None:
    """Gives a folder and the files in it to `user`. From now on only the user's own rights, or a
    descriptor, may be used to open something in it: it may be a link."""
    if user is not None:
        for path in (*folder.iterdir(), folder):
            os.chown(path, user.uid, user.uid, follow_symlinks=False)


#: All programs run as the user of the action.
NO_ISOLATION = Isolation()


@contextmanager
def file_access_as(user: ChildUser | None) -> Iterator[None]:
    """Within the block this thread opens, makes and removes files with the rights of `user` alone.

    Prevents that a folder which a program replaces by a link leads root to a file that the program
    itself cannot read or write. The block must not wait for other tasks of an event loop."""
    if user is None:
        yield
        return
    libc = ctypes.CDLL(None)  # setfsuid(2) applies to the calling thread
    libc.setfsgid(user.uid)
    libc.setfsuid(user.uid)
    try:
        yield
    finally:
        libc.setfsuid(0)
        libc.setfsgid(0)
