"""What a test of pytest asks: the source of its function, and of the fixtures, helpers, names and
data files that it uses, at any depth. Comments and other tests are no part of it."""

import ast
import copy
import itertools
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from agentevals_action.system.files.imports import find_modules
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import read_regular

_MAX_BYTES, _MAX_PATH = 1024 * 1024, 500  # of a module, and characters of a text
#: Names whose use hides which other names are used.
_DYNAMIC = {
    "eval",
    "exec",
    "globals",
    "locals",
    "vars",
    "__import__",
    "importlib",
    "pytest_plugins",
}
#: What pytest finds by its name: hooks, marks, and the functions of xunit.
_FOUND = re.compile(r"pytest\w+|(setup|teardown)(_module|_function)?|(setUp|tearDown)Module")
#: A text that may be the names of fixtures; the suffixes of programs, which are no data.
_FIXTURES = re.compile(r"\w+(\s*,\s*\w+)*")
_CODE = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".go")
_TESTS = re.compile(r"(.+[_-])?(tests?|evals?|evaluations?)")

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Import = ast.Import | ast.ImportFrom


class _SingleImports(ast.NodeTransformer):
    """Splits an import into one for each name, so that one more name does not change the others."""

    def visit_Import(self, node: ast.Import) -> list[ast.Import]:
        return [ast.Import([alias]) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.ImportFrom]:
        return [ast.ImportFrom(node.module, [alias], node.level) for alias in node.names]


