"""One test of a suite: its entry into its effective form, with everything that is wrong with it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentevals_action.errors import InvalidInput
from agentevals_action.evaluators import base
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Message, NamedFile, Origin, Test, Workspace
from agentevals_action.suites import dialects
from agentevals_action.suites import evaluators as grading
from agentevals_action.suites import messages as content
from agentevals_action.suites.evaluators import Declared
from agentevals_action.suites.files import jsonl_reader
from agentevals_action.suites.files.diagnostics import Findings, Unreadable, kind
from agentevals_action.suites.files.positions import Map, plain
from agentevals_action.suites.schema_models import TestEntry
from agentevals_action.suites.sources import Listed, Source, Streamed
from agentevals_action.suites.target_use import TargetUse
from agentevals_action.suites.workspace import WorkspaceReader
from agentevals_action.system.paths import Folder


@dataclass(frozen=True)
class TestReader:
    """What the tests of one suite are read with: the types known, what the suite itself brings to
    each test, the targets."""

    __test__ = False  # pytest: no test case

    types: grading.Types
    folder: Folder
    messages: tuple[Message, ...]
    evaluators: tuple[Declared, ...]
    targets: TargetUse
    workspaces: WorkspaceReader

    def read(self, entry: Any, place: Location, folder: Folder, findings: Findings) -> Test | None:
        """One test, effective; None when `findings` say why not. `folder` is that of the file which
        holds it."""
        if not isinstance(entry, Map):
            findings.error(
                place, f"a test is {kind(entry)}", "write an object with `id` and `input`"
            )
            return None
        before = findings.error_count
        folded = dialects.fold_test(entry, findings)
        data = folded.data
        fields = findings.read(TestEntry, data, "test")
        asked = (
            content.read_content(data, "input", "user", folder, findings) if "input" in data else ()
        )
        expected = (
            content.read_content(data, "expected_output", "assistant", folder, findings)
            if "expected_output" in data
            else ()
        )
        own = grading.read_evaluators(folded.evaluators, self.types, folder, findings, "test")
        rubrics = (
            grading.read_rubrics(data, self.types, folder, findings) if "rubrics" in data else None
        )
        workspace = self.workspaces.of_test(data, folder, findings)
        if fields is None:
            return None
        groups = self._groups(fields, own, rubrics, entry.location)
        self._check_targets(fields, data, groups, findings)
        if findings.error_count == before and not any(group for _, group in groups):
            advice = "write `criteria`, `rubrics` or evaluators"
            findings.error(
                entry.location, f"there is nothing to grade the test `{fields.id}` by", advice
            )
        if findings.error_count > before:
            return None
        skip = fields.execution.skip_defaults
        test = Test(
            id=fields.id,
            location=entry.location,
            input=asked if skip else self.messages + asked,
            evaluators=grading.effective(groups, entry.location),
            criteria=_said(fields.criteria),
            expected_output=expected,
            target=fields.execution.target,
            timeout_seconds=fields.execution.timeout_seconds,
            description=fields.description,
            conversation_id=fields.conversation_id,
            note=fields.note,
            metadata=plain(fields.metadata or {}),
            files=_own_files(
                (*asked, *expected), (*own, *((rubrics,) if rubrics else ())), workspace, folder
            ),
            workspace=workspace,
        )
        _check_fit(test, findings)
        return test if findings.error_count == before else None

    def _groups(
        self, fields: TestEntry, own: Sequence[Declared], rubrics: Declared | None, place: Location
    ) -> tuple[tuple[Origin, Sequence[Declared]], ...]:
        suite = () if fields.execution.skip_defaults else self.evaluators
        if own or rubrics or suite:
            return (("test", own), ("rubrics", (rubrics,) if rubrics else ()), ("suite", suite))
        if _said(fields.criteria) is None:
            return ()
        return (("default", (grading.default_judge(self.types, self.folder, place),)),)

    def _check_targets(
        self,
        fields: TestEntry,
        data: Map,
        groups: Sequence[tuple[Origin, Sequence[Declared]]],
        findings: Findings,
    ) -> None:
        named = fields.execution.target
        agent = self.targets.agent(
            named, data["execution"].value_location("target") if named else None, findings
        )
        for _, group in groups:
            for inside in (inside for declared in group for inside in declared.every()):
                if inside.options.needs_judge():
                    self.targets.judge(inside, agent, findings)


def _check_fit(test: Test, findings: Findings) -> None:
    for evaluator in test.evaluators:
        for inner in base.walk(evaluator):
            for misfit in (
                inner.options.check(test)
                if isinstance(inner.options, base.EvaluatorOptions)
                else ()
            ):
                # What the suite asks of all its tests is amiss at the test that does not suit it.
                place = (
                    test.location
                    if evaluator.origin == "suite"
                    else misfit.location or inner.location
                )
                findings.error(place, f"`{inner.name}`: {misfit.problem}", misfit.advice)


def _said(criteria: str | None) -> str | None:
    return criteria if criteria and criteria.strip() else None


def _own_files(
    messages: tuple[Message, ...],
    evaluators: Sequence[Declared],
    workspace: Workspace | None,
    folder: Folder,
) -> tuple[NamedFile, ...]:
    named = [
        *content.named_files(messages, folder),
        *(file for declared in evaluators for inside in declared.every() for file in inside.files),
        *(workspace.files if workspace and workspace.own else ()),
    ]
    return tuple(dict.fromkeys(named))


def read_row(
    reader: TestReader, source: Streamed, text: str, line: int, findings: Findings
) -> Test | None:
    """One row of a JSONL file as a test; the row is read a second time, with the places of its
    parts, when something new is to be told."""
    place = Location(source.source, line)
    quick, thorough = Findings(), Findings()
    try:
        test = reader.read(
            jsonl_reader.read_row(text, source.source, line, places=False),
            place,
            source.folder,
            quick,
        )
        if quick.errors or not all(findings.has_told(warning) for warning in quick.warnings):
            test = reader.read(
                jsonl_reader.read_row(text, source.source, line, places=True),
                place,
                source.folder,
                thorough,
            )
    except Unreadable as error:
        thorough.unreadable(error)
        test = None
    findings.add_row(thorough)
    return test


@dataclass(frozen=True)
class Tests:
    """All tests of a suite that was found to be whole, in order, again and again; rows of JSONL are
    read anew each time."""

    __test__ = False  # pytest: no test case

    reader: TestReader
    parts: tuple[tuple[Test, ...] | Streamed, ...]

    def __iter__(self) -> Iterator[Test]:
        """The tests; InvalidInput when a JSONL file was changed for the worse since it was
        checked."""
        for part in self.parts:
            if isinstance(part, Streamed):
                yield from self._stream(part)
            else:
                yield from part

    def valid(self) -> Iterator[Test]:
        """The tests that can be read, also while what is wrong with the others is still being
        told."""
        for part in self.parts:
            yield from (
                read_source(self.reader, part, Findings()) if isinstance(part, Streamed) else part
            )

    def _stream(self, source: Streamed) -> Iterator[Test]:
        findings = Findings()
        try:
            for text, line in source.rows():
                test = read_row(self.reader, source, text, line, findings)
                if test is None:
                    break
                yield test
        except Unreadable as error:
            findings.unreadable(error)
        if findings.errors:
            raise InvalidInput(
                f"{source.source} was changed while it was in use",
                "run again",
                [str(diagnostic) for diagnostic in findings.errors],
            )


def read_source(reader: TestReader, source: Source, findings: Findings) -> Iterator[Test]:
    """Every valid test of a source; what is wrong with the others goes to `findings`, which may be
    enough before the end."""
    return (
        _read_list(reader, source, findings)
        if isinstance(source, Listed)
        else _read_rows(reader, source, findings)
    )


def _read_list(reader: TestReader, source: Listed, findings: Findings) -> Iterator[Test]:
    for entry, place in source.entries:
        if findings.are_enough(place):
            return
        if test := reader.read(entry, place, source.folder, findings):
            yield test


def _read_rows(reader: TestReader, source: Streamed, findings: Findings) -> Iterator[Test]:
    empty = True
    try:
        for text, line in source.rows():
            empty = False
            if findings.are_enough(Location(source.source, line)):
                return
            if test := read_row(reader, source, text, line, findings):
                yield test
    except Unreadable as error:
        findings.unreadable(error)
        return
    except OSError as error:
        findings.error(
            Location(source.source),
            f"this file cannot be read ({error.strerror})",
            "make it readable",
        )
        return
    if empty:
        findings.error(
            Location(source.source), "this file holds no test", "write one JSON object a row"
        )
