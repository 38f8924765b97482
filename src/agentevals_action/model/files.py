"""Files that a suite names."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.system.files.paths import Folder


@dataclass(frozen=True)
class NamedFile:
    """A file that a suite names: `path` relative to the repository (POSIX), `role` in words
    (`prompt`, `judge script`, `test file`).

    `importers` are the paths of the files that lead to one that a program imports, the program's
    own file first."""

    path: str
    role: str
    importers: tuple[str, ...] = ()


def files_of_program(
    own: Iterable[Path], role: str, words: Sequence[str], start: Path, folder: Folder
) -> tuple[NamedFile, ...]:
    """The `own` files of a program (absolute), and those of the repository that it imports; its
    command has these words and runs in `start`."""
    own = tuple(dict.fromkeys(own))
    return tuple(
        NamedFile(folder.relative(path), role, tuple(map(folder.relative, importers)))
        for files in (dict.fromkeys(own, ()), folder.imports(own, words, start))
        for path, importers in files.items()
    )
