"""The files that a program is made of: what its files import or name, at any depth."""

import ast
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_MAX_BYTES = 1024 * 1024  # of a file that is searched
_MAX_FILES = 2_000  # of one program
#: Suffixes of source files; `import` and `require` may leave them out.
SOURCE_SUFFIXES = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb")
#: Words of a source that may be paths.
_WORD = re.compile(r"[^\s\"'`(){}\[\],;=<>|&$]+")
_LOOKS_LIKE_PATH = re.compile(r"[./]\w")
_COMMENT = re.compile(r"^\s*(#|//).*$", re.MULTILINE)


def find_imports(
    files: Sequence[Path], words: Sequence[str], folder: Path, root: Path
) -> tuple[Path, ...]:
    """The files below `root` that a program imports or names, without its own `files`.

    `words` are those of its command, which runs in `folder`; all paths are absolute. Python is
    parsed; in other languages a word with a `/` or a `.` that leads to a file counts. Names that
    are computed are not found.
    """
    # Python searches the folder of the script, and with `-m` or `-c` the current one.
    folders = tuple(dict.fromkeys((*(file.parent for file in files), folder, root, root / "src")))
    waiting = [*files]
    for index, word in enumerate(words):
        if list(words[index - 1 : index]) == ["-m"]:
            waiting += _modules(word, folders)
        waiting += _python_imports(word, folder, folders) or _named_files(word, (folder,))
    found: dict[Path, None] = {}
    while waiting and len(found) < _MAX_FILES:
        path = waiting.pop()
        if path in found or not _is_below(path, root):
            continue
        found[path] = None
        if path in files or path.suffix in SOURCE_SUFFIXES:
            waiting += _references(path, folders)
    return tuple(sorted(found.keys() - set(files)))


def _is_below(path: Path, root: Path) -> bool:
    return path.is_relative_to(root) and path.resolve().is_relative_to(root)


def _references(path: Path, folders: Sequence[Path]) -> Iterable[Path]:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:  # the judge reports it when it runs
        return ()
    found = _python_imports(text, path.parent, folders) if path.suffix == ".py" else None
    return _named_files(text, (path.parent, *folders)) if found is None else found


def _python_imports(text: str, folder: Path, folders: Sequence[Path]) -> Sequence[Path] | None:
    """What Python source imports, and the files that its texts name; None if it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: list[Path] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found += _modules(alias.name, folders)
        elif isinstance(node, ast.ImportFrom):
            start = [folder.joinpath(*[".."] * (node.level - 1))] if node.level else folders
            for alias in node.names:
                found += _modules(
                    f"{node.module}.{alias.name}" if node.module else alias.name, start
                )
        # A sentence that names a file does not use it.
        elif isinstance(node, ast.Constant) and len(str(node.value).split()) == 1:
            found += _named_files(str(node.value), (folder, *folders))
    return found


def _modules(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """The files of a Python module and of the packages around it."""
    parts = name.split(".")
    for folder in folders:
        for number in range(1, len(parts) + 1):
            path = folder.joinpath(*parts[:number])
            yield from _existing([path / "__init__.py", path.with_name(f"{path.name}.py")])


def _named_files(text: str, folders: Iterable[Path]) -> Iterator[Path]:
    words = {
        word for word in _WORD.findall(_COMMENT.sub("", text)) if _LOOKS_LIKE_PATH.search(word)
    }
    for word in sorted(words):
        suffixes = (
            ("",)
            if word.endswith(SOURCE_SUFFIXES)
            else ("", *SOURCE_SUFFIXES, "/index.js", "/index.ts")
        )
        for folder in folders:
            yield from _existing(folder / f"{word.lstrip('/')}{suffix}" for suffix in suffixes)


def _existing(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        try:
            if path.is_file():
                yield Path(os.path.normpath(path))
        except (OSError, ValueError):  # too long for a path
            continue
