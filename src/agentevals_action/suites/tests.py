"""Reads the tests of a suite into their effective form, with all errors in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.files import NamedFile
from agentevals_action.model.messages import Message, named_files
from agentevals_action.model.suite import Evaluator, Origin, Suite, Test
from agentevals_action.model.validation.field_errors import describe_value
from agentevals_action.model.validation.file_model import fields_of
from agentevals_action.suites import texts
from agentevals_action.suites.evaluators import (
    EvaluatorReader,
    declared_evaluators,
    default_judge,
    resolve_evaluators,
)
from agentevals_action.suites.reading import FileReader
from agentevals_action.suites.sources import Entry
from agentevals_action.suites.target_use import TargetUse
from agentevals_action.suites.texts import Environment
from agentevals_action.suites.workspace import WorkspaceReader

Groups = Sequence[tuple[Origin, Sequence[Evaluator]]]


@dataclass(frozen=True)
class TestReader:
    """Reads the tests of one suite: what the suite adds to each test. `written` is the root of the
    suite, `reader` that of its file, `suite` the valid fields, with its evaluators, of which
    `are_valid` states whether none is missing because of an error."""

    __test__ = False  # pytest: not a test case

    reader: FileReader
    written: dict[str, Any]
    suite: Suite
    are_valid: bool
    environment: Environment
    targets: TargetUse
    workspaces: WorkspaceReader

    def read(self, entry: Entry) -> Test | None:
        """The test, None if it is invalid; its errors are those of the entry's reader."""
        reader, data = entry.reader, entry.data
        if not isinstance(data, dict):
            problem = f"a test is {describe_value(data)}"
            reader.error(entry.location, problem, "write an object with `id` and `input`")
            return None
        before = reader.diagnostics.error_count
        data = self.environment.fill(data, reader)
        test = self._read(data, reader, before)
        return test if reader.diagnostics.error_count == before else None

    def _read(self, data: dict[str, Any], reader: FileReader, before: int) -> Test | None:
        preceding = self.suite.input
        if isinstance(values := data.get("vars"), dict):
            data = texts.fill_vars(data, values, reader)
            preceding = self._filled_input(values)
        data = self._with_input_files(data, reader)
        valid = reader.validate(Test, data)
        own = EvaluatorReader(reader, "test").read(declared_evaluators(data, reader))
        has_rubrics = "rubrics" in data
        rubrics = EvaluatorReader(reader, "rubrics").read_rubrics(data) if has_rubrics else ()
        workspace = self.workspaces.of_test(data, reader)
        if valid is None:
            return None
        criteria = valid.criteria if valid.criteria and valid.criteria.strip() else None
        skips = valid.execution.skip_defaults
        groups: Groups = (
            ("test", own),
            ("rubrics", rubrics),
            ("suite", () if skips else self.suite.evaluators),
        )
        # An invalid evaluator is missing in these, and its error is the only one.
        are_known = reader.diagnostics.error_count == before and (skips or self.are_valid)
        if are_known and not any(group for _, group in groups):
            if criteria:
                groups = (("default", (default_judge(self.reader, valid.location),)),)
            else:
                problem = f"the test `{valid.id}` has no evaluator"
                advice = "write `criteria`, `rubrics` or evaluators"
                reader.error(valid.location, problem, advice)
        self._check_targets(valid, data, groups, reader)
        if reader.diagnostics.error_count > before:
            return None
        files: list[NamedFile] = [
            *named_files((*valid.input, *valid.expected_output), reader.root),
            *(file for each in (*own, *rubrics) for inside in each.walk() for file in inside.files),
            *(workspace.files if workspace and workspace.own else ()),
        ]
        test = valid.model_copy(
            update={
                "input": valid.input if skips else preceding + valid.input,
                "evaluators": resolve_evaluators(groups, valid.location),
                "criteria": criteria,
                "workspace": workspace,
                "files": tuple(dict.fromkeys(files)),
            }
        )
        _check_options(test, reader)
        return test

    def _with_input_files(self, data: dict[str, Any], reader: FileReader) -> dict[str, Any]:
        """The test with blocks of `type: file` before the text that is its `input`."""
        key = next((key for key in fields_of(Test)["input"] if key in data), "input")
        text, paths = data.get(key), self._input_files(data, reader)
        if not paths or text is None:
            return data
        if not isinstance(text, str):
            problem = "`input_files` needs an `input` that is a text"
            advice = "write blocks of `type: file` in `input`"
            reader.error(reader.positions.value(data, key), problem, advice)
            return data
        content = [{"type": "file", "value": path} for path in paths]
        content.append({"type": "text", "value": text})
        filled = {**data, key: [{"role": "user", "content": content}]}
        reader.positions.copy(data, filled)
        return filled

    def _input_files(self, data: dict[str, Any], reader: FileReader) -> tuple[str, ...]:
        """The paths in `input_files` of the suite and of a test, as written in the test's file."""
        own = data.get("input_files")
        are_paths = isinstance(own, list) and all(isinstance(path, str) for path in own)
        own_paths = tuple(own) if are_paths and own else ()
        execution = data.get("execution")
        if isinstance(execution, dict) and execution.get("skip_defaults") is True:
            return own_paths
        shared, folder = self.suite.input_files, self.reader
        if reader.path != folder.path:
            shared = tuple(f"/{folder.relative(folder.resolve(path))}" for path in shared)
        return shared + own_paths

    def _filled_input(self, values: dict[str, Any]) -> tuple[Message, ...]:
        """The suite's messages with the variables of a test."""
        reader = self.reader
        own = reader.only(self.written, fields_of(Suite)["input"])
        valid = reader.validate(Suite, texts.fill_vars(own, values, reader))
        return valid.input if valid else ()

    def _check_targets(
        self, test: Test, data: dict[str, Any], groups: Groups, reader: FileReader
    ) -> None:
        location = reader.positions.value(data["execution"], "target") if test.target else None
        agent = self.targets.agent(test.target, location)
        for evaluator in (
            inside for _, group in groups for each in group for inside in each.walk()
        ):
            if evaluator.needs_judge():
                self.targets.judge(evaluator, agent)


def _check_options(test: Test, reader: FileReader) -> None:
    """Reports the options of evaluators that do not fit the test."""
    for evaluator in test.evaluators:
        for inner in evaluator.walk():
            for mismatch in inner.check(test):
                own: Location = mismatch.location or inner.location
                # An evaluator of the suite is reported at the test that it does not fit.
                location = test.location if evaluator.origin == "suite" else own
                reader.error(location, f"`{inner.name}`: {mismatch.problem}", mismatch.advice)
