"""The files that cached replies depend on: their contents as digests, read as rarely as they
change."""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from agentevals_action.model import path_patterns

#: What a program leaves beside its source, and what git keeps for itself: no part of what an agent
#: is made of.
_LEFT_OUT = frozenset({".git", "__pycache__"})
_SPECIAL = frozenset("*?[]{}()!@+\\")


class CacheFiles:
    """Digests (SHA-256, hexadecimal) of files. `apart` are absolute folders that no glob looks
    into: the run's own, which grow meanwhile."""

    def __init__(self, apart: Collection[Path] = ()) -> None:
        self._apart = frozenset(apart)
        self._digests: dict[Path, tuple[tuple[int, ...], str]] = {}
        self._matched: dict[tuple[Path, tuple[str, ...]], Mapping[str, str]] = {}

    def digest(self, path: Path) -> str:
        """The digest of a file as it is now; it is read again only when its size, time or place on
        the disk changed. OSError when it cannot be read or is no plain file."""
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(f"{path.name} is no plain file")
        state = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        known = self._digests.get(path)
        if known is None or known[0] != state:
            with path.open("rb") as file:
                known = self._digests[path] = state, hashlib.file_digest(file, "sha256").hexdigest()
        return known[1]

    def matching(self, root: Path, patterns: Sequence[str]) -> Mapping[str, str]:
        """Digests of the files below `root` that the globs match (`!` takes out again), by path, as
        they were when they were first asked for: what an agent writes later is not what it was made
        of. ValueError says which glob is of no use, and why."""
        place = root, tuple(patterns)
        if place not in self._matched:
            self._matched[place] = self._read(root, place[1])
        return self._matched[place]

    def _read(self, root: Path, patterns: tuple[str, ...]) -> Mapping[str, str]:
        found: set[str] = set()
        for pattern in patterns:
            if pattern.startswith("!"):
                continue
            matched = {
                path for path in self._below(root, pattern) if path_patterns.matches(path, pattern)
            }
            if not matched:
                raise ValueError(f"no file matches `{pattern}` of its `cache_key`")
            found |= matched
        chosen = sorted(path for path in found if path_patterns.selected(path, patterns))
        if not chosen:
            raise ValueError("its `cache_key` leaves no file")
        try:
            return {path: self._content(root, path) for path in chosen}
        except OSError as error:
            raise ValueError(
                f"a file of its `cache_key` cannot be read ({error.strerror or error})"
            ) from None

    def _content(self, root: Path, path: str) -> str:
        """The content, and whether it can be run. Of a link the file counts that it leads to,
        inside the repository alone."""
        file = (root / path).resolve()
        if not file.is_relative_to(root.resolve()) or not file.is_file():
            raise ValueError(
                f"`{path}`, which its `cache_key` matches, leads to no file of the repository"
            )
        return f"{self.digest(file)}{' x' if file.stat().st_mode & stat.S_IXUSR else ''}"

    def _below(self, root: Path, pattern: str) -> Iterator[str]:
        """Files and links (relative, POSIX) in the only folder that a glob can match in."""
        parts = PurePosixPath(pattern).parts
        if ".." in parts or PurePosixPath(pattern).is_absolute():
            raise ValueError(
                f"`{pattern}` of its `cache_key` leads out of the repository; write it from the root, without `/` in front"
            )
        fixed = next(
            (place for place, part in enumerate(parts) if not _SPECIAL.isdisjoint(part)), len(parts)
        )
        start = root.joinpath(*parts[:fixed])
        if not start.is_dir() or start.is_symlink():
            if os.path.lexists(start) and not start.is_dir():
                yield start.relative_to(root).as_posix()
            elif start.is_symlink():
                raise ValueError(
                    f"`{pattern}` of its `cache_key` goes through a symbolic link; name the folder itself"
                )
            return
        for folder, folders, files in os.walk(start):
            here = Path(folder)
            links = [name for name in folders if (here / name).is_symlink()]
            folders[:] = sorted(
                name for name in folders if name not in _LEFT_OUT and here / name not in self._apart
            )
            yield from ((here / name).relative_to(root).as_posix() for name in (*files, *links))
