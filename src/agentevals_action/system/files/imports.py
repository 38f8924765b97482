"""The files that a program in Python or JavaScript imports, at any depth."""

import ast
import functools
import itertools
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

_MAX_BYTES = 1024 * 1024  # of a file that is searched
_MAX_FILES = 2_000  # of one program
_SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
#: `from './x'`, `import './x'`, `import('./x')` and `require('./x')`.
_IMPORT = re.compile(r"""\b(?:from|import|require)\s*\(?\s*["'](\.{1,2}/[^"'\n]+)["']""")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
#: A module and a name in it (`shop.agent:app`), as servers take them, also after an option and `=`.
_MODULE_AND_NAME = re.compile(r"(?:[-\w]+=)?([^\W\d][\w.]*):[^\W\d][\w.]*(?:\(.*\))?")
#: An import of Python, names in parentheses on several lines included. To parse whole files takes
#: ten times as long, and an agent may have thousands.
_PYTHON_IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*((?:from[ \t]+[\w.]+[ \t\\\n]*import\b|import\b)"
    r"(?:[ \t]*\((?:[^()#]|#[^\n]*+){0,5000}+\)|(?:[^\n\\;]|\\\n)*+))",
    re.MULTILINE,
)

#: The files of a module by its name and the folders that are searched.
_FindModules = Callable[[str, tuple[Path, ...]], Sequence[Path]]


def find_imports(
    files: Sequence[Path],
    words: Sequence[str],
    folder: Path,
    root: Path,
    packages: Sequence[Path] = (),
) -> Mapping[Path, Sequence[Path]]:
    """The files below `root` that a program imports, without its own `files`: for each the files
    that lead to it, the program's first; none for a module that the command itself names.

    `words` are those of the command, which runs in `folder`; `packages` are the folders of Python
    packages that it finds besides; all paths are absolute. Names that are computed are not
    found."""
    # Python searches the folder of the script, and with `-m` or `-c` the current one.
    starts = (*(file.parent for file in files), folder, folder / "src", root, root / "src")
    folders = tuple(dict.fromkeys((*starts, *packages)))
    find: _FindModules = functools.cache(find_modules)  # many files import the same
    waiting: deque[tuple[Path, tuple[Path, ...]]] = deque((file, ()) for file in files)
    for option, word in itertools.pairwise(words):
        if option == "-m":
            waiting += ((path, ()) for path in find(f"{word}.__main__", folders))
        elif option == "-c":
            waiting += ((path, ()) for path in _python_imports(word, folder, folders, find))
    for match in filter(None, map(_MODULE_AND_NAME.fullmatch, words)):
        waiting += ((path, ()) for path in find(match[1], folders))
    imported: dict[Path, Sequence[Path]] = {}
    while waiting and len(imported) < _MAX_FILES:
        path, importers = waiting.popleft()
        if path not in imported and _is_below(path, root):
            imported[path] = importers
            chain = (*importers, path)
            waiting += ((module, chain) for module in _imported_by(path, folders, find))
    return {path: imported[path] for path in sorted(imported.keys() - set(files))}


def _is_below(path: Path, root: Path) -> bool:
    return path.is_relative_to(root) and path.resolve().is_relative_to(root)


def _imported_by(path: Path, folders: tuple[Path, ...], find: _FindModules) -> Iterable[Path]:
    if path.suffix not in (".py", *_SCRIPTS):
        return ()
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:  # the program reports it when it runs
        return ()
    if path.suffix == ".py":
        return _python_imports(text, path.parent, folders, find)
    return _script_imports(text, path.parent)


def _python_imports(
    text: str, folder: Path, folders: tuple[Path, ...], find: _FindModules
) -> Iterator[Path]:
    """What Python source imports."""
    for match in _PYTHON_IMPORT.finditer(text):
        try:
            (statement,) = ast.parse(match[1]).body
        except (SyntaxError, ValueError):  # prose
            continue
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield from find(alias.name, folders)
        elif isinstance(statement, ast.ImportFrom):
            above = [".."] * (statement.level - 1)
            start = (folder.joinpath(*above),) if statement.level else folders
            module = f"{statement.module}." if statement.module else ""
            for alias in statement.names:
                yield from find(f"{module}{alias.name}", start)


def find_modules(name: str, folders: tuple[Path, ...]) -> Sequence[Path]:
    """The files of a Python module and of the packages around it."""
    parts = name.split(".")
    paths = (
        folder.joinpath(*parts[:end]) for folder in folders for end in range(1, len(parts) + 1)
    )
    names = ((path / "__init__.py", path.with_name(f"{path.name}.py")) for path in paths)
    return tuple(_existing(itertools.chain.from_iterable(names)))


def _script_imports(text: str, folder: Path) -> Iterator[Path]:
    """What JavaScript or TypeScript source imports from the repository; a suffix may be missing, or
    be that of the compiled file."""
    for name in _IMPORT.findall(_COMMENT.sub("", text)):
        path = folder / name
        stems = [path, path.with_suffix("")] if path.suffix in _SCRIPTS else [path]
        inside = (path / f"index{suffix}" for suffix in _SCRIPTS)
        named = (stem.with_name(f"{stem.name}{suffix}") for stem in stems for suffix in _SCRIPTS)
        yield from _existing([path, *named, *inside])


def _existing(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        try:
            if path.is_file():
                yield Path(os.path.normpath(path))
        except (OSError, ValueError):  # too long for a path
            continue
