"""Reads a Python package with `ast`: which module imports what, where, and how large its parts
are."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """One imported module, dotted; `late` inside a function, `typing` under TYPE_CHECKING."""

    name: str
    line: int
    late: bool
    typing: bool


@dataclass(frozen=True)
class Module:
    """One source file; `name` is dotted and relative to the package (`model.suite`), a package's
    own is its folder's."""

    name: str
    path: Path
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def lines(self) -> int:
        return len(self.path.read_text(encoding="utf-8").splitlines())

    def functions(self) -> Iterator[Function]:
        return (
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )


def paths(folder: Path) -> dict[str, Path]:
    """The file of every module of a package by the module's name, a package's own being its
    folder's."""
    return {_name(path, folder): path for path in sorted(folder.rglob("*.py"))}


def read_package(folder: Path) -> dict[str, Module]:
    """Every module of a package by its name; imports of the package's own modules are relative to
    it, with a leading dot (`.globs`)."""
    known = paths(folder)
    return {name: _module(name, path, folder.name, known) for name, path in known.items()}


def cycles(graph: Mapping[str, set[str]]) -> list[str]:
    """Each import cycle as `a -> b -> a`, once."""
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


def _name(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _module(name: str, path: Path, package: str, known: Mapping[str, Path]) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = tuple(
        Import(_relative(target, package, known), line, late, typing)
        for target, line, late, typing in _imports(tree, False, False)
    )
    return Module(name, path, tree, imports)


def _imports(node: ast.AST, late: bool, typing: bool) -> Iterator[tuple[str, int, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, child.lineno, late, typing) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: imports are absolute"
            yield from (
                (f"{child.module}:{alias.name}", child.lineno, late, typing)
                for alias in child.names
            )
        else:
            inner_late = late or isinstance(
                child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
            )
            inner_typing = typing or (
                isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
            )
            yield from _imports(child, inner_late, inner_typing)


def _relative(target: str, package: str, known: Mapping[str, Path]) -> str:
    module, _, attribute = target.partition(":")
    if module != package and not module.startswith(f"{package}."):
        return module
    own = module.removeprefix(package).removeprefix(".")
    inner = f"{own}.{attribute}".strip(".") if attribute else own
    return f".{inner if inner in known else own}"
