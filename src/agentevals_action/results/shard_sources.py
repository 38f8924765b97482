"""The files of the jobs of a sharded review: in a folder, or in the archives that they uploaded."""

import errno
import io
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted
from agentevals_action.system.files.archives import DAMAGED
from agentevals_action.system.files.regular_files import open_resolved
from agentevals_action.system.files.tree_files import walk

#: Files of a folder, and unpacked bytes of all archives, at most.
_FILES = 10_000
_UNPACKED = 1 << 30
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


class ShardFiles(Protocol):
    """The plan, the stored results of base and the fragments, by name. `problems` are sentences
    about what cannot be read."""

    @property
    def problems(self) -> Sequence[str]:
        """Makes a pass inconclusive."""
        ...

    def names(self) -> Sequence[str]:
        """The names of all files; several may end alike."""
        ...

    def open(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Opens a file. OSError."""
        ...

    def describe(self, name: str) -> str:
        """The file in the words of a sentence."""
        ...


@dataclass(frozen=True)
class ShardFolder:
    """A folder (absolute, resolved) into which the files were copied."""

    path: Path
    problems: Sequence[str] = ()

    def names(self) -> Sequence[str]:
        """The paths below the folder. InvalidInput for too many."""
        found = [entry.path for entry in walk(self.path)] if self.path.is_dir() else []
        if len(found) > _FILES:
            problem = f"{self.path} contains more than {counted(_FILES, 'file')}"
            raise InvalidInput(problem, "remove what is not a fragment")
        return found

    def open(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Opens a regular file; no link is followed. OSError."""
        return open_resolved(self.path / name)

    def describe(self, name: str) -> str:
        """Its path."""
        return str(self.path / name)


class ShardArchives:
    """Archives in memory. A file of the plan's archive has its own name, and one of another archive
    that of the archive before it. No file is unpacked before it is read.

    Attacks: a bomb; a path that leads elsewhere, which is a name and nothing else here."""

    def __init__(self, plan: str, archives: Mapping[str, bytes], problems: Sequence[str]) -> None:
        """`plan` is the name of the plan's archive. Raises InvalidInput if that is not valid;
        another one that is not valid is one of the problems."""
        self.problems = tuple(problems)
        self._plan = plan
        self._members: dict[str, tuple[zipfile.ZipFile, zipfile.ZipInfo]] = {}
        left = _UNPACKED
        for name, content in archives.items():
            try:
                archive = _open_archive(content, left)
            except ValueError as error:
                if name == plan:
                    raise InvalidInput(
                        f"the artifact `{name}` {error}", "make the plan again"
                    ) from error
                self.problems += (f"the artifact `{name}` is not used: it {error}",)
                continue
            left -= sum(entry.file_size for entry in archive.infolist())
            prefix = "" if name == plan else f"{name}/"
            for entry in archive.infolist():
                self._members[f"{prefix}{entry.filename}"] = archive, entry

    def names(self) -> Sequence[str]:
        """The names of all files of all archives."""
        return tuple(self._members)

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Unpacks a file while it is read, no more than its archive says that it has. OSError."""
        if name not in self._members:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        archive, entry = self._members[name]
        try:
            file = archive.open(entry)
        except (*DAMAGED, ValueError) as error:
            raise _damaged(error) from error
        try:
            with file:
                yield file
        except DAMAGED as error:  # not ValueError: the caller may raise it
            raise _damaged(error) from error

    def describe(self, name: str) -> str:
        """The file of an artifact."""
        artifact, _, file = name.rpartition("/")
        return f"`{file}` of the artifact `{artifact or self._plan}`"


def _damaged(error: Exception) -> OSError:
    return OSError(errno.EIO, f"the archive is damaged ({type(error).__name__})")


def _open_archive(content: bytes, limit: int) -> zipfile.ZipFile:
    """An archive of files with no more unpacked bytes. ValueError continues a sentence about it."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except (*DAMAGED, OSError, ValueError) as error:
        raise ValueError(f"is not a valid ZIP ({type(error).__name__})") from error
    entries = archive.infolist()
    if sum(entry.file_size for entry in entries) > limit:
        raise ValueError(f"is too large: the files of all are over {_UNPACKED >> 20:,} MiB")
    if any(entry.compress_type not in _METHODS for entry in entries):
        raise ValueError("is not compressed as GitHub's archives are")
    if len({entry.filename for entry in entries}) < len(entries):
        raise ValueError("contains a file twice")
    return archive
