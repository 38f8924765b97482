"""promptfoo: ids that a change keeps, what fingerprints and locations depend on, and the real program.
Its recorded results are in `test_recorded`."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.suite import Suite
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import Row
from agentevals_action.runners.rows import rows_by_test
from tests.support.runners import recorded, started

FORMAT = FORMATS["promptfoo"]()


def read(results: Path, suite: Suite, document: Any = None) -> Sequence[Row]:
    """The rows of the recording, or of another document in its place."""
    if document is not None:
        (results / "results.json").write_text(json.dumps(document), encoding="utf-8")
    return FORMAT.read(results, suite)


def row_of(rows: Sequence[Row], name: str) -> Row:
    return next(row for row in rows if row.id == name)


def test_ids__stay_when_the_texts_of_prompts_the_model_and_defaults_change(tmp_path: Path) -> None:
    results, suite = recorded("promptfoo-columns", tmp_path)
    before = [row.id for row in read(results, suite)]
    text = (results / "results.json").read_text(encoding="utf-8")
    text = text.replace("{{question}}", "the question: {{question}}, please")
    changed = json.loads(text.replace('"echo"', '"openai:gpt-9"'))
    changed["config"]["defaultTest"] = {"vars": {"tone": "rude"}}
    for result in changed["results"]["results"]:
        result["vars"]["tone"] = result["testCase"]["vars"]["tone"] = "rude"

    assert [row.id for row in read(results, suite, changed)] == before


def test_ids__of_one_prompt_and_provider_name_neither(tmp_path: Path) -> None:
    results, suite = recorded("promptfoo-columns", tmp_path)
    document = json.loads((results / "results.json").read_text(encoding="utf-8"))
    found = document["results"]
    found["prompts"] = found["prompts"][4:5]
    found["results"] = [
        {**result, "promptIdx": 0} for result in found["results"] if result["promptIdx"] == 4
    ]

    assert [row.id for row in read(results, suite, document)] == ["returns"]


def test_select__all_run_where_promptfoo_cannot_tell_tests_apart(tmp_path: Path) -> None:
    results, suite = recorded("promptfoo", tmp_path)
    rows = read(results, suite)
    assert len(FORMAT.select([row_of(rows, "wrong"), row_of(rows, "outage")], suite)) == 1
    assert FORMAT.select([row_of(rows, "wrong"), row_of(rows, "same")], suite) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"options": {}', '"options": {"storeOutputAs": "first"}'),
        ("{{question}}", "{{_conversation}}"),
    ],
)
def test_select__all_run_where_a_test_gets_the_answers_of_others(
    tmp_path: Path, old: str, new: str
) -> None:
    results, suite = recorded("promptfoo-columns", tmp_path)
    file = results / "results.json"
    text = json.dumps(json.loads(file.read_text(encoding="utf-8")))
    selections = [
        FORMAT.select(read(results, suite, json.loads(document))[:1], suite)
        for document in (text, text.replace(old, new, 1))
    ]
    assert [len(selection) for selection in selections] == [1, 0]


def test_fingerprints__follow_the_contents_of_files_in_any_checkout(tmp_path: Path) -> None:
    first, second = recorded("promptfoo", tmp_path / "a"), recorded("promptfoo", tmp_path / "b")
    (second[1].folder / "check.py").write_text("def get_assert(*_):\n    return True\n")
    (second[1].folder / "data/policy.txt").write_text("60 days")
    before, after = read(*first), read(*second)

    def differing(name: str) -> set[str]:
        return {
            old.id
            for old, new in zip(before, after, strict=True)
            if getattr(old, name) != getattr(new, name)
        }

    assert differing("asked") == differing("graded") == {"assertions"}


#: Files that a suite names, without a test that can be read.
UNREADABLE = {
    "bad.csv": b'question\n"\xff',
    "bad.yaml": b"- {",
    "text.yaml": b"text",
    "odd.yaml": b"tests: [1, {vars: 2}]\nscenarios: [x, {tests: y}]",
}


@pytest.mark.parametrize("content", ["tests: [x", "module.exports = {};"])
def test_location__does_not_know_what_it_cannot_read(tmp_path: Path, content: str) -> None:
    results, suite = recorded("promptfoo", tmp_path)
    (suite.root / suite.path).write_text(content)
    for name in ("fifo.csv", "fifo.yaml"):
        os.mkfifo(suite.root / name)
    for name, data in UNREADABLE.items():
        (suite.root / name).write_bytes(data)
    names = (*UNREADABLE, "fifo.csv", "fifo.yaml", "gone.csv")
    files = (NamedFile(suite.path, "suite"), *(NamedFile(name, "named file") for name in names))

    rows = read(results, suite.model_copy(update={"files": files}))

    assert {row.location for row in rows} == {None}


WANTED = (
    *("shipping (829aa931)", "list (2f121287)", "wrong", "first line (d6887e2c)"),
    "row with a name",
)


@pytest.mark.slow
def test_promptfoo__runs_the_selected_tests_again(tmp_path: Path) -> None:
    _, suite = recorded("promptfoo", tmp_path)
    config = suite.root / suite.path
    config.write_text(config.read_text().partition("scenarios:")[0])
    first = rows_by_test(started(FORMAT, suite, tmp_path / "first"), 2)

    again = selected(suite, first, WANTED, tmp_path / "again")

    assert sorted(again) == sorted(WANTED)


@pytest.mark.slow
def test_promptfoo__runs_the_selected_tests_of_scenarios_again(tmp_path: Path) -> None:
    results, suite = recorded("promptfoo", tmp_path)
    first = rows_by_test(started(FORMAT, suite, tmp_path / "first"), 2)
    assert first.keys() == rows_by_test(read(results, suite), 2).keys()

    selected(suite, first, [*WANTED, "scenario (73c73d1a)"], tmp_path / "again")


def selected(
    suite: Suite, first: Mapping[str, Sequence[Row]], wanted: Sequence[str], results: Path
) -> Mapping[str, Sequence[Row]]:
    """The rows of the wanted tests and others, run again with the same assertions and verdicts."""
    (selection,) = FORMAT.select([first[name][0] for name in wanted], suite)
    ids = {row.key: row.id for rows in first.values() for row in rows}
    rows = started(FORMAT, suite, results, selection)
    again = rows_by_test([replace(row, id=ids[row.key]) for row in rows], 2)
    for name in wanted:
        assert [row.checks for row in again[name]] == [row.checks for row in first[name]]
        assert [row.passed for row in again[name]] == [row.passed for row in first[name]]
    return again


@pytest.mark.slow
def test_promptfoo__finds_globs_of_prompts_beside_a_configuration_in_a_folder(
    tmp_path: Path,
) -> None:
    _, suite = recorded("promptfoo", tmp_path)
    (suite.folder / "prompts").mkdir()
    shutil.copy(suite.folder / "prompt.txt", suite.folder / "prompts")
    config = suite.root / suite.path
    config.write_text(config.read_text().replace("[file://prompt.txt]", "prompts/*.txt"))

    rows = started(FORMAT, suite, tmp_path / "found")

    assert {row.id for row in rows} >= set(WANTED)
