"""Resolution of the paths in suites: relative to the declaring file, inside the repository."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.formatting import cut
from agentevals_action.system.files.imports import find_imports
from agentevals_action.system.files.regular_files import read_regular
from agentevals_action.system.files.tree_files import files_below, leads_out

#: A text with such a prefix is a path, and one word with such a suffix.
_PREFIXES = ("./", "../", "/", "file://")
_SUFFIXES = (".md", ".markdown", ".txt", ".j2", ".jinja", ".prompt", ".yaml", ".yml", ".json")
#: How the file begins that stands for another one: https://github.com/git-lfs/git-lfs
_LFS = b"version https://git-lfs.github.com/spec/"
#: Characters of a path, and bytes of one name in it, that the usual systems support.
_MAX_PATH, _MAX_NAME = 4096, 255
_SHOWN = 60  # characters of a path that an error message quotes


@dataclass(frozen=True)
class Folder:
    """The folder of a declaring file, and the repository's; both absolute and free of symbolic
    links. `packages` are the folders with Python packages of the repository's distributions."""

    root: Path
    path: Path
    packages: Sequence[Path] = field(default=(), kw_only=True)

    def resolve(self, text: str) -> Path:
        """The absolute path that `text` names; a leading `/` is the repository root. ValueError if
        it leaves the repository."""
        text = text.removeprefix("file://")
        if len(text) > _MAX_PATH:
            raise ValueError(f"{cut(text, _SHOWN)!r} is too long for a path")
        try:
            path = (
                self.root / text.lstrip("/") if text.startswith("/") else self.path / text
            ).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(f"{text!r} is not a valid path ({error})") from None
        if not path.is_relative_to(self.root):
            raise ValueError(f"{text!r} leaves the repository")
        if any(len(os.fsencode(part)) > _MAX_NAME for part in path.parts):
            raise ValueError(f"{cut(text, _SHOWN)!r} has a name in it that is too long for a file")
        if ".git" in path.relative_to(self.root).parts:
            raise ValueError(f"{text!r} lies in git's own folder, which may hold credentials")
        return path

    def file(self, text: str) -> Path:
        """The existing file that `text` names; ValueError if there is none or it is outside."""
        path = self.resolve(text)
        try:
            is_file = path.is_file()
        except OSError as error:
            raise ValueError(f"the file {text!r} cannot be looked for ({error.strerror})") from None
        if not is_file and path.exists() and not path.is_dir():
            raise ValueError(f"{text!r} is not a regular file ({self.relative(path)})")
        if not is_file:
            raise ValueError(f"there is no file {text!r} (looked for {self.relative(path)})")
        return path

    def file_if_meant(self, text: str) -> Path | None:
        """The file that `text` names, None when it is meant as inline text; ValueError when the
        text is a path, and the file does not exist."""
        is_word = len(text.split()) == 1 and "{{" not in text and "{%" not in text
        if is_word and ("/" in text or text.lower().endswith(_SUFFIXES)):
            return self.file(text)
        if text.startswith(_PREFIXES):
            return self.file(text)
        if "\n" in text or len(text) > 1024:
            return None
        try:
            if not (self.path / text).is_file():
                return None
        except (OSError, ValueError):
            return None
        return self.file(text)

    def read(self, path: Path, name: str, limit: int) -> bytes:
        """The contents of a file; ValueError if it cannot be read, has over `limit` bytes, or is
        Git LFS's pointer to another one."""
        try:
            data = read_regular(path, limit + 1)
        except OSError as error:
            raise ValueError(f"{name} cannot be read ({error.strerror})") from None
        if len(data) > limit:
            raise ValueError(f"{name} is longer than {limit:,} bytes")
        if data.startswith(_LFS):
            problem = f"{name} is a pointer of Git LFS (set `lfs: true` in actions/checkout)"
            raise ValueError(problem)
        return data

    def tree(self, path: Path) -> Sequence[Path]:
        """All files and links below a folder that is copied; ValueError if it cannot be read, or a
        link in it leads out of it."""
        try:
            files = tuple(files_below(path))
        except OSError as error:
            raise ValueError(f"{error}; make it readable") from None
        for link in (file for file in files if file.is_symlink() and leads_out(path, file)):
            name, advice = link.relative_to(path).as_posix(), "put the target of the link into it"
            raise ValueError(f"the link {name!r} in it leads out of it; {advice}")
        return files

    def files_among(self, words: Sequence[str], start: Path) -> Iterator[Path]:
        """The files of the repository that the words of a command, or their parts after `=`, name;
        the command runs in `start`. For a link, the link and the file that it leads to."""
        for name in (name for word in words for name in (word, word.rpartition("=")[2])):
            path = Path(os.path.normpath(start / name))
            try:
                file = path.resolve()
                if file.is_relative_to(self.root) and file.is_file():
                    yield from (link for link in (path, file) if link.is_relative_to(self.root))
            except (OSError, RuntimeError, ValueError):  # no path but a text, or a loop of links
                continue

    def imports(
        self, files: Sequence[Path], words: Sequence[str], start: Path
    ) -> Mapping[Path, Sequence[Path]]:
        """The files of the repository that a program with these `files` imports, as
        `find_imports` returns them; its command has these words and runs in `start`."""
        return find_imports(files, words, start, self.root, self.packages)

    def relative(self, path: Path) -> str:
        """`path` relative to the repository root, with forward slashes."""
        return path.relative_to(self.root).as_posix()