class _Module:
    """The statements of a module by the names that they bind (`bound`), and the statements that
    concern every test (`always`). OSError, SyntaxError, ValueError, RecursionError or MemoryError
    if it cannot be read."""

    def __init__(self, path: Path) -> None:
        content = read_regular(path, _MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ValueError("it is too long")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in texts
            self.tree: ast.Module = _SingleImports().visit(ast.parse(content))
        self.bound: defaultdict[str, list[ast.stmt]] = defaultdict(list)
        self.always: list[ast.stmt] = []
        #: The modules that an import, as text, may mean (None: it cannot be read).
        self.imports: dict[str, Sequence[_Module | None]] = {}
        for statement in self.tree.body:
            names = set(_bound(statement))
            for name in names:
                self.bound[name].append(statement)
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not (names or is_text) or any(map(_FOUND.fullmatch, names)) or "autouse" in names:
                self.always.append(statement)


class PythonTests:
    """The tests in the file at `path`, in the repository at `root`. `data` are the paths of files
    that they may read. `is_helper` states whether a module belongs to the tests, and not to the
    agent; `content` gives the digest of a file, None for a file of the agent. All modules and data
    are read at once, before a program can change them."""

    def __init__(
        self,
        root: Path,
        path: str,
        data: Collection[str],
        is_helper: Callable[[Path], bool],
        content: Callable[[str], str | None],
    ) -> None:
        self._root, self._is_helper, self._content = root, is_helper, content
        self._data = [name for name in data if not name.endswith(_CODE)]
        self._parts = {part for name in self._data for part in name.split("/")}
        self._functions: set[str] = set()
        file = root / path
        self._starts = [folder for folder in file.parents if folder.is_relative_to(root)]
        self._modules: dict[Path, _Module | None] = {}
        #: The contents of the files that a text may mean, with their names.
        self._files: dict[str, Sequence[tuple[str, str]]] = {}
        self._module = self._load(file)
        shared = [folder / "conftest.py" for folder in self._starts]
        self._shared = [self._load(conf) for conf in shared if conf.is_file() and is_helper(conf)]

    def _load(self, path: Path) -> _Module | None:
        """A module with all that it imports; None if it cannot be read."""
        if path in self._modules:
            return self._modules[path]
        try:
            module = self._modules[path] = _Module(path)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            self._modules[path] = None
            return None
        for node in ast.walk(module.tree):
            self._functions.add(getattr(node, "name", ""))
            for word in set(_words(node)) - self._files.keys():
                paths = sorted(self._meant(word, path.parent))
                contents = ((Path(data).name, self._content(data)) for data in paths)
                self._files[word] = [(name, content) for name, content in contents if content]
            if isinstance(node, _Import):
                files = [*filter(self._is_helper, _imported(node, path.parent, self._starts))]
                module.imports[ast.unparse(node)] = [self._load(file) for file in files]
        return module

    def _meant(self, word: str, folder: Path) -> Iterator[str]:
        """The files that a text may mean: by a path, the end or a folder of a path, or a glob."""
        end = word if word.startswith((".", "/")) else f"/{word}"
        is_pattern = "*" in word or word.startswith(".")
        may_be_data = is_pattern or not self._parts.isdisjoint(word.split("/"))
        for path in (f"/{name}" for name in self._data if may_be_data):
            if (
                path.endswith(end)
                or f"{end}/" in path
                or ("*" in word and fnmatch(path, f"*{end}"))
            ):
                yield path[1:]
        starts = {folder, *self._starts}
        for start in (place for place in starts if os.path.exists(f"{place}/{word}")):  # noqa: PTH110
            files = Folder(self._root, start).files_among([word], start)
            paths = (file.relative_to(self._root).as_posix() for file in files)
            yield from (path for path in paths if not path.endswith(_CODE))

    def find_source(self, test: str) -> Any:
        """What a test asks, as JSON data, by its node id without the path; None if that cannot be
        determined."""
        names, _, parameters = test.partition("[")
        first, *steps = names.split("::")
        is_found = (first, *steps)[-1] in self._functions
        if self._module is None or None in self._shared or not is_found:
            return None
        try:
            nodes = [_only(node, steps) for node in self._module.bound.get(first, ())]
            return self._closure(nodes, parameters) if nodes else None
        except RecursionError:  # of a deep expression
            return None

    def _closure(self, nodes: Sequence[ast.stmt], parameters: str) -> Any:
        """The sources and the files of statements, and of all that these use."""
        shared = [module for module in (self._module, *self._shared) if module]
        waiting = [(module, node) for module in shared for node in module.always]
        waiting += ((shared[0], node) for node in nodes)
        texts, files, seen = set[str](), set[tuple[str, str]](), set[int]()
        while waiting:
            module, node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            chosen = _without_other_cases(node, parameters)
            texts.add(ast.unparse(chosen))
            for part in ast.walk(chosen):
                names, fixtures = _names(part)
                if not _DYNAMIC.isdisjoint(names):
                    return None
                places = [*itertools.product([module], names), *itertools.product(shared, fixtures)]
                for place, name in places:
                    waiting += ((place, used) for used in place.bound.get(name, ()))
                files.update(file for word in _words(part) for file in self._files[word])
                if isinstance(part, _Import):
                    for other in module.imports[ast.unparse(part)]:
                        if other is None:
                            return None
                        wanted = other.bound.get(part.names[0].name, other.tree.body)
                        waiting += ((other, used) for used in (*wanted, *other.always))
        return [sorted(texts), sorted(files)]


def folder_of_tests(path: str) -> str | None:
    """The folder of a suite and of what its tests share: the first folder with a name of tests, or
    the suite's own; None at the root, where the agent may be."""
    parts = path.split("/")[:-1]
    ends = (end for end, part in enumerate(parts, 1) if _TESTS.fullmatch(part))
    return "/".join((*parts[: next(ends, len(parts))], "")) if parts else None


def _imported(node: _Import, folder: Path, starts: Sequence[Path]) -> Sequence[Path]:
    """The files that an import may mean."""
    (alias,), module, places = node.names, getattr(node, "module", ""), (folder, *starts)
    if level := getattr(node, "level", 0):
        places = (folder.joinpath(*[".."] * (level - 1)),)
    return find_modules(".".join(filter(None, (module, alias.name))), places)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds or changes, and `autouse` for a fixture of this kind."""
    is_definition = isinstance(statement, _Definition)
    for node in [statement] if is_definition else ast.walk(statement):
        if isinstance(node, _Definition):
            yield node.name
            parts = (part for decorator in node.decorator_list for part in ast.walk(decorator))
            for option in (part for part in parts if isinstance(part, ast.keyword)):
                name = str(getattr(option.value, "value", ""))
                yield from {"name": [name], "autouse": ["autouse"]}.get(option.arg or "", [])
        elif isinstance(node, ast.alias) and node.name != "*":
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            yield from (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _only(node: ast.stmt, steps: Sequence[str]) -> ast.stmt:
    """A class with the test at `steps` alone; any other statement as it is."""
    if not steps or not isinstance(node, ast.ClassDef):
        return node
    part = copy.copy(node)
    part.body = [
        _only(inner, steps[1:]) if name == steps[0] else inner
        for inner in node.body
        if (name := getattr(inner, "name", "")) == steps[0] or not name.lower().startswith("test")
    ]
    return part


def _without_other_cases(node: ast.stmt, parameters: str) -> ast.stmt:
    """A statement without `pytest.param(…, id=…)` of other parameters, if it has one of these."""
    node = copy.deepcopy(node) if parameters else node
    for part in ast.walk(node) if parameters else ():
        if isinstance(part, ast.List | ast.Tuple):
            ids = {case: name for case in part.elts if (name := _id_of_case(case))}
            if any(name in parameters for name in ids.values()):
                part.elts = [case for case in part.elts if ids.get(case, "") in parameters]
    return node


def _id_of_case(node: ast.expr) -> str:
    """The id of a case as pytest writes it; empty if it has none."""
    keywords = node.keywords if isinstance(node, ast.Call) else ()
    values = (getattr(word.value, "value", "") for word in keywords if word.arg == "id")
    return str(next(values, "")).encode("unicode_escape").decode()


def _names(node: ast.AST) -> tuple[Sequence[str], Sequence[str]]:
    """The names that an expression uses, and the names in it that may be of fixtures."""
    if isinstance(node, ast.Constant) and _FIXTURES.fullmatch(str(node.value)):
        return (), re.findall(r"\w+", str(node.value))
    if isinstance(node, ast.arg):
        return (), [node.arg]
    return ([node.id] if isinstance(node, ast.Name) else ()), ()


def _words(node: ast.AST) -> Iterator[str]:
    """The text of an expression that may be a path; `*` stands for a computed part."""
    word = node.value if isinstance(node, ast.Constant) else ""
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "*" for part in node.values)
        word = "".join(map(str, parts))
    if isinstance(word, str) and 1 < len(word) <= _MAX_PATH and "\n" not in word:
        yield word
