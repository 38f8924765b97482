"""A suite file into the model: every dialect, imports, evaluators, targets; whole, or with all its
faults."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.entries.reading import read_entry
from agentevals_action.evaluators.base import EvaluatorOptions, walk
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import BrokenSuite, Message, NamedFile, Suite, Test
from agentevals_action.suites import dialects, evaluators, messages
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.files.diagnostics import Findings, Unreadable
from agentevals_action.suites.files.positions import Map, plain
from agentevals_action.suites.files.validation_errors import Refused
from agentevals_action.suites.ids import Ids
from agentevals_action.suites.root import SuiteRoot, read_root
from agentevals_action.suites.schema_models import MAX_NAME, SuiteEntry
from agentevals_action.suites.sources import Source, Sources, Streamed
from agentevals_action.suites.target_use import find_targets
from agentevals_action.suites.tests import TestReader, Tests, read_source
from agentevals_action.suites.workspace import WorkspaceReader
from agentevals_action.system.paths import Folder

__all__ = ["Catalog", "load_suite"]


def load_suite(path: Path, root: Path, catalog: Catalog) -> Suite | BrokenSuite:
    """Reads the suite at `path` in the repository at `root`; a suite that has a fault comes back
    with all its faults instead.

    Nothing is raised for anything that can stand in a file, and nothing outside the repository is
    read."""
    root = root.resolve()
    file = path.parent.resolve() / path.name
    findings = Findings()
    if not file.is_relative_to(root) or not file.resolve().is_relative_to(root):
        named = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(path)
        findings.error(
            Location(named), "this suite leaves the repository", "keep it in the repository"
        )
        return BrokenSuite(named, findings.errors)
    folder = _NotingFolder(root, file.parent)
    try:
        suite = read_root(file, folder, findings)
    except Unreadable as error:
        findings.unreadable(error)
        return BrokenSuite(
            folder.relative(file), findings.errors, (NamedFile(folder.relative(file), "suite"),)
        )
    return _Loading(suite, folder, catalog, findings).load()


@dataclass(frozen=True)
class _NotingFolder(Folder):
    """A folder that remembers what was looked for in it: a suite is touched by the change that
    deletes a file which it names."""

    looked_for: dict[str, None] = field(default_factory=dict)

    def resolve(self, text: str) -> Path:
        """The path, noted."""
        path = super().resolve(text)
        self.looked_for[self.relative(path)] = None
        return path


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False  # what cannot be looked at may be a file as well


class _Loading:
    """The reading of one suite: what it found so far, and the files that it saw named."""

    def __init__(
        self, suite: SuiteRoot, folder: _NotingFolder, catalog: Catalog, findings: Findings
    ) -> None:
        self.suite = suite
        self.folder = folder
        self.catalog = catalog
        self.findings = findings
        self.files: dict[str, NamedFile] = {}
        self._note(suite.files)
        self.ids = Ids()
        self._criteria_told = False

    def load(self) -> Suite | BrokenSuite:
        """The suite, or its faults."""
        folded = dialects.fold_suite(self.suite.data, self.findings)
        entry = self._validated(folded.data)
        found = find_targets(
            self.folder, self.catalog, entry.execution.target, folded.data, self.findings
        )
        self._note(found.files)
        found.use.check_default(self.findings)
        workspaces = WorkspaceReader(self.folder)
        self._note(workspaces.read_suite(folded.data, self.findings))
        reader = TestReader(
            types=self.catalog.evaluators,
            folder=self.folder,
            messages=self._messages(folded.data),
            evaluators=evaluators.read_evaluators(
                folded.evaluators, self.catalog.evaluators, self.folder, self.findings, "suite"
            ),
            targets=found.use,
            workspaces=workspaces,
        )
        self._note(
            file
            for declared in reader.evaluators
            for inside in declared.every()
            for file in inside.files
        )
        self._note(messages.named_files(reader.messages, self.folder))
        name = entry.name or self._name()
        tests = self._tests(folded.data, reader)
        self._note(NamedFile(path, "target's command") for path in found.use.files())
        if self.catalog.strict:
            for warning in self.findings.warnings:
                self.findings.error(warning.location, warning.problem, warning.advice)
        if self.findings.errors:
            looked_for = (
                path for path in self.folder.looked_for if not _is_folder(self.folder.root / path)
            )
            self._note(NamedFile(path, "file") for path in looked_for)
            return BrokenSuite(
                self.suite.path,
                tuple(sorted(self.findings.errors)),
                tuple(self.files.values()),
                found.use.table,
            )
        return Suite(
            path=self.suite.path,
            name=name,
            root=self.folder.root,
            folder=self.folder.path,
            tests=tests,
            targets=found.use.table,
            files=tuple(self.files.values()),
            warnings=self.findings.warnings,
            metadata=plain(entry.metadata or {}),
            default_target=entry.execution.target,
            timeout_seconds=entry.execution.timeout_seconds or found.timeout_seconds,
            test_count=len(self.ids),
            used_targets=tuple(found.use.used),
        )

    def _note(self, files: Iterable[NamedFile]) -> None:
        for file in files:
            self.files.setdefault(file.path, file)
            # What a link leads to is what is read; a change of either touches the suite.
            behind = (self.folder.root / file.path).resolve()
            if behind.is_relative_to(self.folder.root):
                self.files.setdefault(
                    path := self.folder.relative(behind), NamedFile(path, file.role)
                )

    def _validated(self, data: Map) -> SuiteEntry:
        try:
            entry = read_entry(SuiteEntry, data)
        except Refused as error:
            self.findings.refused(error, data, "suite")
            # The fields that are right still tell what the tests are to be checked against.
            wrong = {refusal.steps[0] for refusal in error.refusals}
            return read_entry(
                SuiteEntry, {key: value for key, value in data.items() if key not in wrong}
            )
        if entry.name and "--" in entry.name:
            self.findings.warn(
                data.value_location("name"),
                f"the name `{entry.name}` has a doubled hyphen",
                "write single hyphens",
            )
        return entry

    def _name(self) -> str:
        # The root folder's name depends on where the repository was checked out, so a suite there
        # is named after its file.
        inside = self.folder.path != self.folder.root
        words = self.folder.path.name if inside else Path(self.suite.path).name.split(".")[0]
        slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
        slug = slug if slug[:1].isalpha() else f"suite-{slug}".rstrip("-")
        name = slug[:MAX_NAME].rstrip("-") if len(slug) > 1 else f"suite-{slug}"
        if self.suite.data.get("name") is None:
            self.findings.warn(
                self.suite.data.location,
                "this suite has no `name`",
                f"write `name: {name}`, which it is called by now",
            )
        return name

    def _messages(self, data: Map) -> tuple[Message, ...]:
        return (
            messages.read_content(data, "input", "user", self.folder, self.findings)
            if "input" in data
            else ()
        )

    def _tests(self, data: Map, reader: TestReader) -> Tests:
        found = Sources(self.findings)
        sources = self._sources(data, found)
        self._note(found.files)
        parts: list[tuple[Test, ...] | Streamed] = []
        for source in sources:
            kept: list[Test] = []
            streamed = isinstance(source, Streamed) and source.is_long()
            for test in read_source(reader, source, self.findings):
                self.ids.add(test.id)
                self._note(test.files)
                if not streamed:
                    kept.append(test)
                self._check_criteria(test)
            parts.append(source if isinstance(source, Streamed) and streamed else tuple(kept))
        tests = Tests(reader, tuple(parts))
        if doubtful := self.ids.doubtful():
            self._check_ids(test for test in tests.valid() if hash(test.id) in doubtful)
        return tests

    def _sources(self, data: Map, found: Sources) -> tuple[Source, ...]:
        if self.suite.rows is not None:
            return found.file(self.suite.rows, self.folder, data.location)
        if "tests" not in data:
            return ()
        return found.of(
            data["tests"], data.value_location("tests"), self.folder, data.written("tests")
        )

    def _check_ids(self, tests: Iterable[Test]) -> None:
        first: dict[str, Location] = {}
        for test in tests:
            if self.findings.are_enough(test.location):
                return
            taken = first.setdefault(test.id, test.location)
            if taken is not test.location:
                where = f"line {taken.line}" if taken.path == test.location.path else str(taken)
                self.findings.error(
                    test.location,
                    f"the id `{test.id}` is taken already, by {where}",
                    "give each test its own",
                )

    def _check_criteria(self, test: Test) -> None:
        if self._criteria_told or test.criteria is None:
            return
        options = [inside.options for evaluator in test.evaluators for inside in walk(evaluator)]
        if all(isinstance(option, EvaluatorOptions) and option.deterministic for option in options):
            self._criteria_told = True
            problem = f"`criteria` of the test `{test.id}` is graded by no evaluator"
            self.findings.warn(test.location, problem, "add `type: llm_judge` if it should be")
