"""The Python packages that the distributions of a repository declare, and the folders that a
program must search first to find them in its own tree, whatever is installed."""

import os
import re
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from pydantic import BaseModel, Field

from agentevals_action.system.files.regular_files import read_regular

#: The files that declare a distribution.
MANIFESTS = ("pyproject.toml", "setup.py")
_BACKENDS = ("setuptools", "hatch", "poetry", "uv", "pdm", "maturin", "scikit-build")
#: The fields in which build backends name a package, or the folder of packages.
_FIELD = re.compile("package-dir|packages|where|sources|from|module-root|python-source")
#: The same in the files of setuptools.
_SETUP = re.compile(r"(?:\bwhere\b|package_dir|find_packages(?!\(\s*where))[\s={:'\"(]*([\w./-]+)")
#: Names beside a package that are no part of it, as setuptools has them. Many distributions install
#: some of them by mistake.
_BESIDE = re.compile(
    "ci|bin|docs?|documentation|news|changelog|(unit_?)?tests?|examples?|scripts|tools|utils?|build"
    "|benchmarks?|exercises?|htmlcov|setup|conftest|toxfile|noxfile|tasks|fabfile|conanfile|manage"
)
_DEPTH = 3  # of namespace packages
_MAX_BYTES = 8 * 1024 * 1024  # of a manifest, or of the list of a distribution's files
#: Programs that run a command in the environment of a project.
_MANAGERS = frozenset({"uv", "poetry", "pdm", "hatch"})
_WORD = re.compile(r"[^\s\0]{1,200}")


class _Manifest(BaseModel):
    project: dict[str, Any] = {}
    tool: dict[str, dict[str, Any]] = {}
    build: Any = Field(default=None, validation_alias="build-system")


@dataclass(frozen=True)
class PackageFolder:
    """A folder with `modules` of a distribution: the dotted names of its packages and modules. Its
    manifest is in the folder `project`; both are relative to the tree. The name of the
    `distribution` is empty if unknown."""

    distribution: str
    project: Path
    path: Path
    modules: frozenset[str]


def find_packages(
    root: Path, files: Iterable[str], others: Collection[Path]
) -> tuple[PackageFolder, ...]:
    """The folders with packages of the distributions that these files of a tree declare, without
    distributions in the folders `others`."""
    projects = sorted({Path(path).parent for path in files if Path(path).name in MANIFESTS})
    kept = (path for path in projects if not any((root / path).is_relative_to(o) for o in others))
    return tuple(folder for project in kept for folder in _find_in(root, project))


def _find_in(root: Path, project: Path) -> Iterator[PackageFolder]:
    data = _read_manifest(root / project / MANIFESTS[0])
    table = data.project or data.tool.get("poetry", {})
    if not (table or data.build or (root / project / MANIFESTS[1]).is_file()):
        return
    texts = [text for name in _BACKENDS for text in _named(data.tool.get(name))]
    for name in ("setup.cfg", MANIFESTS[1]):
        with suppress(OSError, ValueError):
            texts += _SETUP.findall(read_regular(root / project / name, _MAX_BYTES).decode())
    named = {Path(os.path.normpath(project / text)) for text in texts}
    inside = {path for path in named if ".." not in path.parts and (root / path).is_dir()}
    declared = {path.parent if _is_package(root / path) else path for path in inside}
    folders = sorted(declared) or [project / "src", project]
    pairs = [(path, _modules(root / path, is_flat=path == project)) for path in folders]
    for path, modules in [pair for pair in pairs if pair[1]][: None if declared else 1]:
        name = _normalized(str(table.get("name", "")))
        yield PackageFolder(name, project, path, frozenset(modules))


def _read_manifest(path: Path) -> _Manifest:
    try:
        return _Manifest.model_validate(tomllib.loads(read_regular(path, _MAX_BYTES).decode()))
    except FileNotFoundError:
        return _Manifest()
    except (OSError, ValueError):  # it may declare anything
        return _Manifest.model_validate({"build-system": True})


