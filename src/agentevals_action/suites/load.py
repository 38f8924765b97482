"""Loads a suite: every dialect, imports, evaluators and targets, into the model or all errors."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from agentevals_action.evaluators.base import walk
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.suite import BrokenSuite, NamedFile, Suite, Test
from agentevals_action.model.validation.field_errors import field_errors
from agentevals_action.suites import dialects
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.evaluators import EvaluatorReader
from agentevals_action.suites.files.diagnostics import Findings, Unreadable
from agentevals_action.suites.files.positions import Map, plain
from agentevals_action.suites.files.yaml_reader import read_yaml_map
from agentevals_action.suites.models import schema_models
from agentevals_action.suites.models.messages import named_files
from agentevals_action.suites.sources import ROW_SUFFIXES, YAML_SUFFIXES, Source, Sources
from agentevals_action.suites.target_use import find_targets
from agentevals_action.suites.tests import ReadTest, TestReader
from agentevals_action.suites.texts import Environment
from agentevals_action.suites.workspace import WorkspaceReader
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import is_present

_SIDECAR = "dataset"
_OBJECT = "write an object with `name` and `tests`"


def load_suite(path: Path, root: Path, catalog: Catalog) -> Suite | BrokenSuite:
    """Loads the suite at `path` in the repository at `root`; an invalid suite with all its errors.

    No content of a file raises an error, and nothing outside the repository is read."""
    root = root.resolve()
    file = path.parent.resolve() / path.name
    findings = Findings()
    if not file.is_relative_to(root) or not file.resolve().is_relative_to(root):
        named = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(path)
        problem = "this suite leaves the repository"
        findings.error(Location(named), problem, "keep it in the repository")
        return BrokenSuite(named, findings.errors)
    folder = _RecordingFolder(root, file.parent)
    try:
        suite = _read_root(file, folder, findings)
    except Unreadable as error:
        findings.unreadable(error)
        name = folder.relative(file)
        return BrokenSuite(name, findings.errors, (NamedFile(name, "suite"),))
    return _Loader(suite, folder, catalog, findings).load()


@dataclass(frozen=True)
class _RecordingFolder(Folder):
    """A folder that records the paths that were looked up in it: a change that deletes a file
    affects the suites that name it. Each file is read once."""

    looked_up: dict[str, None] = field(default_factory=dict)
    #: The files that were read: many tests name the same.
    contents: dict[Path, bytes] = field(default_factory=dict)

    def read(self, path: Path, name: str, limit: int) -> bytes:
        """The contents of a file, read once."""
        if path not in self.contents:
            self.contents[path] = super().read(path, name, limit)
        return self.contents[path]

    def resolve(self, text: str) -> Path:
        """The path, recorded."""
        path = super().resolve(text)
        self.looked_up[self.relative(path)] = None
        return path


@dataclass(frozen=True)
class _Root:
    """The root of the suite at `path` (relative to the repository). `rows` is the JSONL file of its
    tests where they are not under `tests`, `files` are the files that were read."""

    path: str
    data: Map
    rows: Path | None
    files: tuple[NamedFile, ...]


def _read_root(file: Path, folder: Folder, findings: Findings) -> _Root:
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
        sidecar = _read_sidecar(file, folder, findings)
        if sidecar is None:
            return _Root(path, Map(path, (1, 1)), file, (own,))
        return _Root(path, sidecar, file, (own, NamedFile(sidecar.source, "sidecar")))
    data = read_yaml_map(file, path, "suite", _OBJECT)
    other_format = Findings()
    if dialects.refuse_other_format(data, other_format):
        raise Unreadable(*other_format.errors)
    rows = file.with_suffix(".jsonl")
    if dialects.tests_key(data) is not None:
        return _Root(path, data, None, (own,))
    if is_present(rows) and rows.resolve().is_relative_to(folder.root):
        return _Root(path, data, rows, (own,))
    advice = f"write a list of tests, or put them into {rows.name} next to this file"
    findings.error(data.location, "`tests` is missing", advice)
    return _Root(path, data, None, (own,))


def _read_sidecar(file: Path, folder: Folder, findings: Findings) -> Map | None:
    for suffix in YAML_SUFFIXES:
        for stem in dict.fromkeys((file.stem, _SIDECAR)):
            candidate = file.with_name(stem + suffix)
            if not is_present(candidate) or not candidate.resolve().is_relative_to(folder.root):
                continue
            data = read_yaml_map(candidate, folder.relative(candidate), "suite", _OBJECT)
            key = dialects.tests_key(data)
            if key is None:
                return data
            try:
                if isinstance(data[key], str) and folder.resolve(data[key]) == file.resolve():
                    return data
            except ValueError:
                pass  # not a path of the repository
            if stem == file.stem:
                problem = f"`{key}` is here, and {file.name} next to it is a suite of its own"
                advice = f"take `{key}` out, or name {file.name} in it and run this file"
                findings.error(data.key_location(key), problem, advice)
                return data
    return None


class _Loader:
    """Loads one suite, and collects its errors and the files that it names."""

    def __init__(
        self, suite: _Root, folder: _RecordingFolder, catalog: Catalog, findings: Findings
    ) -> None:
        self.suite = suite
        self.folder = folder
        self.catalog = catalog
        self.findings = findings
        self.files: dict[str, NamedFile] = {}
        self._add_files(suite.files)
        self._ids: dict[str, Location] = {}
        self._is_criteria_reported = False

    def load(self) -> Suite | BrokenSuite:
        """The suite, or its errors."""
        findings = self.findings
        environment = Environment(self.catalog.environ, self.catalog.allowed)
        # The texts of tests are filled in when the tests are read.
        written = self.suite.data
        with_tests = [key for key in written if dialects.SUITE.canonical.get(key) == "tests"]
        own = environment.fill(written.without(*with_tests), findings)
        self.suite = replace(self.suite, data=written.replaced_by(own))
        data = dialects.fold(self.suite.data, dialects.SUITE, findings)
        fields = self._validate(data)
        wanted = self._wanted_target(fields, data)
        targets = find_targets(self.folder, self.catalog, wanted, data, findings)
        self._add_files(targets.files)
        targets.check_default(findings)
        workspaces = WorkspaceReader(self.folder)
        self._add_files(workspaces.read_suite(fields.workspace, data, findings))
        evaluators = EvaluatorReader(self.folder, findings, "suite").read(
            dialects.declared_evaluators(self.suite.data, findings)
        )
        for declared in evaluators:
            for inside in declared.every():
                self._add_files(inside.evaluator.files)
        messages = tuple(message.message() for message in fields.input)
        self._add_files(named_files(messages, self.folder))
        reader = TestReader(
            self.folder,
            own,
            fields.input_files,
            environment,
            messages,
            evaluators,
            targets,
            workspaces,
        )
        name = fields.name or self._default_name()
        tests = self._read_tests(data, reader)
        self._add_files(targets.target_files())
        if self.catalog.strict:
            for warning in findings.warnings:
                findings.error(warning.location, warning.problem, warning.advice)
        if findings.errors:
            root = self.folder.root
            for path in self.folder.looked_up:
                if not os.path.isdir(root / path):  # noqa: PTH112  # no error for a long path
                    self._add_files([NamedFile(path, "file")])
            errors, files = tuple(sorted(findings.errors)), tuple(self.files.values())
            return BrokenSuite(self.suite.path, errors, files, targets.table)
        return Suite(
            path=self.suite.path,
            name=name,
            root=self.folder.root,
            folder=self.folder.path,
            tests=tests,
            targets=targets.table,
            files=tuple(self.files.values()),
            warnings=findings.warnings,
            metadata=plain(fields.metadata or {}),
            default_target=wanted and wanted[0],
            timeout_seconds=fields.execution.timeout_seconds,
            used_targets=tuple(targets.used),
        )

    def _add_files(self, files: Iterable[NamedFile]) -> None:
        for file in files:
            self.files.setdefault(file.path, file)
            # A change of a link, or of its target, touches the suite.
            behind = (self.folder.root / file.path).resolve()
            if behind.is_relative_to(self.folder.root):
                path = self.folder.relative(behind)
                self.files.setdefault(path, NamedFile(path, file.role))

    def _validate(self, data: Map) -> schema_models.Suite:
        model = schema_models.Suite
        try:
            suite = model.model_validate(data, context=self.folder)
        except ValidationError as error:
            self.findings.invalid(error, data, "suite")
            # The tests are checked against the valid fields.
            valid = data.without(*(str(one.steps[0]) for one in field_errors(error, data)))
            return model.model_validate(valid, context=self.folder)
        if suite.name and "--" in suite.name:
            problem = f"the name `{suite.name}` has a doubled hyphen"
            self.findings.warn(data.value_location("name"), problem, "write single hyphens")
        return suite

    def _wanted_target(self, fields: schema_models.Suite, data: Map) -> tuple[str, Location] | None:
        """The target that the suite names, with the location of its name."""
        if fields.target and fields.execution.target not in (None, fields.target):
            problem = "`target` and `execution.target` are the same field and differ"
            self.findings.error(data.key_location("target"), problem, "keep one of them")
        if fields.execution.target:
            return fields.execution.target, data["execution"].value_location("target")
        return (fields.target, data.value_location("target")) if fields.target else None

    def _default_name(self) -> str:
        """The name of the folder, or at the repository's root of the file: the name of the root
        folder differs between checkouts."""
        inside = self.folder.path != self.folder.root
        words = self.folder.path.name if inside else Path(self.suite.path).name.split(".")[0]
        slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
        slug = slug if slug[:1].isalpha() else f"suite-{slug}".rstrip("-")
        most = schema_models.MAX_NAME
        name = slug[:most].rstrip("-") if len(slug) > 1 else f"suite-{slug}"
        if self.suite.data.get("name") is None:
            advice = f"write `name: {name}`, which is its name now"
            self.findings.warn(self.suite.data.location, "this suite has no `name`", advice)
        return name

    def _read_tests(self, data: Map, reader: TestReader) -> tuple[Test, ...]:
        findings, sources = self.findings, Sources(self.findings)
        found: tuple[Source, ...] = ()
        if self.suite.rows is not None:
            found = sources.file(self.suite.rows, self.folder, data.location)
        elif "tests" in data:
            location = data.value_location("tests")
            found = sources.of(data["tests"], location, self.folder, data.spelling("tests"))
        self._add_files(sources.files)
        tests: list[Test] = []
        for read in (each for source in found for each in reader.read_source(source, findings)):
            self._check_id(read)
            if read.test is not None:
                tests.append(read.test)
                self._add_files(read.test.files)
                self._check_criteria(read.test)
        return tuple(tests)

    def _check_id(self, read: ReadTest) -> None:
        if read.id is None:
            return
        first = self._ids.setdefault(read.id, read.location)
        if first is not read.location:
            where = f"line {first.line}" if first.path == read.location.path else str(first)
            problem = f"the id `{read.id}` is taken by {where}"
            self.findings.error(read.location, problem, "give each test its own")

    def _check_criteria(self, test: Test) -> None:
        # Where other evaluators score the test, criteria are usually documentation.
        if not self.catalog.strict or self._is_criteria_reported or test.criteria is None:
            return
        options = [inside.options for evaluator in test.evaluators for inside in walk(evaluator)]
        if all(one.deterministic for one in options):
            self._is_criteria_reported = True
            problem = f"no evaluator scores `criteria` of the test `{test.id}`"
            self.findings.warn(test.location, problem, "add `type: llm_judge` to score it")
