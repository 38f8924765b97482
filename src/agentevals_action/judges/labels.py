"""Reads and writes the files of labels beside suites."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.errors import InvalidInput
from agentevals_action.evaluators.judges.llm_judge import LlmJudge
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.formatting import join_choices
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.evaluator import Evaluator, evaluators_by_path
from agentevals_action.model.judge import MODEL, Label, Labels, is_label_file
from agentevals_action.model.result import SampleResult
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.suites.checkout import Checkout
from agentevals_action.suites.documents.diagnostics import DiagnosticCollector
from agentevals_action.suites.documents.yaml_writer import write_yaml
from agentevals_action.suites.reading import FileReader
from agentevals_action.suites.sources import Sources
from agentevals_action.system.files.tree_files import write_file
from agentevals_action.targets.calls.description import describe_message, digest
from agentevals_action.validation.field_errors import describe_value, did_you_mean

#: A YAML file to which an entry can be appended: empty, or a list that is not indented.
_LIST = re.compile(rb"(#.*\n|\n)*(-.*\n([-# ].*\n|\n)*)?")


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
    """The models that judge the answers to a test, by their paths in results."""
    return {
        path: evaluator
        for path, evaluator in evaluators_by_path(test.evaluators).items()
        if isinstance(evaluator, LlmJudge | Rubric)
    }


def list_measured(test: Test) -> Mapping[str, Evaluator]:
    """The judges of `list_judges`, and the pairwise judges by their names."""
    return {**list_judges(test), **{judge.name: judge for judge in test.comparing}}


def label_file(suite: Suite) -> Path:
    """The file of labels that belongs to a suite."""
    file = suite.root / suite.path
    return file.with_name(f"{file.stem}.labels.yaml")


def read_labels(checkout: Checkout, suites: Iterable[Suite | BrokenSuite]) -> Labels:
    """The labels of these suites, in the files beside them, with every error of these files. Labels
    of other suites in the same files are left out, and suites of runners have no labels."""
    ours = {
        suite.path: {test.id: test for test in suite.tests} if isinstance(suite, Suite) else None
        for suite in suites
        if isinstance(suite, BrokenSuite) or not suite.runner
    }
    diagnostics = DiagnosticCollector()
    valid: list[Label] = []
    for folder in dict.fromkeys(PurePosixPath(path).parent for path in ours):
        beside = FileReader(checkout.root, checkout.root / folder, diagnostics=diagnostics)
        for file in sorted(path for path in beside.path.iterdir() if is_label_file(path.name)):
            place = Location(str(folder / file.name))
            of_same_name = str(folder / f"{file.name.rpartition('.labels.')[0]}.yaml")
            for entry in Sources(beside, noun=Label.noun).entries(file.name, place, beside):
                data, reader = entry.data, entry.reader
                if not isinstance(data, dict):
                    advice = "write an object with `test`, `answer`, `label` and `who`"
                    reader.error(entry.location, f"a label is {describe_value(data)}", advice)
                elif label := reader.validate(Label, data):
                    suite = label.suite or of_same_name
                    valid += _resolve(label, suite, ours, reader)
    return Labels(tuple(valid), diagnostics.errors, diagnostics.warnings)


def _resolve(
    label: Label,
    suite: str,
    suites: Mapping[str, Mapping[str, Test] | None],
    reader: FileReader,
) -> Iterator[Label]:
    """A person's label with its suite, judge and digest; `suites` are the tests of each suite by
    id, None for a suite with errors. Nothing for a suite with errors or that is not loaded, or
    for an earlier question; nothing, with an error, if the label names what the suite has not."""

    def refuse(field: str, problem: str, known: Iterable[str], otherwise: str) -> None:
        advice = did_you_mean(getattr(label, field), known, otherwise)
        reader.error(label.places.get(field, label.location), problem, advice)

    if suite not in suites:
        try:
            reader.file(f"/{suite}")
        except ValueError as error:
            refuse("suite", str(error), suites, "write the path of the `suite` from the root")
    tests = suites.get(suite)
    if tests is None:
        return
    test = tests.get(label.test)
    if test is None:
        problem = f"{suite} has no test `{label.test}`"
        refuse("test", problem, tests, "correct it or remove the label")
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
        refuse("evaluator", f"the test `{test.id}` has {named}", judges, otherwise)
        return
    judge = judges[path]
    criteria = [rubric.name for rubric in judge.rubrics] if isinstance(judge, Rubric) else []
    if label.criterion and label.criterion not in criteria:
        otherwise = f"write {join_choices(criteria)}" if criteria else "remove it"
        problem = f"the judge `{path}` has no criterion `{label.criterion}`"
        refuse("criterion", problem, criteria, otherwise)
        return
    if label.who == MODEL:
        problem = "this file has labels of models, which do not count"
        reader.warn(Location(label.location.path), problem, "let people label the answers")
        return
    shown = label.digest or text_digest(label.answer or "")
    shown = digest([shown, label.other], is_ordered=True) if is_pair else shown
    yield label.model_copy(update={"suite": suite, "evaluator": path, "digest": shown})


def append_label(file: Path, entry: Mapping[str, Any]) -> None:
    """Adds an entry at the end of a YAML file of labels, whose text stays as it is; a file that
    does not exist is created. InvalidInput if the result would not be a list, OutputError."""
    content = _content(file)
    if content and not content.endswith(b"\n"):
        content += b"\n"
    if not _LIST.fullmatch(content):
        advice = "write a list of labels, each with a hyphen at the beginning of its line"
        raise InvalidInput(f"no label can be added to {file}", advice)
    write_file(file, [content, _text(entry)])


def remove_label(file: Path, entry: Mapping[str, Any]) -> None:
    """Removes the entry that was added last; a file without another entry is deleted. InvalidInput
    if somebody changed the end of the file since, OutputError."""
    content, written = _content(file), _text(entry)
    if not content.endswith(written):
        raise InvalidInput(f"somebody changed {file} since", "correct the label there")
    if content == written:
        file.unlink()
    else:
        write_file(file, [content.removesuffix(written)])


def _content(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""


def _text(entry: Mapping[str, Any]) -> bytes:
    return write_yaml([entry]).encode("utf-8", "replace")
