"""What is in an agent's folder, for its diff: files that count, files that are ignored, and what
cannot be shown."""

import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.system.tree_files import TreeEntry, list_folder, walk

#: Bytes of a file that a diff is made of; of a larger one it is only told that it changed.
MOST_BYTES = 20_000_000
_LONGEST = 3_500  # bytes of a path; the system takes little more
_RULES = ".gitignore"


@dataclass
class Seen:
    """`files` are regular files and links that count, by path; `odd` what cannot be shown: in
    words, and by what a change of it is known; `ignored` what is ignored, a folder for all that is
    in it."""

    files: list[str] = field(default_factory=list)
    odd: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Owned:
    """What a workspace was made of, ignored or not: paths of files, and of the folders that they
    are in."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()

    @classmethod
    def of(cls, folder: Path) -> "Owned":
        """All that is in a folder now. OSError."""
        files = [entry.path for entry in walk(folder) if not entry.is_folder]
        return cls(frozenset(files), frozenset(above for path in files for above in _above(path)))

    def has(self, entry: TreeEntry) -> bool:
        """Whether this is part of it."""
        return entry.path in (self.folders if entry.is_folder else self.files)


def _above(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path


def look(folder: Path, level: Sequence[str], seen: Seen) -> list[TreeEntry]:
    """What of one level of folders may count, in order; what cannot be shown is put into `seen`."""
    found = []
    for path in level:
        try:
            inside = list(list_folder(folder, path))
        except (
            FileNotFoundError,
            NotADirectoryError,
        ):  # taken away meanwhile, by what the agent left running
            continue
        except OSError as error:
            seen.odd[_shown(path) or "."] = (f"a folder that cannot be read ({error.strerror})", ())
            continue
        for entry in inside:
            words = _odd(folder, entry)
            if words:
                facts = entry.facts
                seen.odd[_shown(entry.path)] = (
                    words,
                    (
                        facts.st_mode,
                        facts.st_size,
                        facts.st_mtime_ns,
                        facts.st_ctime_ns,
                        facts.st_ino,
                    ),
                )
            elif entry.path.rpartition("/")[2] != ".git":
                found.append(entry)
    return found


def _odd(folder: Path, entry: TreeEntry) -> str:
    """Why something cannot be part of a diff; empty when it can."""
    if not _is_text(entry.path):
        return "something whose name is no UTF-8"
    if len(entry.path.encode()) > _LONGEST:
        return "something whose path is too long"
    name = entry.path.rpartition("/")[2]
    if name != ".git" and (
        name.lower() == ".git" or (name.lower() == ".gitmodules" and entry.is_link)
    ):
        return "something that is named like a part of git"
    return "" if entry.is_folder or entry.is_link else _odd_file(folder, entry)


def _odd_file(folder: Path, entry: TreeEntry) -> str:
    if not entry.is_file:
        kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
        return kinds.get(stat.S_IFMT(entry.facts.st_mode), "a device")
    if entry.facts.st_size > MOST_BYTES:
        return f"a file of {entry.facts.st_size:,} bytes, too large to be shown"
    return "" if os.access(folder / entry.path, os.R_OK) else "a file that cannot be read"


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shown(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def learn_rules(folder: Path, level: Sequence[str], rules: Path) -> None:
    """Copies the ignore rules of one level of folders into the folder of rules."""
    for path in level:
        origin = folder / path / _RULES
        if (facts := _lstat(origin)) and stat.S_ISREG(facts.st_mode):
            (rules / path).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin, rules / path / _RULES, follow_symlinks=False)


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None
