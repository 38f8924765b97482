"""Loads a suite: every dialect, imports, evaluators and targets, into the model or all errors."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.files import NamedFile
from agentevals_action.model.messages import named_files
from agentevals_action.model.suite import MAX_NAME, BrokenSuite, Suite, Test
from agentevals_action.suites.diagnostics import DiagnosticCollector, Unreadable
from agentevals_action.suites.evaluators import EvaluatorReader, declared_evaluators
from agentevals_action.suites.positions import Document, Positions
from agentevals_action.suites.reading import FileReader, tests_key
from agentevals_action.suites.sources import ROW_SUFFIXES, YAML_SUFFIXES, Entry, Sources
from agentevals_action.suites.target_use import Catalog, TargetUse
from agentevals_action.suites.tests import TestReader
from agentevals_action.suites.texts import Environment
from agentevals_action.suites.workspace import WorkspaceReader
from agentevals_action.suites.yaml_reader import read_yaml_object
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import is_present

_SIDECAR = "dataset"
_OBJECT = "write an object with `name` and `tests`"


def load_suite(path: Path, root: Path, catalog: Catalog) -> Suite | BrokenSuite:
    """Loads the suite at `path` in the repository at `root`; an invalid suite with all its errors.

    No content of a file raises an error, and nothing outside the repository is read."""
    root = root.resolve()
    file = path.parent.resolve() / path.name
    diagnostics = DiagnosticCollector()
    if not file.is_relative_to(root) or not file.resolve().is_relative_to(root):
        named = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(path)
        problem = "this suite leaves the repository"
        diagnostics.error(Location(named), problem, "keep it in the repository")
        return BrokenSuite(named, diagnostics.errors)
    folder = Folder(root, file.parent)
    try:
        suite = _read_root(file, folder, diagnostics)
    except Unreadable as error:
        diagnostics.unreadable(error)
        name = folder.relative(file)
        return BrokenSuite(name, diagnostics.errors, (NamedFile(name, "suite"),))
    reader = FileReader(
        root,
        folder.path,
        suite.document.positions,
        diagnostics,
        known_imports=catalog.imports,
    )
    return _Loader(suite, reader, catalog).load()


@dataclass(frozen=True)
class _Root:
    """The root of the suite at `path` (relative to the repository). `rows` is the JSONL file of its
    tests where they are not under `tests`, `files` are the files that were read."""

    path: str
    document: Document
    rows: Path | None
    files: tuple[NamedFile, ...]


def _read_root(file: Path, folder: Folder, diagnostics: DiagnosticCollector) -> _Root:
    """Reads the file of a suite, or the sidecar of a JSONL file; Unreadable."""
    path = folder.relative(file)
    own = NamedFile(path, "suite")
    if file.suffix.lower() not in (*YAML_SUFFIXES, *ROW_SUFFIXES):
        advice = "name a file that ends in .yaml, .yml or .jsonl"
        raise Unreadable(Diagnostic(Location(path), "this is neither YAML nor JSONL", advice))
    if not file.exists():
        problem = "there is no such suite"
        raise Unreadable(Diagnostic(Location(path), problem, "name a file of the repository"))
    if file.suffix.lower() in ROW_SUFFIXES:
        sidecar = _read_sidecar(file, folder, diagnostics)
        if sidecar is None:
            return _Root(path, Document({}, Positions(path)), file, (own,))
        return _Root(path, sidecar, file, (own, NamedFile(sidecar.positions.path, "sidecar")))
    document = read_yaml_object(file, path, "suite", _OBJECT)
    rows = file.with_suffix(".jsonl")
    if tests_key(document.data) is not None:
        return _Root(path, document, None, (own,))
    if is_present(rows) and rows.resolve().is_relative_to(folder.root):
        return _Root(path, document, rows, (own,))
    return _Root(path, document, None, (own,))


def _read_sidecar(file: Path, folder: Folder, diagnostics: DiagnosticCollector) -> Document | None:
    for suffix in YAML_SUFFIXES:
        for stem in dict.fromkeys((file.stem, _SIDECAR)):
            candidate = file.with_name(stem + suffix)
            if not is_present(candidate) or not candidate.resolve().is_relative_to(folder.root):
                continue
            document = read_yaml_object(candidate, folder.relative(candidate), "suite", _OBJECT)
            data = document.data
            key = tests_key(data)
            if key is None:
                return document
            with suppress(ValueError):  # no path of the repository: it does not name this file
                if isinstance(data[key], str) and folder.resolve(data[key]) == file.resolve():
                    return document
            if stem == file.stem:
                problem = f"`{key}` is here, and {file.name} next to it is a suite of its own"
                advice = f"take `{key}` out, or name {file.name} in it and run this file"
                diagnostics.error(document.positions.key(data, key), problem, advice)
                return document
    return None


class _Loader:
    """Loads one suite, and collects its errors and the files that it names."""

    def __init__(self, suite: _Root, reader: FileReader, catalog: Catalog) -> None:
        self._root, self._reader, self._catalog = suite, reader, catalog
        self._files: dict[str, NamedFile] = {}
        self._add_files(suite.files)
        self._ids: dict[str, Location] = {}
        self._is_criteria_reported = False

    def load(self) -> Suite | BrokenSuite:
        """The suite, or its errors."""
        reader, diagnostics = self._reader, self._reader.diagnostics
        environment = Environment(self._catalog.environ, self._catalog.allowed)
        # The texts of tests are filled in when the tests are read.
        written = self._root.document.data
        key = tests_key(written)
        data = environment.fill(reader.without(written, *([key] if key else [])), reader)
        fields = {**data, key: written[key]} if key else data
        reader.positions.copy(written, fields)
        suite = self._validate(fields)
        start, named = reader.positions.of(data), self._target_location(suite, data)
        targets = TargetUse(reader, self._catalog, start, suite.default_target, named)
        workspaces = WorkspaceReader()
        self._add_files(workspaces.read_suite(data, reader))
        before = diagnostics.error_count
        evaluators = EvaluatorReader(reader, "suite").read(declared_evaluators(data, reader))
        are_valid = diagnostics.error_count == before
        for evaluator in evaluators:
            self._add_files(file for inside in evaluator.walk() for file in inside.files)
        self._add_files(named_files(suite.input, reader.root))
        suite = suite.model_copy(
            update={"name": suite.name or self._default_name(), "evaluators": evaluators}
        )
        tests = self._read_tests(
            written,
            key,
            TestReader(reader, data, suite, are_valid, environment, targets, workspaces),
        )
        self._add_files(targets.files())
        targets.warn_of_unused()
        if self._catalog.strict:
            for warning in diagnostics.warnings:
                diagnostics.error(warning.location, warning.problem, warning.advice)
        if diagnostics.errors:
            for path in reader.looked_up:
                if not os.path.isdir(reader.root / path):  # noqa: PTH112  # no error for a long path
                    self._add_files([NamedFile(path, "file")])
            files = tuple(self._files.values())
            return BrokenSuite(self._root.path, diagnostics.errors, files, targets.table)
        return suite.model_copy(
            update={
                "path": self._root.path,
                "root": reader.root,
                "folder": reader.path,
                "tests": tests,
                "targets": targets.table,
                "files": tuple(self._files.values()),
                "warnings": diagnostics.warnings,
                "used_targets": tuple(targets.used),
            }
        )

    def _add_files(self, files: Iterable[NamedFile]) -> None:
        root = self._reader.root
        for file in files:
            if file.path in self._files:
                continue
            self._files[file.path] = file
            # A change of a link, or of its target, touches the suite.
            behind = (root / file.path).resolve()
            if behind.is_relative_to(root):
                path = self._reader.relative(behind)
                self._files.setdefault(path, NamedFile(path, file.role))

    def _validate(self, data: dict[str, Any]) -> Suite:
        """The fields of the root; if some are invalid, the others, by which tests are checked."""
        reader = self._reader
        try:
            suite = Suite.model_validate(data, context=reader)
        except ValidationError as error:
            invalid = reader.report(error, data, Suite.noun)
            return Suite.model_validate(reader.without_values(data, invalid), context=reader)
        if "--" in suite.name:
            problem = f"the name `{suite.name}` has a doubled hyphen"
            reader.warn(reader.positions.value(data, "name"), problem, "write single hyphens")
        return suite

    def _target_location(self, suite: Suite, data: dict[str, Any]) -> Location | None:
        """Where the suite names its target."""
        positions, named = self._reader.positions, suite.execution.target
        if suite.target and named not in (None, suite.target):
            problem = "`target` and `execution.target` are the same field and differ"
            self._reader.error(positions.key(data, "target"), problem, "keep one of them")
        if named:
            return positions.value(data["execution"], "target")
        return positions.value(data, "target") if suite.target else None

    def _default_name(self) -> str:
        """The name of the folder, or at the repository's root of the file: the name of the root
        folder differs between checkouts."""
        folder = self._reader
        inside = folder.path != folder.root
        words = folder.path.name if inside else Path(self._root.path).name.split(".")[0]
        slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
        slug = slug if slug[:1].isalpha() else f"suite-{slug}".rstrip("-")
        name = slug[:MAX_NAME].rstrip("-") if len(slug) > 1 else f"suite-{slug}"
        document = self._root.document
        if document.data.get("name") is None:
            advice = f"write `name: {name}`, which is its name now"
            folder.warn(document.location, "this suite has no `name`", advice)
        return name

    def _read_tests(
        self, data: dict[str, Any], key: str | None, reader: TestReader
    ) -> tuple[Test, ...]:
        own, sources = self._reader, Sources(self._reader)
        entries: Iterable[Entry] = ()
        if self._root.rows is not None:
            entries = sources.file(self._root.rows, own, own.positions.of(data))
        elif key is not None:
            entries = sources.entries(data[key], own.positions.value(data, key), own, key)
        elif "tests" not in own.misspelled.get(own.positions.of(data), ()):
            rows = Path(self._root.path).with_suffix(".jsonl").name
            advice = f"write a list of tests, or put them into {rows} next to this file"
            own.error(own.positions.of(data), "`tests` is missing", advice)
        tests: list[Test] = []
        for entry in entries:
            if own.diagnostics.error_limit_reached(entry.location):
                break
            self._check_id(entry)
            test = reader.read(entry)
            if test is not None:
                tests.append(test)
                self._add_files(test.files)
                self._check_criteria(test)
        self._add_files(sources.files)
        return tuple(tests)

    def _check_id(self, entry: Entry) -> None:
        name = entry.data.get("id") if isinstance(entry.data, dict) else None
        if not isinstance(name, str):
            return
        location = entry.reader.positions.of(entry.data)
        first = self._ids.setdefault(name, location)
        if first is not location:
            where = f"on line {first.line}" if first.path == location.path else f"in {first}"
            self._reader.error(location, f"duplicate id `{name}` (first {where})")

    def _check_criteria(self, test: Test) -> None:
        if self._is_criteria_reported or test.criteria is None:
            return
        evaluators = [inside for evaluator in test.evaluators for inside in evaluator.walk()]
        if not any(each.reads_criteria() for each in evaluators):
            self._is_criteria_reported = True
            problem = f"no model scores `criteria` of the test `{test.id}`"
            advice = "write an `llm_judge`, or move the text to `description`"
            self._reader.warn(test.location, problem, advice)
