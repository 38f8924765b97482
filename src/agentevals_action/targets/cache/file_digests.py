"""Digests of the files that cached replies depend on."""

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from agentevals_action.model import path_patterns
from agentevals_action.system.files.regular_files import digest_of

#: Folders that are not part of an agent: git's own, and bytecode.
_EXCLUDED = frozenset({".git", "__pycache__"})
_SPECIAL = frozenset("*?[]{}()!@+\\")


class CacheFiles:
    """Digests (SHA-256, hexadecimal) of files. `excluded` are absolute folders that no glob
    searches: those that the run itself writes."""

    def __init__(self, excluded: Collection[Path] = ()) -> None:
        self._excluded = frozenset(excluded)
        self._digests: dict[Path, tuple[tuple[int, ...], str]] = {}
        self._matched: dict[tuple[Path, tuple[str, ...]], Mapping[str, str]] = {}

    def digest(self, path: Path) -> str:
        """The digest of a file; it is read again only if its size, time or inode has changed.
        OSError if it cannot be read or is not a regular file."""
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(f"{path.name} is not a regular file")
        state = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        known = self._digests.get(path)
        if known is None or known[0] != state:
            known = self._digests[path] = state, digest_of(path)
        return known[1]

    def matching(self, root: Path, patterns: Sequence[str]) -> Mapping[str, str]:
        """Digests by path of the files below `root` that the globs match (`!` excludes), as they
        are at the first call; ValueError names a glob that cannot be used."""
        key = root, tuple(patterns)
        if key not in self._matched:
            self._matched[key] = self._read(root, key[1])
        return self._matched[key]

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
        """The digest of a file, and whether it is executable. A link stands for its target, which
        must be inside the repository."""
        file = (root / path).resolve()
        if not file.is_relative_to(root.resolve()) or not file.is_file():
            raise ValueError(
                f"`{path}`, which its `cache_key` matches, does not lead to a file of the "
                "repository"
            )
        return f"{self.digest(file)}{' x' if file.stat().st_mode & stat.S_IXUSR else ''}"

    def _below(self, root: Path, pattern: str) -> Iterator[str]:
        """Files and links (relative, POSIX) of the folder in which a glob can match."""
        parts = PurePosixPath(pattern).parts
        if ".." in parts or PurePosixPath(pattern).is_absolute():
            raise ValueError(
                f"`{pattern}` of its `cache_key` leads out of the repository; write it from the "
                "root, without `/` in front"
            )
        fixed = next(
            (index for index, part in enumerate(parts) if not _SPECIAL.isdisjoint(part)), len(parts)
        )
        start = root.joinpath(*parts[:fixed])
        if not start.is_dir() or start.is_symlink():
            if os.path.lexists(start) and not start.is_dir():
                yield start.relative_to(root).as_posix()
            elif start.is_symlink():
                raise ValueError(
                    f"`{pattern}` of its `cache_key` goes through a symbolic link; name the folder "
                    "itself"
                )
            return
        for folder, folders, files in os.walk(start):
            here = Path(folder)
            links = [name for name in folders if (here / name).is_symlink()]
            folders[:] = sorted(
                name
                for name in folders
                if name not in _EXCLUDED and here / name not in self._excluded
            )
            yield from ((here / name).relative_to(root).as_posix() for name in (*files, *links))
