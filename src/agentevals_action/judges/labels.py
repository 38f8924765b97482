"""Reads and writes the files of labels beside suites."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.errors import InvalidInput
from agentevals_action.evaluators.judges.llm_judge import LlmJudge
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.formatting import join_choices, list_paths
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.evaluator import Evaluator, gate_path
from agentevals_action.model.judge import Label, Labels, is_label_file
from agentevals_action.model.result import SampleResult
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.suites.checkout import Checkout
from agentevals_action.suites.documents.diagnostics import DiagnosticCollector, Unreadable
from agentevals_action.suites.documents.json_reader import read_row
from agentevals_action.suites.documents.positions import Document
from agentevals_action.suites.documents.yaml_reader import MAX_BYTES, read_yaml, read_yaml_file
from agentevals_action.suites.documents.yaml_writer import write_yaml
from agentevals_action.suites.find import find_suites
from agentevals_action.suites.reading import FileReader
from agentevals_action.suites.sources import ROW_SUFFIXES, read_rows
from agentevals_action.system.files.regular_files import is_present, read_regular
from agentevals_action.system.files.tree_files import write_file
from agentevals_action.targets.calls.description import digest
from agentevals_action.validation.field_errors import describe_value, did_you_mean

_FORM = "write a list of labels, each with a hyphen in front"


def answer_digest(sample: SampleResult) -> str:
    """The digest (hexadecimal SHA-256) of all that judges read of an answer: its messages with
    their tool calls, and the changes of files."""
    return digest([list(sample.output_messages), sample.file_changes or ""], is_ordered=False)


def text_digest(text: str) -> str:
    """The digest of an answer that is one message with this text, and nothing else."""
    return digest([[{"role": "assistant", "content": text}], ""], is_ordered=False)


def list_judges(test: Test) -> Mapping[str, LlmJudge | Rubric]:
    """The models that judge the answers to a test, by their paths in results: the names down to
    each, joined by `/`."""
    return {
        path: evaluator
        for own in test.evaluators
        for path, evaluator in _with_paths(own, "")
        if isinstance(evaluator, LlmJudge | Rubric)
    }


def _with_paths(evaluator: Evaluator, above: str) -> Iterator[tuple[str, Evaluator]]:
    path = gate_path(above, evaluator.name) if above else evaluator.name
    yield path, evaluator
    for child in evaluator.children():
        yield from _with_paths(child, path)


def read_labels(checkout: Checkout, suites: Sequence[Suite | BrokenSuite]) -> Labels:
    """The labels of these suites, in the files beside them, with every error of these files. Labels
    of other suites in the same files are not among them."""
    reader = _LabelReader(checkout, suites)
    valid: list[Label] = []
    for folder in dict.fromkeys(PurePosixPath(suite.path).parent for suite in suites):
        for file in sorted((checkout.root / folder).iterdir()):
            if is_label_file(file.name) and is_present(file):
                valid += reader.read(folder / file.name)
    return Labels(tuple(valid), reader.diagnostics.errors)


class _LabelReader:
    """Reads the files of labels of suites, and collects their errors."""

    def __init__(self, checkout: Checkout, suites: Sequence[Suite | BrokenSuite]) -> None:
        self.diagnostics = DiagnosticCollector()
        self._checkout, self._suites = checkout, {suite.path: suite for suite in suites}
        self._tests = {
            suite.path: {test.id: test for test in suite.tests}
            for suite in suites
            if isinstance(suite, Suite)
        }

    def read(self, path: PurePosixPath) -> Iterator[Label]:
        """The valid labels of a file."""
        folder = self._folder(path)
        for document, data, location in self._entries(path):
            if self.diagnostics.error_limit_reached(location):
                break
            if not isinstance(data, dict):
                problem = f"a label is {describe_value(data)}"
                advice = "write an object with `test`, `answer`, `label` and `who`"
                self.diagnostics.error(location, problem, advice)
                continue
            before = self.diagnostics.error_count
            label = folder.of(document, folder.path).validate(Label, data)
            if label and self.diagnostics.error_count == before:
                yield from self._resolve(label, path)

    def _folder(self, path: PurePosixPath) -> FileReader:
        root = self._checkout.root
        return FileReader(root, root / path.parent, diagnostics=self.diagnostics)

    def _entries(self, path: PurePosixPath) -> Iterator[tuple[Document, Any, Location]]:
        """The entries of a file, each with its document and its location."""
        source = str(path)
        try:
            file = self._folder(path).file(f"/{source}")
            if path.suffix in ROW_SUFFIXES:
                for text, line in read_rows(file, source):
                    yield from self._row(text, source, line)
                return
            document = read_yaml_file(file, source)
        except ValueError as error:
            advice = "replace it by a regular file"
            self.diagnostics.error(Location(source), str(error), advice)
            return
        except Unreadable as error:
            self.diagnostics.unreadable(error)
            return
        entries = document.data or []
        if not isinstance(entries, list):
            problem = f"this file of labels is {describe_value(entries)}"
            self.diagnostics.error(document.location, problem, _FORM)
            return
        for index, data in enumerate(entries):
            yield document, data, document.positions.value(entries, index)

    def _row(self, text: str, source: str, line: int) -> Iterator[tuple[Document, Any, Location]]:
        try:
            document = read_row(text, source, line)
        except Unreadable as error:
            self.diagnostics.unreadable(error)
        else:
            yield document, document.data, document.location

    def _resolve(self, label: Label, file: PurePosixPath) -> Iterator[Label]:
        """The label with its suite, judge and digest; none, with the error, if the suite does not
        have them, and none of a suite that is not loaded, or has errors."""
        suite = label.suite or self._find_suite(label, file)
        if suite and suite not in self._suites:
            try:
                self._folder(file).file(f"/{suite}")
            except ValueError as error:
                advice = did_you_mean(suite, self._suites, "write its path from the root")
                self._error(label, "suite", str(error), advice)
        if suite not in self._tests:
            return
        test = self._tests[suite].get(label.test)
        if test is None:
            problem = f"{suite} has no test `{label.test}`"
            advice = did_you_mean(label.test, self._tests[suite], "correct it or remove the label")
            self._error(label, "test", problem, advice)
        elif path := self._find_judge(label, test):
            digest = label.digest or text_digest(label.answer or "")
            yield label.model_copy(update={"suite": suite, "evaluator": path, "digest": digest})

    def _find_suite(self, label: Label, file: PurePosixPath) -> str:
        """The suite of the same name beside a file, or the only one; empty, with the error, if
        there are several."""
        checkout, folder = self._checkout, file.parent
        patterns, below = checkout.settings.suites, checkout.root / folder
        found = find_suites(checkout.root, below, patterns, checkout.files).paths
        beside = sorted(
            path for path in {*found, *self._suites} if PurePosixPath(path).parent == folder
        )
        stem = file.name.rpartition(".labels.")[0]
        named = [path for path in beside if PurePosixPath(path).stem == stem]
        if len(chosen := named or beside) == 1:
            return chosen[0]
        problem = f"this label has no `suite`, and there are {list_paths(chosen)} beside its file"
        self.diagnostics.error(label.location, problem, "write the `suite`")
        return ""

    def _find_judge(self, label: Label, test: Test) -> str:
        """The path of the judge of a label; empty, with the error, if the test has no such judge,
        or the judge no such criterion."""
        judges = list_judges(test)
        known = join_choices(judges)
        if not judges:
            problem = f"no model judges the answers to the test `{test.id}`"
            self._error(label, "test", problem, "remove the label")
        elif not label.evaluator and len(judges) > 1:
            problem = f"this label has no `evaluator`, and the test `{test.id}` has several judges"
            self.diagnostics.error(label.location, problem, f"write {known}")
        elif label.evaluator and label.evaluator not in judges:
            problem = f"the test `{test.id}` has no judge `{label.evaluator}`"
            advice = did_you_mean(label.evaluator, judges, f"write {known}")
            self._error(label, "evaluator", problem, advice)
        else:
            path = label.evaluator or next(iter(judges))
            judge = judges[path]
            criteria = [each.name for each in judge.rubrics] if isinstance(judge, Rubric) else []
            if not label.criterion or label.criterion in criteria:
                return path
            problem = f"the judge `{path}` has no criterion `{label.criterion}`"
            otherwise = f"write {join_choices(criteria)}" if criteria else "remove it"
            advice = did_you_mean(label.criterion, criteria, otherwise)
            self._error(label, "criterion", problem, advice)
        return ""

    def _error(self, label: Label, field: str, problem: str, advice: str) -> None:
        self.diagnostics.error(label.places[field], problem, advice)


def append_label(file: Path, source: str, entry: Mapping[str, Any]) -> None:
    """Adds an entry at the end of a YAML file of labels, whose text stays as it is; a file that
    does not exist is created. `source` is its path in sentences.

    InvalidInput if the file is no list that can be continued, OutputError."""
    before = _content(file)
    written = write_yaml([entry]).encode("utf-8", "replace")
    after = (before if not before or before.endswith(b"\n") else before + b"\n") + written
    try:
        continued = read_yaml(after, source).data
        known = read_yaml(before, source).data or []
    except Unreadable:
        continued, known = None, []
    if len(after) > MAX_BYTES or continued is None or continued[:-1] != known:
        raise InvalidInput(f"no label can be added to {source}", _FORM)
    write_file(file, [after])


def remove_label(file: Path, entry: Mapping[str, Any]) -> None:
    """Takes back the entry that was added last. InvalidInput if somebody changed the end of the
    file since, OutputError."""
    before, written = _content(file), write_yaml([entry]).encode("utf-8", "replace")
    if not before.endswith(written):
        raise InvalidInput(f"somebody changed {file} since", "correct the label there")
    write_file(file, [before.removesuffix(written)])


def _content(file: Path) -> bytes:
    """The bytes of a file, none if it does not exist."""
    return read_regular(file, MAX_BYTES + 1) if is_present(file) else b""
