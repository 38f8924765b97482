"""Reads the imports of a Python package with `ast`."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One import: `target` is the dotted name of a module, of the package's own with a leading dot;
    `late` if it is inside a function, `comment` the rest of its line after `#`."""

    target: str
    line: int
    late: bool
    comment: str


@dataclass(frozen=True)
class Module:
    """One source file; `name` is dotted and relative to the package (`model.suite`). The file
    `__init__` of a folder has that name (`model.__init__`)."""

    name: str
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def folder(self) -> str:
        """The dotted folder, empty at the root."""
        return self.name.rpartition(".")[0]

    def own(self) -> Iterator[tuple[Import, str]]:
        """The imports of the package's own modules, with their names."""
        return ((found, found.target[1:]) for found in self.imports if found.target.startswith("."))

    def foreign(self) -> Iterator[tuple[Import, str]]:
        """The other imports, with the name of the library."""
        return (
            (found, found.target.partition(".")[0])
            for found in self.imports
            if not found.target.startswith(".")
        )


def read_package(root: Path) -> tuple[Module, ...]:
    """Every module of a package."""
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts): path
        for path in sorted(root.rglob("*.py"))
    }
    return tuple(_read(name, path, root.name, paths) for name, path in paths.items())


def find_cycles(graph: Mapping[str, set[str]]) -> list[str]:
    """The cycles of a graph as `a -> b -> a`, each once."""
    found: dict[frozenset[str], str] = {}
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            ring = trail[trail.index(name) :]
            found.setdefault(frozenset(ring), " -> ".join((*ring, name)))
        elif name not in done:
            for other in sorted(graph.get(name, ())):
                walk(other, (*trail, name))
            done.add(name)

    for name in sorted(graph):
        walk(name, ())
    return sorted(found.values())


def _read(name: str, path: Path, package: str, known: Mapping[str, Path]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    imports = tuple(
        Import(_resolve(target, package, known), line, late, lines[line - 1].partition("#")[2])
        for target, line, late in _find_imports(tree, late=False)
    )
    return Module(name, tree, imports)


def _find_imports(node: ast.AST, late: bool) -> Iterator[tuple[str, int, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, child.lineno, late) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: imports are absolute"
            yield from (
                (f"{child.module}:{alias.name}", child.lineno, late) for alias in child.names
            )
        elif not isinstance(child, ast.expr):  # an expression contains no import
            function = ast.FunctionDef | ast.AsyncFunctionDef
            yield from _find_imports(child, late or isinstance(child, function))


def _resolve(target: str, package: str, known: Mapping[str, Path]) -> str:
    """`package.folder:name` is a module of the folder, or a name in a module or in `__init__`."""
    module, _, name = target.partition(":")
    if module.partition(".")[0] != package:
        return module
    own = module.removeprefix(package).removeprefix(".")
    for candidate in (f"{own}.{name}".strip("."), own):
        if candidate in known:
            return f".{candidate}"
        if f"{candidate}.__init__" in known:
            return f".{candidate}.__init__"
    return ".__init__"
