"""The root of a suite: a YAML file, or a JSONL file with the sidecar that carries its name and
shared evaluators."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.suite import NamedFile
from agentevals_action.suites import dialects
from agentevals_action.suites.files.diagnostics import Findings, Unreadable, kind
from agentevals_action.suites.files.positions import Map
from agentevals_action.suites.files.yaml_reader import read_yaml_file
from agentevals_action.suites.sources import ROW_SUFFIXES, YAML_SUFFIXES
from agentevals_action.system.paths import Folder

_SIDECAR = "dataset"


@dataclass(frozen=True)
class SuiteRoot:
    """The root of the suite at `path` (relative to the repository); `rows` is the JSONL file of its
    tests where they do not stand under `tests`, `files` what was read."""

    path: str
    data: Map
    rows: Path | None
    files: tuple[NamedFile, ...]


def read_root(file: Path, folder: Folder, findings: Findings) -> SuiteRoot:
    """Reads the file of a suite and finds what stands beside it; Unreadable when nothing can be
    used."""
    path = folder.relative(file)
    own = NamedFile(path, "suite")
    if file.suffix.lower() in ROW_SUFFIXES:
        if not file.is_file():
            raise Unreadable(
                Diagnostic(
                    Location(path), "there is no such suite", "name a file of the repository"
                )
            )
        sidecar = _sidecar(file, folder, findings)
        if sidecar is None:
            return SuiteRoot(path, Map(path, (1, 1)), file, (own,))
        return SuiteRoot(path, sidecar, file, (own, NamedFile(sidecar.source, "sidecar")))
    if file.suffix.lower() not in YAML_SUFFIXES:
        raise Unreadable(
            Diagnostic(
                Location(path),
                "this is neither YAML nor JSONL",
                "name a file that ends in .yaml, .yml or .jsonl",
            )
        )
    data = _read_map(file, path)
    if _tests_key(data) is not None:
        return SuiteRoot(path, data, None, (own,))
    beside = file.with_suffix(".jsonl")
    if beside.is_file() and beside.resolve().is_relative_to(folder.root):
        return SuiteRoot(path, data, beside, (own,))
    findings.error(
        data.location,
        "`tests` is missing",
        f"write a list of tests, or put them into {beside.name} beside this file",
    )
    return SuiteRoot(path, data, None, (own,))


def _tests_key(data: Map) -> str | None:
    return next((key for key in data if dialects.SUITE.canonical.get(key) == "tests"), None)


def _read_map(file: Path, path: str) -> Map:
    try:
        data: Any = read_yaml_file(file, path)
    except FileNotFoundError:
        raise Unreadable(
            Diagnostic(Location(path), "there is no such suite", "name a file of the repository")
        ) from None
    except OSError as error:
        raise Unreadable(
            Diagnostic(
                Location(path), f"this file cannot be read ({error.strerror})", "make it readable"
            )
        ) from None
    if isinstance(data, Map):
        return data
    place = Location(path) if data is None else getattr(data, "location", Location(path))
    raise Unreadable(
        Diagnostic(place, f"this suite is {kind(data)}", "write an object with `name` and `tests`")
    )


def _sidecar(file: Path, folder: Folder, findings: Findings) -> Map | None:
    for suffix in YAML_SUFFIXES:
        for stem in dict.fromkeys((file.stem, _SIDECAR)):
            candidate = file.with_name(stem + suffix)
            if not candidate.is_file() or not candidate.resolve().is_relative_to(folder.root):
                continue
            data = _read_map(candidate, folder.relative(candidate))
            key = _tests_key(data)
            if key is None or _names(data[key], file, folder):
                return data
            if stem == file.stem:
                problem = f"`{key}` stands here, and {file.name} is a suite of its own beside it"
                findings.error(
                    data.key_location(key),
                    problem,
                    f"take `{key}` out, or name {file.name} in it and run this file",
                )
                return data
    return None


def _names(value: Any, file: Path, folder: Folder) -> bool:
    try:
        return isinstance(value, str) and folder.resolve(value) == file.resolve()
    except ValueError:
        return False
