"""Reads and writes the files of labels beside suites."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.errors import InvalidInput
from agentevals_action.evaluators.judges.llm_judge import LlmJudge
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.formatting import join_choices
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.evaluator import Evaluator, gate_path
from agentevals_action.model.judge import Label, Labels, is_label_file
from agentevals_action.model.result import SampleResult
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.suites.checkout import Checkout
from agentevals_action.suites.documents.diagnostics import DiagnosticCollector, Unreadable
from agentevals_action.suites.documents.yaml_reader import MAX_BYTES, read_yaml
from agentevals_action.suites.documents.yaml_writer import write_yaml
from agentevals_action.suites.find import find_suites
from agentevals_action.suites.reading import FileReader
from agentevals_action.suites.sources import Sources
from agentevals_action.system.files.regular_files import is_present, read_regular
from agentevals_action.system.files.tree_files import write_file
from agentevals_action.targets.calls.description import describe_message, digest
from agentevals_action.validation.field_errors import describe_value, did_you_mean

_FORM = "write a list of labels, each with a hyphen in front"


def answer_digest(sample: SampleResult) -> str:
    """The digest (hexadecimal SHA-256) of all that judges read of an answer: its messages with
    their tool calls, and the changes of files."""
    return digest([list(sample.output_messages), sample.file_changes or ""], is_ordered=False)


def text_digest(text: str) -> str:
    """The digest of an answer that is one message with this text, and nothing else."""
    return digest([[{"role": "assistant", "content": text}], ""], is_ordered=False)


def question_digest(test: Test) -> str:
    """The first 16 digits of the digest (hexadecimal SHA-256) of what a test asks the agent."""
    asked = (message for message in test.input if message.role != "system")
    return digest([*map(describe_message, asked)], is_ordered=False)[:16]


def list_judges(test: Test) -> Mapping[str, LlmJudge | Rubric]:
    """The models that judge the answers to a test, by their paths in results: the names down to
    each, joined by `/`."""
    return {
        path: evaluator
        for own in test.evaluators
        for path, evaluator in _with_paths(own, "")
        if isinstance(evaluator, LlmJudge | Rubric)
    }


def list_measured(test: Test) -> Mapping[str, Evaluator]:
    """These, and those that compare two answers, by their names."""
    return {**list_judges(test), **{each.name: each for each in test.comparing}}


def _with_paths(evaluator: Evaluator, above: str) -> Iterator[tuple[str, Evaluator]]:
    path = gate_path(above, evaluator.name) if above else evaluator.name
    yield path, evaluator
    for child in evaluator.children():
        yield from _with_paths(child, path)


def read_labels(checkout: Checkout, suites: Sequence[Suite | BrokenSuite]) -> Labels:
    """The labels of these suites, in the files beside them, with every error of these files. Labels
    of other suites in the same files are not among them, and suites of runners have none."""
    reader = _LabelReader(checkout, suites)
    valid: list[Label] = []
    ours = (suite for suite in suites if isinstance(suite, BrokenSuite) or not suite.runner)
    for folder in dict.fromkeys(PurePosixPath(suite.path).parent for suite in ours):
        for file in sorted((checkout.root / folder).iterdir()):
            if is_label_file(file.name) and is_present(file):
                valid += reader.read(folder / file.name)
    return Labels(tuple(valid), reader.diagnostics.errors, reader.diagnostics.warnings)


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
        root, place = self._checkout.root, Location(str(path))
        folder = FileReader(root, root / path.parent, diagnostics=self.diagnostics)
        try:
            file = folder.file(path.name)
        except ValueError as error:
            folder.error(place, str(error), "replace it by a regular file")
            return
        for entry in Sources(folder, noun=Label.noun).file(file, folder, place):
            reader, data = entry.reader, entry.data
            if reader.diagnostics.error_limit_reached(entry.location):
                break
            if not isinstance(data, dict):
                advice = "write an object with `test`, `answer`, `label` and `who`"
                reader.error(entry.location, f"a label is {describe_value(data)}", advice)
                continue
            before = reader.diagnostics.error_count
            label = reader.validate(Label, data)
            if label and reader.diagnostics.error_count == before:
                yield from self._resolve(label, path, reader)

    def _resolve(self, label: Label, file: PurePosixPath, reader: FileReader) -> Iterator[Label]:
        """The label with its suite, judge and digest. None of a suite that is not loaded or has
        errors, or of an earlier question; none, with the error, if the suite does not have what it
        is about."""
        places = label.places
        suite = label.suite or self._find_suite(file)
        if not suite:
            problem = "this label has no `suite`, and there are several beside its file"
            reader.error(label.location, problem, "write the `suite`")
        elif suite not in self._suites:
            try:
                reader.file(f"/{suite}")
            except ValueError as error:
                advice = did_you_mean(suite, self._suites, "write its path from the root")
                reader.error(places["suite"], str(error), advice)
        if suite not in self._tests:
            return
        test = self._tests[suite].get(label.test)
        if test is None:
            advice = did_you_mean(label.test, self._tests[suite], "correct it or remove the label")
            reader.error(places["test"], f"{suite} has no test `{label.test}`", advice)
            return
        if label.question and label.question != question_digest(test):
            problem = f"this label of `{test.id}` is about an earlier question and does not count"
            reader.warn(label.location, problem, "remove it, and label an answer to the new one")
            return
        is_pair = label.other is not None
        judges = {
            path: judge for path, judge in list_measured(test).items() if judge.compares is is_pair
        }
        path = label.evaluator or (next(iter(judges)) if len(judges) == 1 else "")
        if path not in judges:
            of = " of pairs" if is_pair else ""
            named = f"no judge{of} `{path}`" if path else f"{len(judges) or 'no'} judges{of}"
            otherwise = f"write {join_choices(judges)}" if judges else "remove the label"
            place = places.get("evaluator", label.location)
            problem = f"the test `{test.id}` has {named}"
            reader.error(place, problem, did_you_mean(path, judges, otherwise))
            return
        judge = judges[path]
        criteria = [each.name for each in judge.rubrics] if isinstance(judge, Rubric) else []
        if label.criterion and label.criterion not in criteria:
            otherwise = f"write {join_choices(criteria)}" if criteria else "remove it"
            problem = f"the judge `{path}` has no criterion `{label.criterion}`"
            advice = did_you_mean(label.criterion, criteria, otherwise)
            reader.error(places["criterion"], problem, advice)
            return
        shown = label.digest or text_digest(label.answer or "")
        shown = digest([shown, label.other], is_ordered=True) if is_pair else shown
        yield label.model_copy(update={"suite": suite, "evaluator": path, "digest": shown})

    def _find_suite(self, file: PurePosixPath) -> str:
        """The suite of the same name beside a file, or the only one; empty if there are several."""
        checkout, folder = self._checkout, file.parent
        patterns, below = checkout.settings.suites, checkout.root / folder
        found = find_suites(checkout.root, below, patterns, checkout.files).paths
        beside = {path for path in {*found, *self._suites} if PurePosixPath(path).parent == folder}
        stem = file.name.rpartition(".labels.")[0]
        named = {path for path in beside if PurePosixPath(path).stem == stem}
        return "".join(named or beside) if len(named or beside) == 1 else ""


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
    """Takes back the entry that was added last; a file without another one is deleted.
    InvalidInput if somebody changed the end of the file since, OutputError."""
    before, written = _content(file), write_yaml([entry]).encode("utf-8", "replace")
    if not before.endswith(written):
        raise InvalidInput(f"somebody changed {file} since", "correct the label there")
    if before == written:
        file.unlink()
    else:
        write_file(file, [before.removesuffix(written)])


def _content(file: Path) -> bytes:
    """The bytes of a file, none if it does not exist."""
    return read_regular(file, MAX_BYTES + 1) if is_present(file) else b""
