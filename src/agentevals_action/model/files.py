"""Files that a suite names."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agentevals_action.system.files.paths import Folder

#: Roles of files that ask or grade, and of others that do if they are in the suite's folder.
_OF_SUITE = frozenset(
    {"suite", "sidecar", "test file", "targets file", "prompt", "JSON schema", "judge script"}
    | {"judge's command", "workspace", "runner", "configuration of the runner"}
)
_IN_FOLDER = frozenset(
    {"file", "image", "named file", "judge's results", "target's results"}
    | {f"workspace {part}" for part in ("hook", "repository", "template")}
)


@dataclass(frozen=True)
class NamedFile:
    """A file that a suite names: `path` relative to the repository (POSIX), `role` in words
    (`prompt`, `judge script`, `test file`).

    `importers` are the paths of the files that lead to one that a program imports, the program's
    own file first."""

    path: str
    role: str
    importers: tuple[str, ...] = ()

    def belongs_to(self, suite: str) -> bool:
        """Whether it is known to be a part of the suite with this path, and of no agent. What an
        agent consists of, or imports, the agent of another suite may use, too."""
        folder = PurePosixPath(suite).parent
        is_inside = folder.name != "" and PurePosixPath(self.path).is_relative_to(folder)
        if self.importers:
            return is_inside and self.role in _OF_SUITE
        return self.role in _OF_SUITE or (is_inside and self.role in _IN_FOLDER)


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