def _named(value: Any, field: str = "") -> Iterator[str]:
    """The paths in the fields of a table, as `{"" = "src"}` and `[{include = …, from = "src"}]`."""
    if isinstance(value, str) and _FIELD.fullmatch(field):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _named(item, field)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _named(item, name or field)


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def _modules(folder: Path, *, is_flat: bool = False, depth: int = _DEPTH) -> set[str]:
    """The dotted names of the packages and modules in a folder; of one with a manifest
    (`is_flat`), its packages or else modules, without what is beside them."""
    _, folders, files = next(os.walk(folder), ("", [], []))
    inside = {name for name in folders if name.isidentifier()}
    packages = {name for name in inside if _is_package(folder / name)}
    modules = {name[:-3] for name in files if name.endswith(".py") and name[:-3].isidentifier()}
    if is_flat:
        kept = [
            {name for name in names if not _BESIDE.fullmatch(name)} for names in (packages, modules)
        ]
        return kept[0] or kept[1]
    for name in inside - packages if depth else ():
        modules |= {f"{name}.{inner}" for inner in _modules(folder / name, depth=depth - 1)}
    return packages | modules


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def own_packages(
    candidates: Sequence[PackageFolder], tree: Path, start: Path, words: Iterable[str], path: str
) -> tuple[Sequence[Path], Sequence[str]]:
    """The folders that a program searches first, and the names of the modules of its repository. It
    belongs to the folder `start` of a tree; `words` are those of its command, with absolute paths,
    `path` is its PATH.

    The nearest distribution comes first. A folder is left out if it hides an installed module of
    others, if it is not near and another distribution has one of its modules, or if it lacks
    modules which its installation in this tree has, because a build makes them."""
    sites = _site_packages(words, tree, start, path)
    is_inside = any(site.is_relative_to(tree) for site in sites)
    counts = Counter(name for package in candidates for name in package.modules)
    near = {package: start.is_relative_to(tree / package.project) for package in candidates}
    folders, names = [], set[str]()
    ordered = sorted(candidates, key=lambda folder: -near[folder] * (len(folder.project.parts) + 1))
    for package in ordered:
        folder = tree / package.path
        files = {file for site in sites for file in _list_files(package.distribution, site)}
        installed = {file.parts[0].removesuffix(".py") for file in files}
        visible = {name for name in _modules(folder, depth=0) if not _BESIDE.fullmatch(name)}
        others = {name for name in visible - installed if _is_foreign(name, package, sites)}
        modules = package.modules - others
        packages = {name.partition(".")[0] for name in modules}
        is_built = is_inside and any(
            file.suffix in (".py", ".so") and not (folder / file).exists()
            for file in files
            if file.parts[0] in packages
        )
        is_clear = near[package] or all(counts[name] == 1 for name in modules)
        if is_clear and not is_built and not others:
            folders.append(folder)
        names |= modules
    return folders, sorted(names)


def _is_foreign(name: str, package: PackageFolder, sites: Iterable[Path]) -> bool:
    """Whether a module is the standard library's, or one of another installed distribution."""
    paths = [path for site in sites for path in (site / name / "__init__.py", site / f"{name}.py")]
    is_installed = bool(package.distribution) and any(path.is_file() for path in paths)
    return name in sys.stdlib_module_names or is_installed


def _site_packages(words: Iterable[str], tree: Path, start: Path, path: str) -> Sequence[Path]:
    """The folders with installed packages of the interpreter that a command starts: that of the
    environment in which its program is, that of the project for `uv run`, or `python3`."""
    names = [word for word in words if _WORD.fullmatch(word)]
    programs = [word if "/" in word else shutil.which(word, path=path) for word in names]
    folders = [Path(program).parent.parent for program in programs if program]
    if any(PurePath(name).name in _MANAGERS for name in names):
        above = (folder for folder in (start, *start.parents) if folder.is_relative_to(tree))
        folders += [folder / ".venv" for folder in above]
    python = Path(shutil.which("python3", path=path) or sys.executable)
    environments = (
        folder for folder in (*folders, python.parent.parent) if (folder / "pyvenv.cfg").is_file()
    )
    prefix = next(environments, python.resolve().parent.parent)
    return [*prefix.glob("lib/python3*/site-packages"), *prefix.glob("lib/python3*/dist-packages")]


def _list_files(distribution: str, site: Path) -> Iterator[PurePath]:
    """The files of an installed distribution, from the folder with installed packages."""
    for record in site.glob("*.dist-info/RECORD") if distribution else ():
        name = record.parent.name.partition("-")[0]
        if _normalized(name) == distribution and record.is_file():
            lines = read_regular(record, _MAX_BYTES).decode("utf-8", "replace").splitlines()
            yield from (PurePath(line.partition(",")[0]) for line in lines if line)
