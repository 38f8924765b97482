"""Loads a suite with its tests in their effective form, or all errors in it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentevals_action.evaluators import EVALUATORS
from agentevals_action.model.diagnostic import Diagnostic, Location, NamedFile
from agentevals_action.model.evaluator import Evaluator, with_own_names
from agentevals_action.model.messages import Message, named_files
from agentevals_action.model.suite import BrokenSuite, Suite, Test, make_name
from agentevals_action.model.workspace import Workspace
from agentevals_action.suites import texts
from agentevals_action.suites.documents.diagnostics import DiagnosticCollector, Unreadable
from agentevals_action.suites.documents.positions import Document, Positions
from agentevals_action.suites.documents.yaml_reader import read_yaml_object
from agentevals_action.suites.evaluators import gather_evaluators
from agentevals_action.suites.find_skills import SkillSuites
from agentevals_action.suites.reading import (
    EVALUATOR_LISTS,
    FileReader,
    WrittenTest,
    tests_key,
)
from agentevals_action.suites.skill_evals import named_fixtures
from agentevals_action.suites.sources import ROW_SUFFIXES, YAML_SUFFIXES, Sources
from agentevals_action.suites.target_use import Catalog, TargetUse
from agentevals_action.suites.texts import Environment
from agentevals_action.suites.variants import check_variants
from agentevals_action.suites.workspace import effective_workspace
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import is_present
from agentevals_action.validation.field_errors import describe_value
from agentevals_action.validation.file_model import list_fields

if TYPE_CHECKING:
    from agentevals_action.suites.tools import TestTools, ToolReader

#: The spellings of the field of the tests.
_TESTS = list_fields(Suite)["tests"]
_SIDECAR = "dataset"
_OBJECT = "write an object with `name` and `tests`"


def load_suite(path: Path, root: Path, catalog: Catalog) -> Suite | BrokenSuite:
    """Loads the suite at `path` in the repository at `root`; an invalid suite with all its errors.

    No content of a file raises an error, and nothing outside the repository is read."""
    root = root.resolve()
    file = path.parent.resolve() / path.name
    folder, diagnostics = Folder(root, file.parent), DiagnosticCollector()
    name = folder.relative(file) if file.is_relative_to(root) else str(path)
    try:
        written = _read_root(file, name, folder, diagnostics, catalog.skills)
    except Unreadable as error:
        diagnostics.unreadable(error)
        return BrokenSuite(name, diagnostics.errors, (NamedFile(name, "suite"),))
    reader = FileReader(
        root,
        folder.path,
        written.document.positions,
        diagnostics,
        known_imports=catalog.imports,
        git_files=catalog.files,
        packages=catalog.packages,
    )
    return _Loader(written, reader, catalog).load()


@dataclass(frozen=True)
class _Root:
    """The root of the suite at `path` (relative to the repository). `rows` is the JSONL file of its
    tests where they are not under `tests`, `files` are the files that were read."""

    path: str
    document: Document
    rows: Path | None
    files: tuple[NamedFile, ...]


def _read_root(
    file: Path, path: str, folder: Folder, diagnostics: DiagnosticCollector, skills: SkillSuites
) -> _Root:
    """Reads the file of a suite, or the sidecar of a JSONL file; Unreadable. The tests of a skill
    are the suite that an EVAL.yaml beside them would be."""

    def refuse(problem: str, advice: str) -> Unreadable:
        return Unreadable(Diagnostic(Location(path), problem, advice))

    suffix, named = file.suffix.lower(), NamedFile(path, "suite")
    if not (file.is_relative_to(folder.root) and file.resolve().is_relative_to(folder.root)):
        raise refuse("this suite leaves the repository", "keep it in the repository")
    if path in skills.folders:
        return _Root(path, Document(skills.suite_data(path), Positions(path)), None, (named,))
    if suffix not in (*YAML_SUFFIXES, *ROW_SUFFIXES):
        advice = "name a file that ends in .yaml, .yml or .jsonl"
        raise refuse("this is neither YAML nor JSONL", advice)
    if not is_present(file):
        raise refuse("there is no such suite", "name a file of the repository")
    if suffix in ROW_SUFFIXES:
        sidecar = _read_sidecar(file, folder, diagnostics)
        if sidecar is None:
            return _Root(path, Document({}, Positions(path)), file, (named,))
        return _Root(path, sidecar, file, (named, NamedFile(sidecar.positions.path, "sidecar")))
    document, rows = read_yaml_object(file, path, "suite", _OBJECT), file.with_suffix(".jsonl")
    is_inside = is_present(rows) and rows.resolve().is_relative_to(folder.root)
    has_rows = is_inside and tests_key(document.data) is None
    return _Root(path, document, rows if has_rows else None, (named,))


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
    """Loads one suite, and collects its errors and the files that it names. `data` are the fields
    of its root without the tests; `suite` has the valid fields, from which each test takes what it
    does not have itself."""

    def __init__(self, root: _Root, reader: FileReader, catalog: Catalog) -> None:
        self._root, self._reader, self._strict = root, reader, catalog.strict
        self._files: dict[str, NamedFile] = {}
        self._ids: dict[str, Location] = {}
        self._is_criteria_reported = False
        self._environment = Environment(catalog.environ, catalog.allowed)
        # The texts of tests are filled in when the tests are read.
        data = reader.without(root.document.data, *_TESTS)
        before = reader.diagnostics.error_count
        data = gather_evaluators(self._environment.fill(data, reader), reader)
        has_errors = reader.diagnostics.error_count > before
        self._data, of_suite = data, replace(reader, origin="suite")
        self._lists_evaluators = has_errors or any(map(data.get, EVALUATOR_LISTS))
        self._suite = suite = of_suite.validate(Suite, data) or Suite()
        if suite.evaluators and all(evaluator.compares for evaluator in suite.evaluators):
            self._lists_evaluators = False  # the tests still need an evaluator that scores
        self._workspace = effective_workspace(None, suite.workspace, reader)
        self._targets = TargetUse(reader, catalog, suite, root.document.location)
        self._tools: ToolReader | None = None

    def load(self) -> Suite | BrokenSuite:
        """The suite, or its errors."""
        reader, suite, targets = self._reader, self._suite, self._targets
        diagnostics = reader.diagnostics
        self._add_files(self._root.files)
        self._add_files(self._workspace.files if self._workspace else ())
        self._add_files(file for evaluator in _walk(suite.evaluators) for file in evaluator.files)
        self._add_files(named_files(suite.input, reader.root))
        tests = self._read_tests()
        seen = {"tests": tests, "targets": targets.table, "own_targets": tuple(targets.used)}
        variants = check_variants(suite.model_copy(update=seen), targets, diagnostics)
        self._add_files(targets.files())
        spaces = [self._workspace, *(test.workspace for test in tests)]
        skills = {skill.folder: skill for space in spaces if space for skill in space.installed}
        self._add_files(file for skill in skills.values() for file in skill.files)
        targets.warn_of_unused()
        name = suite.name or self._default_name()
        if "--" in suite.name:
            problem = f"the name `{suite.name}` has a doubled hyphen"
            reader.warn(suite.places["name"], problem, "write single hyphens")
        for warning in diagnostics.warnings if self._strict else ():
            diagnostics.error(warning.location, warning.problem, warning.advice)
        if diagnostics.errors:
            for path in reader.looked_up:
                if not os.path.isdir(reader.root / path):  # noqa: PTH112  # no error for a long path
                    self._add_files([NamedFile(path, "file")])
            files = tuple(self._files.values())
            return BrokenSuite(self._root.path, diagnostics.errors, files, targets.table)
        return suite.model_copy(
            update={
                **seen,
                "name": name,
                "path": self._root.path,
                "root": reader.root,
                "folder": reader.path,
                "variants": variants,
                "files": tuple(self._files.values()),
                "warnings": diagnostics.warnings,
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

    def _default_name(self) -> str:
        """The name of the folder, or at the repository's root of the file: the name of the root
        folder differs between checkouts."""
        folder = self._reader
        inside = folder.path != folder.root
        words = folder.path.name if inside else Path(self._root.path).name.split(".")[0]
        name = make_name(words)
        document = self._root.document
        if document.data.get("name") is None:
            advice = f"write `name: {name}`, which is its name now"
            folder.warn(document.location, "this suite has no `name`", advice)
        return name

    def _read_tests(self) -> tuple[Test, ...]:
        reader, written = self._reader, self._root.document.data
        start = reader.positions.of(written)
        data = reader.check_fields(Suite, reader.only(written, _TESTS))
        installed = [skill.name for skill in self._workspace.installed] if self._workspace else []
        sources = Sources(reader, installed[0] if len(installed) == 1 else "")
        entries = iter(tuple[WrittenTest]())
        if self._root.rows is not None:
            entries = sources.file(self._root.rows, reader, start)
        elif key := next(iter(data), None):
            entries = sources.entries(data[key], reader.positions.value(data, key), reader, key)
        elif "tests" not in reader.reported.get(start, ()):
            rows = Path(self._root.path).with_suffix(".jsonl").name
            advice = f"write a list of tests, or put them into {rows} next to this file"
            reader.error(start, "`tests` is missing", advice)
        tests: list[Test] = []
        for entry in entries:
            if reader.diagnostics.error_limit_reached(entry.location):
                break
            self._check_id(entry)
            test = self._read_test(entry)
            if test is not None:
                tests.append(test)
                self._add_files(test.files)
                self._check_criteria(test)
        self._add_files(sources.files)
        return tuple(tests)

    def _check_id(self, entry: WrittenTest) -> None:
        name = entry.data.get("id") if isinstance(entry.data, dict) else None
        if not isinstance(name, str):
            return
        location = entry.reader.positions.of(entry.data)
        first = self._ids.setdefault(name, location)
        if first is not location:
            where = f"on line {first.line}" if first.path == location.path else f"in {first}"
            self._reader.error(location, f"duplicate id `{name}` (first {where})")

    def _check_criteria(self, test: Test) -> None:
        is_scored = any(evaluator.reads_criteria() for evaluator in _walk(test.evaluators))
        if test.criteria and not is_scored and not self._is_criteria_reported:
            self._is_criteria_reported = True
            problem = f"no model scores `criteria` of the test `{test.id}`"
            advice = "write an `llm_judge`, or move the text to `description`"
            self._reader.warn(test.location, problem, advice)

    def _read_test(self, entry: WrittenTest) -> Test | None:
        """The effective test, None if it is invalid."""
        reader, data = entry.reader, entry.data
        if not isinstance(data, dict):
            problem = f"a test is {describe_value(data)}"
            reader.error(entry.location, problem, "write an object with `id` and `input`")
            return None
        errors_before = reader.diagnostics.error_count
        preceding = self._suite.input
        if not entry.is_literal:
            data = self._environment.fill(data, reader)
        if isinstance(variables := data.get("vars"), dict):
            data = texts.fill_vars(data, variables, reader)
            preceding = self._filled_input(variables)
        data = gather_evaluators(data, reader)
        test = reader.validate(Test, data)
        if test is None:
            return None
        skips = test.execution.skip_defaults
        own_evaluators = test.evaluators + ((test.rubrics,) if test.rubrics else ())
        evaluators = own_evaluators if skips else own_evaluators + self._suite.evaluators
        # An invalid evaluator is missing in `evaluators`, and its error is the only one.
        has_errors = reader.diagnostics.error_count > errors_before
        is_scored = any(not evaluator.compares for evaluator in evaluators)
        if not (is_scored or has_errors or (self._lists_evaluators and not skips)):
            evaluators += _default_evaluators(test, reader)
        evaluators = with_own_names(evaluators)
        agent = self._check_targets(test, evaluators, reader)
        question = self._with_files(test, data, reader)
        workspace = self._workspace
        if test.workspace:
            workspace = effective_workspace(test.workspace, self._suite.workspace, reader)
        if entry.fixtures:
            fresh = {"isolation": "per_test"}
            workspace = (workspace or Workspace()).model_copy(update=fresh)
        if workspace and workspace.skills:
            self._targets.check_skills(agent, test.location, workspace.installed)
        tools = self._read_tools(test, agent, reader)
        named = [
            *named_files((*question, *test.expected_output), reader.root),
            *(file for evaluator in _walk(own_evaluators) for file in evaluator.files),
            *(workspace.files if test.workspace and workspace else ()),
            *named_fixtures(entry.fixtures),
            *(tools.files if tools else ()),
        ]
        test = test.model_copy(
            update={
                "input": question if skips else preceding + question,
                "evaluators": evaluators,
                "workspace": workspace,
                "files": tuple(dict.fromkeys(named)),
                "fixtures": entry.fixtures,
                "tools": tools.tools if tools else (),
                "commands": tools.commands if tools else (),
            }
        )
        if reader.diagnostics.error_count == errors_before:
            _check_options(test, reader)
        return test if reader.diagnostics.error_count == errors_before else None

    def _read_tools(self, test: Test, agent: str | None, reader: FileReader) -> "TestTools | None":
        """The effective tools and commands of a test; None if it has none."""
        suite = self._suite
        if not (suite.tools or suite.commands or test.tools or test.commands):
            return None
        from agentevals_action.suites.tools import ToolReader  # jsonschema: only with tools

        if self._tools is None:
            self._tools = ToolReader(suite, self._reader)
        tools = self._tools.read(test, reader)
        self._targets.check_tools(agent, test.location, has_commands=bool(tools.commands))
        return tools

    def _with_files(
        self, test: Test, data: dict[str, Any], reader: FileReader
    ) -> tuple[Message, ...]:
        """The messages of a test, with `input_files` before the text that is its `input`."""
        shared = () if test.execution.skip_defaults else self._suite.input_files
        if reader.path != self._reader.path:  # the suite names its files from its own folder
            paths = [(block, block.path) for block in shared if block.path]
            shared = tuple(
                replace(block, value=f"/{reader.relative(path)}") for block, path in paths
            )
        files, question = shared + test.input_files, test.input
        if not (files or data.get("input_files")):
            return question
        key = next(key for key in list_fields(Test)["input"] if key in data)
        if not isinstance(data[key], str):
            problem = "`input_files` needs an `input` that is a text"
            advice = "write blocks of `type: file` in `input`"
            reader.error(reader.positions.value(data, key), problem, advice)
        return (replace(question[0], content=(*files, *question[0].blocks)),)

    def _filled_input(self, variables: dict[str, Any]) -> tuple[Message, ...]:
        """The suite's messages with the variables of a test."""
        fields = self._reader.only(self._data, list_fields(Suite)["input"])
        filled = self._reader.validate(Suite, texts.fill_vars(fields, variables, self._reader))
        return filled.input if filled else ()

    def _check_targets(
        self, test: Test, evaluators: Sequence[Evaluator], reader: FileReader
    ) -> str | None:
        """The name of the target that answers; adds the errors of the targets that it needs."""
        agent = self._targets.agent(test.target, test.execution.places.get("target"))
        for evaluator in _walk(evaluators):
            # `target` may be among its misspelled fields.
            if evaluator.needs_judge() and evaluator.location not in reader.reported:
                self._targets.judge(evaluator, agent)
        return agent


def _default_evaluators(test: Test, reader: FileReader) -> tuple[Evaluator, ...]:
    """The judge that scores `criteria` where nothing is declared; an error without criteria."""
    if test.criteria:
        judge = EVALUATORS["llm_judge"].model_validate({"name": "criteria"}, context=reader)
        return (judge.model_copy(update={"origin": "default", "location": test.location}),)
    problem = f"the test `{test.id}` has no evaluator that scores its answer"
    reader.error(test.location, problem, "write `criteria`, `rubrics` or evaluators")
    return ()


def _walk(evaluators: Iterable[Evaluator]) -> Iterator[Evaluator]:
    return (inside for evaluator in evaluators for inside in evaluator.walk())


def _check_options(test: Test, reader: FileReader) -> None:
    """Reports the options of evaluators that do not fit the test."""
    for evaluator in test.evaluators:
        for inner in evaluator.walk():
            for mismatch in inner.check(test):
                place: Location = mismatch.location or inner.location
                # An evaluator of the suite is reported at the test that it does not fit.
                location = test.location if evaluator.origin == "suite" else place
                reader.error(location, f"`{inner.name}`: {mismatch.problem}", mismatch.advice)
