"""Reads the tests of a suite into their effective form, with all errors in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentevals_action.evaluators import base
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Message, Origin, Test
from agentevals_action.suites import dialects, texts
from agentevals_action.suites.evaluators import Declared, EvaluatorReader, default_judge, effective
from agentevals_action.suites.files.diagnostics import Findings, Unreadable
from agentevals_action.suites.files.jsonl_reader import read_row
from agentevals_action.suites.files.positions import Items, Map, plain
from agentevals_action.suites.files.validation_errors import describe_value
from agentevals_action.suites.models import messages, schema_models
from agentevals_action.suites.sources import Rows, Source
from agentevals_action.suites.target_use import TargetUse
from agentevals_action.suites.texts import Environment
from agentevals_action.suites.workspace import WorkspaceReader
from agentevals_action.system.files.paths import Folder

Groups = Sequence[tuple[Origin, Sequence[Declared]]]


@dataclass(frozen=True)
class ReadTest:
    """A test as it was read: its id where there is one, and the test if it is valid."""

    id: str | None
    location: Location
    test: Test | None


@dataclass(frozen=True)
class TestReader:
    """Reads the tests of one suite: what the suite adds to each test."""

    __test__ = False  # pytest: not a test case

    folder: Folder
    suite: Map
    input_files: tuple[str, ...]
    environment: Environment
    preceding: tuple[Message, ...]
    evaluators: tuple[Declared, ...]
    targets: TargetUse
    workspaces: WorkspaceReader

    def read_source(self, source: Source, findings: Findings) -> Iterator[ReadTest]:
        """Every test of a source; its errors go to `findings`, which may be enough before the
        end."""
        if isinstance(source, Rows):
            yield from self._read_rows(source, findings)
            return
        for entry, location in source.entries:
            if findings.are_enough(location):
                return
            yield self._read(entry, location, source.folder, findings)

    def _read_rows(self, source: Rows, findings: Findings) -> Iterator[ReadTest]:
        line = 0
        try:
            for text, line in source.texts():
                location = Location(source.source, line)
                if findings.are_enough(location):
                    return
                row, read = Findings(), ReadTest(None, location, None)
                try:
                    entry = read_row(text, source.source, line)
                    read = self._read(entry, location, source.folder, row)
                except Unreadable as error:
                    row.unreadable(error)
                findings.add(row, once=True)
                yield read
        except Unreadable as error:
            findings.unreadable(error)
            return
        if not line:
            start = Location(source.source)
            findings.error(start, "this file contains no test", "write one JSON object a row")

    def _read(self, entry: Any, location: Location, folder: Folder, findings: Findings) -> ReadTest:
        if not isinstance(entry, Map):
            advice = "write an object with `id` and `input`"
            findings.error(location, f"a test is {describe_value(entry)}", advice)
            return ReadTest(None, location, None)
        test = self._read_object(self.environment.fill(entry, findings), folder, findings)
        name = entry.get("id")
        return ReadTest(name if isinstance(name, str) else None, entry.location, test)

    def _read_object(self, entry: Map, folder: Folder, findings: Findings) -> Test | None:
        before = findings.error_count
        preceding = self.preceding
        if isinstance(values := entry.get("vars"), Map):
            entry = texts.fill_vars(entry, values, findings)
            preceding = self._filled_messages(values, findings)
        data = dialects.fold(entry, dialects.TEST, findings)
        messages.with_files(data, self._input_files(data, folder), findings)
        fields = findings.read(schema_models.Test, data, "test", folder)
        reader = EvaluatorReader(folder, findings, "test")
        own = reader.read(dialects.declared_evaluators(entry, findings))
        rubrics = reader.read_rubrics(data) if "rubrics" in data else None
        if fields is None:
            if isinstance(path := data.get("workspace"), str) and path:
                # The errors of that file are reported together with those of the test.
                self.workspaces.of_test(path, data, folder, findings)
            return None
        workspace = self.workspaces.of_test(fields.workspace, data, folder, findings)
        criteria = fields.criteria if fields.criteria and fields.criteria.strip() else None
        skips = fields.execution.skip_defaults
        groups: Groups = (
            ("test", own),
            ("rubrics", (rubrics,) if rubrics else ()),
            ("suite", () if skips else self.evaluators),
        )
        if criteria and not any(group for _, group in groups):
            groups = (("default", (default_judge(self.folder, entry.location),)),)
        self._check_targets(fields, data, groups, findings)
        if findings.error_count == before and not any(group for _, group in groups):
            problem = f"the test `{fields.id}` has no evaluator"
            advice = "write `criteria`, `rubrics` or evaluators"
            findings.error(entry.location, problem, advice)
        if findings.error_count > before:
            return None
        asked = tuple(message.message() for message in fields.input)
        expected = tuple(message.message() for message in fields.expected_output)
        declared = (*own, *((rubrics,) if rubrics else ()))
        files = [
            *messages.named_files((*asked, *expected), folder),
            *(
                file
                for one in declared
                for inside in one.every()
                for file in inside.evaluator.files
            ),
            *(workspace.files if workspace and workspace.own else ()),
        ]
        test = Test(
            id=fields.id,
            location=entry.location,
            input=asked if skips else preceding + asked,
            evaluators=effective(groups, entry.location),
            criteria=criteria,
            expected_output=expected,
            target=fields.execution.target,
            timeout_seconds=fields.execution.timeout_seconds,
            description=fields.description,
            conversation_id=fields.conversation_id,
            note=fields.note,
            metadata=plain(fields.metadata or {}),
            files=tuple(dict.fromkeys(files)),
            workspace=workspace,
        )
        _check_options(test, findings)
        return test if findings.error_count == before else None

    def _input_files(self, data: Map, folder: Folder) -> tuple[str, ...]:
        """The paths in `input_files` of the suite and of a test, as written in the test's file."""
        own = data.get("input_files")
        own_paths = (
            tuple(own) if isinstance(own, Items) and all(isinstance(p, str) for p in own) else ()
        )
        execution = data.get("execution")
        if isinstance(execution, Map) and execution.get("skip_defaults") is True:
            return own_paths
        shared = self.input_files
        if folder.path != self.folder.path:
            shared = tuple(f"/{self.folder.relative(self.folder.resolve(path))}" for path in shared)
        return shared + own_paths

    def _filled_messages(self, values: Map, findings: Findings) -> tuple[Message, ...]:
        """The suite's messages with the variables of a test."""
        data = dialects.fold(self.suite, dialects.SUITE, Findings())
        filled = texts.fill_vars(data, values, findings)
        only_input = filled.without(*(key for key in filled if key != "input"))
        fields = findings.read(schema_models.Suite, only_input, "suite", self.folder)
        return tuple(message.message() for message in fields.input) if fields else ()

    def _check_targets(
        self, fields: schema_models.Test, data: Map, groups: Groups, findings: Findings
    ) -> None:
        named = fields.execution.target
        location = data["execution"].value_location("target") if named else None
        agent = self.targets.agent(named, location, findings)
        for declared in (inside for _, group in groups for one in group for inside in one.every()):
            if declared.evaluator.options.needs_judge():
                self.targets.judge(declared, agent, findings)


def _check_options(test: Test, findings: Findings) -> None:
    """Reports the options of evaluators that do not fit the test."""
    for evaluator in test.evaluators:
        for inner in base.walk(evaluator):
            for mismatch in inner.options.check(test):
                own = mismatch.location or inner.location
                # An evaluator of the suite is reported at the test that it does not fit.
                location = test.location if evaluator.origin == "suite" else own
                findings.error(location, f"`{inner.name}`: {mismatch.problem}", mismatch.advice)
