"""The logs of inspect: what a sample means, what passes, and what runs again."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.runner import PassRule, Runner
from agentevals_action.model.suite import Suite
from agentevals_action.model.usage import Usage
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import Check, ResultsError, Row, Selection
from tests.support.runners import started

DATA = Path(__file__).resolve().parents[3] / "data/runners/inspect"
RECORDED = DATA / "recorded-0.3.285"
FORMAT = FORMATS["inspect"]
QUALITY = PassRule(scorer="quality", key="style", at_least=0.5)


def suite(root: Path = DATA, rule: PassRule | None = None) -> Suite:
    runner = Runner(name="inspect", results="inspect", suites=("task.py",)).model_copy(
        update={"passes": rule}
    )
    return Suite().model_copy(
        update={"path": "task.py", "root": root, "folder": root, "runner": runner}
    )


def read(folder: Path = RECORDED, rule: PassRule | None = None) -> dict[str, Row]:
    """The first row of each test."""
    rows = FORMAT.read(folder, suite(rule=rule))
    return {row.id: row for row in reversed(rows)}


def changed(folder: Path, task: str, **fields: Any) -> Path:
    """A folder with the log of a task, whose first sample has these fields."""
    log = json.loads((RECORDED / f"{task}.json").read_text())
    log["samples"][0] |= fields
    (folder / "log.json").write_text(json.dumps(log))
    return folder


def first(folder: Path, rule: PassRule | None = None) -> Row:
    return FORMAT.read(folder, suite(rule=rule))[0]


def test_read__epochs_are_samples_of_a_test() -> None:
    rows = FORMAT.read(RECORDED, suite())

    assert [row.id for row in rows] == 2 * [
        *("capitals/france", "capitals/italy, or [Rome]?", "capitals/outage")
    ] + 2 * ["chat/1", "chat/2"] + 2 * ["grader/a"] + 2 * ["unjudged/a"]


def test_read__a_row() -> None:
    assert read()["capitals/france"] == Row(
        id="capitals/france",
        passed=True,
        question="Capital of France?",
        answer="Paris",
        target="mockllm/model",
        asked=[[{"role": "user", "content": "Capital of France?"}], None, None],
        graded={
            "target": "Paris",
            "scorers": [{"name": "match", "options": {}}, {"name": "quality", "options": {}}],
        },
        checks=(Check("match", True, 1.0, "Paris"), Check("quality", None, None, "short")),
        score=1.0,
        reason="Paris",
        usage=Usage(input_tokens=15, output_tokens=3, cached_tokens=5),
        duration_ms=read()["capitals/france"].duration_ms,
        source=("capitals", "france"),
    )


def test_read__what_the_first_scorer_does_not_pass_fails() -> None:
    row = read()["capitals/italy, or [Rome]?"]

    assert (row.passed, row.score, row.error, row.skipped) == (False, 0.0, "", "")
    assert row.checks[0] == Check("match", False, 0.0, "Paris")
    assert row.graded["target"] == ["Rome", "Roma"]


def test_read__errors_and_rows_without_score() -> None:
    rows = read()

    assert {name: (row.passed, row.error, row.skipped) for name, row in rows.items()} == {
        "capitals/france": (True, "", ""),
        "capitals/italy, or [Rome]?": (False, "", ""),
        "capitals/outage": (False, "RuntimeError('the API answers 500')", ""),
        "chat/1": (False, "", ""),
        "chat/2": (False, "", ""),
        "grader/a": (False, "unscored has no value for it: the grader did not answer", ""),
        "unjudged/a": (False, "", "it has no score"),
    }


def test_read__a_log_without_results_gives_the_errors_of_all_samples(tmp_path: Path) -> None:
    """inspect has no results, and its status is a success, if no sample was scored."""
    log = json.loads((RECORDED / "capitals.json").read_text())
    for sample in log["samples"]:
        sample |= {"error": {"message": f"no key for {sample['id']}"}, "scores": None}
    (tmp_path / "log.json").write_text(json.dumps({**log, "results": None}))

    assert [row.error for row in read(tmp_path).values()] == [
        f"no key for {name}" for name in ("outage", "italy, or [Rome]?", "france")
    ]


def test_read__messages_without_their_random_ids() -> None:
    row = read()["chat/1"]

    assert row.question == "Be brief.\n\nSay yes."
    assert row.asked[0] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Say yes."}]},
    ]
    assert row.reason == "stopped by its message limit"


def test_read__a_grader_is_known_by_the_name_of_its_model(tmp_path: Path) -> None:
    log = json.loads((RECORDED / "capitals.json").read_text())
    model = {"model": "mockllm/model", "model_args": {"custom_outputs": [{"id": "Xq3"}]}}
    log["eval"]["scorers"][0]["options"] = {"partial": True, "model": model}
    (tmp_path / "log.json").write_text(json.dumps(log))

    assert first(tmp_path).graded["scorers"][0] == {
        "name": "match",
        "options": {"partial": True, "model": "mockllm/model"},
    }


def test_read__files_of_a_sample_are_those_of_the_suite() -> None:
    assert read()["chat/2"].asked is None


def test_read__paths_of_the_checkout_are_left_out(tmp_path: Path) -> None:
    image = {"type": "image", "image": f"{DATA}/images/a.png"}
    folder = changed(tmp_path, "capitals", input=[{"role": "user", "content": [image]}])

    assert first(folder).asked[0][0]["content"][0]["image"] == "images/a.png"


def test_read__several_models_of_a_task(tmp_path: Path) -> None:
    log = json.loads((RECORDED / "chat.json").read_text())
    for name in ("openai/a", "openai/b"):
        log["eval"]["model"] = name
        (tmp_path / f"{name[-1]}.json").write_text(json.dumps(log))

    assert list(read(tmp_path)) == [
        *("chat/2 [openai/b]", "chat/1 [openai/b]", "chat/2 [openai/a]", "chat/1 [openai/a]")
    ]


@pytest.mark.parametrize(
    ("value", "passed"),
    [
        *(("C", True), (True, True), (1, True), (1.0, True)),
        *(("I", False), ("P", False), ("N", False), (False, False), (0, False), (0.0, False)),
    ],
)
def test_read__values_that_need_no_rule(tmp_path: Path, value: object, passed: bool) -> None:
    row = first(changed(tmp_path, "capitals", scores={"match": {"value": value}}))

    assert (row.passed, row.error, row.checks[0].passed) == (passed, "", passed)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_read__no_value_is_an_error(tmp_path: Path, value: object) -> None:
    row = first(changed(tmp_path, "capitals", scores={"match": {"value": value}}))

    assert (row.passed, row.score, row.error) == (
        False,
        None,
        "match has no value for it: unscored",
    )


@pytest.mark.parametrize(
    ("value", "at_least", "passed"),
    [(0.7, 0.7, True), (0.69, 0.7, False), ("P", 0.5, True), ("I", 0.5, False), (7, 5, True)],
)
def test_read__a_rule_decides(tmp_path: Path, value: object, at_least: float, passed: bool) -> None:
    rule = PassRule(scorer="match", at_least=at_least)
    folder = changed(tmp_path, "capitals", scores={"match": {"value": value}})

    assert first(folder, rule).passed is passed


def test_read__a_rule_decides_where_its_scorer_is() -> None:
    rows = read(rule=QUALITY)

    assert (rows["capitals/france"].passed, rows["capitals/france"].score) == (True, 0.5)
    assert rows["capitals/france"].checks == (
        Check("match", None, 1.0, "Paris"),
        Check("quality", True, None, "short"),
    )
    assert not rows["chat/1"].passed


@pytest.mark.parametrize(
    ("rule", "part"),
    [
        (PassRule(scorer="other", at_least=1), "no task has the scorer 'other' of `pass`"),
        (PassRule(scorer="quality", at_least=1), "`pass: {scorer: quality, key: accuracy, "),
        (PassRule(scorer="quality", key="x", at_least=1), "the scorer quality gives an object"),
    ],
)
def test_read__a_rule_that_does_not_fit(rule: PassRule, part: str) -> None:
    with pytest.raises(ResultsError, match=part):
        read(rule=rule)


def test_read__an_error_hides_a_score(tmp_path: Path) -> None:
    """`--score-on-error` gives both."""
    row = first(changed(tmp_path, "capitals", error={"message": "API 500"}))

    assert (row.passed, row.error) == (False, "API 500")


def test_select__patterns_of_one_word() -> None:
    rows = read()
    chosen = [rows["capitals/italy, or [Rome]?"], rows["capitals/france"], rows["chat/1"]]

    assert FORMAT.select(chosen, suite()) == (
        Selection(
            words=(
                "task.py",
                "--sample-id",
                "capitals:italy??or?[[]Rome][?],capitals:france,chat:1",
            )
        ),
    )


@pytest.mark.parametrize("task", ["a b", "a,b", "a:b", "a" * 100_000])
def test_select__all_tests_where_a_task_cannot_be_written(task: str) -> None:
    rows = [Row("x", passed=False, source=(task, "1"))]

    assert FORMAT.select(rows, suite()) == (Selection(words=("task.py",)),)


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
    root = tmp_path / "tree"
    root.mkdir()
    shutil.copy(DATA / "task.py", root)
    own = suite(root)

    rows = {row.id: row for row in started(FORMAT, own, tmp_path / "first")}
    (selection,) = FORMAT.select([rows["capitals/italy, or [Rome]?"], rows["chat/1"]], own)
    again = started(FORMAT, own, tmp_path / "again", selection)

    recorded = read()
    for name, row in rows.items():
        expected = recorded[name]
        assert (row.passed, row.error, row.asked, row.graded, row.usage) == (
            *(expected.passed, expected.error, expected.asked, expected.graded, expected.usage),
        )
    assert sorted(row.id for row in again) == sorted(2 * ["capitals/italy, or [Rome]?", "chat/1"])
