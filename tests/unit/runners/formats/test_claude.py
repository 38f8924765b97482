"""The results of `claude plugin eval`: the question of a test, what runs again, and the real
program against a stand-in of the model. Recorded results are in `test_recorded`."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.suite import Suite
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import Row, Selection
from tests.support.plugin_models import LIMITED, VARIABLES, plugin_models
from tests.support.runners import recorded, started

FORMAT = FORMATS["claude"]()
#: A file of the plugin, and the tests whose question it is a part of.
FILES = {
    "evals/greets/prompt.md": {"greets"},
    "evals/greets/graders/says.md": set[str](),
    "evals/orders/case.yaml": {"orders"},
    "evals/mocks/shop/order.md": {"greets", "judged", "loops", "orders", "outage", "unjudged"},
    "skills/greet/SKILL.md": set[str](),
    ".claude-plugin/plugin.json": set[str](),
}


def asked(results: Path, suite: Suite) -> dict[str, Any]:
    return {row.id: row.asked for row in FORMAT.read(results, suite)}


@pytest.mark.parametrize("path", FILES)
def test_question__is_the_prompt_the_case_and_the_mocks(path: str, tmp_path: Path) -> None:
    results, suite = recorded("claude", tmp_path)
    before = asked(results, suite)

    file = suite.root / path
    file.write_text(f"{file.read_text()}\n")

    after = asked(results, suite)
    assert {test for test in after if after[test] != before[test]} == FILES[path]


def test_question__of_another_folder_of_cases(tmp_path: Path) -> None:
    """The manifest names it."""
    results, suite = recorded("claude", tmp_path)
    manifest = suite.root / suite.path
    manifest.write_text(json.dumps({"name": "greeter", "experimental": {"evals": "evals/mocks"}}))

    assert not any("shop" in json.dumps(each) for each in asked(results, suite).values())


def test_select__one_glob_for_each_test(tmp_path: Path) -> None:
    rows = [Row(each, passed=False) for each in ("a", "say (a*b) [x], ü", "a")]
    _, suite = recorded("claude", tmp_path)

    assert FORMAT.select(rows, suite) == [
        Selection(words=("--case=a",)),
        Selection(words=("--case=say ?a?b? ?x?? ü",)),
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_program__a_run_and_a_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, own = recorded("claude", tmp_path)
    with plugin_models() as server:
        for name, value in {**VARIABLES, "ANTHROPIC_BASE_URL": server.url}.items():
            monkeypatch.setenv(name, value)
        rows = {row.id: row for row in started(FORMAT, own, tmp_path / "first")}
        (selection,) = FORMAT.select([rows["greets"]], own)
        again = started(FORMAT, own, tmp_path / "again", selection)

    for expected in FORMAT.read(results, own):
        row = rows[expected.id]
        assert (row.passed, row.error, row.answer, row.asked, row.graded, row.checks) == (
            *(expected.passed, expected.error, expected.answer),
            *(expected.asked, expected.graded, expected.checks),
        )
    assert [(row.id, row.passed, row.answer) for row in again] == 2 * [
        ("greets", True, "Good day, Ada.")
    ]
    assert LIMITED in rows["outage"].error
