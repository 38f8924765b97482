"""The logs of inspect: several of them, what runs again, and the real program. Recorded logs are in
`test_recorded`."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentevals_action.model.suite import Suite
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import Row, Selection
from tests.support.runners import DATA, recorded, started

RECORDED = DATA / "inspect/recorded-0.3.285"
FORMAT = FORMATS["inspect"]()


def suite(root: Path) -> Suite:
    return Suite(path="task.py", root=root, folder=root)


def read(folder: Path) -> Mapping[str, Row]:
    """The first row of each test."""
    return {row.id: row for row in reversed(FORMAT.read(folder, suite(folder)))}


def test_read__a_log_without_results_gives_the_errors_of_all_samples(tmp_path: Path) -> None:
    """inspect has no results, and its status is a success, if no sample was scored."""
    log = json.loads((RECORDED / "capitals.json").read_text())
    for sample in log["samples"]:
        sample |= {"error": {"message": f"no key for {sample['id']}"}, "scores": None}
    (tmp_path / "log.json").write_text(json.dumps({**log, "results": None}))

    assert [row.error for row in read(tmp_path).values()] == [
        f"no key for {name}" for name in ("outage", "italy, or [Rome]?", "france")
    ]


def test_read__several_models_of_a_task(tmp_path: Path) -> None:
    log = json.loads((RECORDED / "chat.json").read_text())
    for name in ("openai/a", "openai/b"):
        log["eval"]["model"] = name
        (tmp_path / f"{name[-1]}.json").write_text(json.dumps(log))

    assert list(read(tmp_path)) == [
        *("chat/2 [openai/b]", "chat/1 [openai/b]", "chat/2 [openai/a]", "chat/1 [openai/a]")
    ]


def test_select__patterns_of_one_word(tmp_path: Path) -> None:
    rows = read(RECORDED)
    chosen = [rows["capitals/italy, or [Rome]?"], rows["capitals/france"], rows["chat/1"]]
    patterns = "capitals:italy??or?[[]Rome][?],capitals:france,chat:1"

    assert FORMAT.select(chosen, suite(tmp_path)) == (
        Selection(words=("task.py", "--sample-id", patterns)),
    )


@pytest.mark.parametrize("task", ["a b", "a,b", "a:b", "a" * 100_000])
def test_select__all_tests_where_a_task_cannot_be_written(tmp_path: Path, task: str) -> None:
    rows = [Row("x", passed=False, source=(task, "1"))]

    assert FORMAT.select(rows, suite(tmp_path)) == (Selection(words=("task.py",)),)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_program__says_which_key_is_missing(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(
        "from inspect_ai import Task, task\nfrom inspect_ai.dataset import Sample\n"
        "@task\ndef a():\n    return Task(dataset=[Sample(input='?')], model='openai/gpt-4o')\n"
    )
    with pytest.raises(AssertionError, match="OPENAI_API_KEY"):
        started(FORMAT, suite(tmp_path), tmp_path / "first")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_program__a_run_and_a_run_again(tmp_path: Path) -> None:
    _, own = recorded("inspect", tmp_path)

    rows = {row.id: row for row in started(FORMAT, own, tmp_path / "first")}
    (selection,) = FORMAT.select([rows["capitals/italy, or [Rome]?"], rows["chat/1"]], own)
    again = started(FORMAT, own, tmp_path / "again", selection)

    known = read(RECORDED)
    for name, row in rows.items():
        expected = known[name]
        assert (row.passed, row.error, row.asked, row.graded, row.usage) == (
            *(expected.passed, expected.error, expected.asked, expected.graded, expected.usage),
        )
    assert sorted(row.id for row in again) == sorted(2 * ["capitals/italy, or [Rome]?", "chat/1"])
