"""The files of labels: what is read, every error, and what is appended."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.judges.labels import (
    answer_digest,
    append_label,
    read_labels,
    remove_label,
    text_digest,
)
from agentevals_action.model.judge import Labels
from agentevals_action.model.result import SampleResult
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import Checkout
from agentevals_action.suites.configuration_file import ConfigurationFile
from agentevals_action.suites.documents.yaml_reader import read_yaml
from tests.support import data, suites

FILES = {
    "evals/EVAL.yaml": """\
name: support
tests:
  - {id: refund, input: Can I return shoes?, criteria: Offers the refund.}
  - id: steps
    input: How?
    assert:
      - type: rubric
        name: quality
        rubrics: [{id: period, outcome: names the period}, is easy to follow]
      - type: composite
        name: both
        evaluators: [{type: llm_judge, name: tone, prompt: 'Is it kind? {{answer}}'}]
  - {id: fixed, input: x, assert: [{type: contains, value: x}]}
""",
    "evals/broken.yaml": "name: broken\ntests: []\n",
    ".agentv/targets.yaml": suites.TARGETS,
}
ENTRY = {"test": "refund", "answer": "Yes", "label": "pass", "who": "ada"}


def read(root: Path, files: Mapping[str, str | bytes]) -> Labels:
    suites.write(root, {**FILES, **files})
    settings = Settings.from_environ({"INPUT_SUITES": "**/*.yaml"})
    opened = Checkout.at(root, settings, ConfigurationFile(), {}, None)
    found = [suites.load(root, path) for path in ("evals/EVAL.yaml", "evals/broken.yaml")]
    return read_labels(asyncio.run(opened), found)


@pytest.mark.parametrize("case", data.read("labels.yaml"), ids=lambda case: case["case"])
def test_errors__all_of_a_file_with_their_locations(tmp_path: Path, case: Any) -> None:
    path = f"evals/{case['file']}"

    found = read(tmp_path, {path: case["text"]})

    assert [str(error) for error in found.errors] == [f"{path}:{text}" for text in case["errors"]]


def test_read_labels__finds_suite_judge_and_digest(tmp_path: Path) -> None:
    rows = '{"test": "steps", "digest": "%s", "evaluator": "both/tone", "label": 0.8, "who": "ben"}'
    found = read(
        tmp_path,
        {
            "evals/EVAL.labels.yaml": "- {test: refund, answer: 'Yes', label: fail, who: ada}\n",
            "evals/z.labels.jsonl": rows.replace('"test"', '"suite": "evals/EVAL.yaml", "test"')
            % ("0" * 64),
            "EVAL.labels.yaml": "- not read: no suite is beside it\n",
        },
    )

    assert found.errors == ()
    assert [(label.key, label.passes) for label in found.counted] == [
        (("evals/EVAL.yaml", "refund", text_digest("Yes"), "criteria", ""), False),
        (("evals/EVAL.yaml", "steps", "0" * 64, "both/tone", ""), True),
    ]


def test_labels__that_differ_count_for_neither_and_those_of_models_for_nothing(
    tmp_path: Path,
) -> None:
    written = [
        ("Yes", "pass", "ada"),
        ("Yes", "fail", "ben"),
        ("No", "fail", "ada"),
        ("No", 0.1, "ben"),
        ("No", "pass", "model"),
        ("Maybe", "pass", "Model "),
    ]
    lines = [
        f"- {{test: refund, answer: '{text}', label: {label}, who: '{who}'}}\n"
        for text, label, who in written
    ]

    found = read(tmp_path, {"evals/EVAL.labels.yaml": "".join(lines)})

    assert [(label.answer, label.label) for label in found.counted] == [("No", "fail")]
    assert [[label.who for label in own] for own in found.conflicts] == [["ada", "ben"]]
    assert [str(warning) for warning in found.warnings] == [
        "evals/EVAL.labels.yaml:1:1: this file has labels of models, which do not count; let people label the answers"
    ]


def test_read_labels__a_file_that_leaves_the_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text("- 4\n")
    (tmp_path / "root/evals").mkdir(parents=True)
    (tmp_path / "root/evals/EVAL.labels.yaml").symlink_to(tmp_path / "outside.yaml")
    os.mkfifo(tmp_path / "root/evals/pipe.labels.jsonl")

    found = read(tmp_path / "root", {})

    assert [str(error) for error in found.errors] == [
        "evals/EVAL.labels.yaml:1:1: 'EVAL.labels.yaml' leaves the repository; name a file of labels, from the folder of this one",
        "evals/pipe.labels.jsonl:1:1: 'pipe.labels.jsonl' is not a regular file (evals/pipe.labels.jsonl); name a file of labels, from the folder of this one",
    ]


def test_digest__of_a_text_is_that_of_an_answer_without_anything_else() -> None:
    message = {"role": "assistant", "content": "Yes"}
    call = {**message, "tool_calls": [{"tool": "refund", "input": {"order": 1}}]}
    digests = [
        answer_digest(SampleResult(output_messages=messages, file_changes=changes))
        for messages, changes in (((message,), None), ((message,), ""), ((call,), None))
    ]
    digests += [answer_digest(SampleResult(output_messages=(message,), file_changes="+ a"))]

    assert [found == text_digest("Yes") for found in digests] == [True, True, False, False]


@pytest.mark.parametrize(
    "before", ["", "# ours\n- {test: a, label: 1} # sure\n", "- test: a", "# nothing yet"]
)
@pytest.mark.parametrize("answer", ["Yes", "a\n\n  b: 1\n# c\n", "\x1b[2J\x07 \u2028 é\r\n", "- a"])
def test_append_label__keeps_what_is_there_and_takes_back(
    tmp_path: Path, before: str, answer: str
) -> None:
    file, entry = tmp_path / "EVAL.labels.yaml", {**ENTRY, "answer": answer}
    if before:
        file.write_text(before)
    known = read_yaml(before.encode(), "").data or []

    append_label(file, entry)

    assert file.read_text().startswith(before)
    assert read_yaml(file.read_bytes(), "").data == [*known, entry]
    remove_label(file, entry)
    left = file.read_text() if file.exists() else ""
    assert left.rstrip("\n") == before.rstrip("\n")


@pytest.mark.parametrize("before", ["[{test: a}]\n", "  - test: a\n", "test: a\n", "- a\n...\n"])
def test_append_label__refuses_a_file_that_would_be_another_one(
    tmp_path: Path, before: str
) -> None:
    file = tmp_path / "EVAL.labels.yaml"
    file.write_text(before)

    with pytest.raises(InvalidInput, match="no label can be added"):
        append_label(file, ENTRY)

    assert file.read_text() == before


def test_remove_label__refuses_if_somebody_changed_the_end_since(tmp_path: Path) -> None:
    file = tmp_path / "EVAL.labels.yaml"
    append_label(file, ENTRY)
    file.write_text(file.read_text() + "# mine\n")

    with pytest.raises(InvalidInput, match="somebody changed"):
        remove_label(file, ENTRY)
