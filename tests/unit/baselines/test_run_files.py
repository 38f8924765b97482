"""The files of the data branch: rows that can be read again, and those that nothing needs."""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agentevals_action.baselines.run_files import (
    ANSWER_BYTES,
    RUNS,
    RunFiles,
    badge,
    file_name,
    read_run,
    write_run,
)
from agentevals_action.model.comparison import Outcome
from agentevals_action.model.result import EvaluatorResult, SampleResult, TestResult, Verdict
from tests.support import results
from tests.support.results import result

START = datetime(2026, 1, 1, 10, tzinfo=UTC)
NAME = file_name(START, "c" * 40, 7)


def sample(text: str, **fields: Any) -> SampleResult:
    message = {"role": "assistant", "content": text}
    judged = EvaluatorResult(
        name="e", type="contains", score=1.0, hits=(text,), reasoning=text, details={"of": text}
    )
    return SampleResult(
        score=1.0,
        verdict="pass",
        candidate_answer=text,
        output_messages=(message,),
        evaluator_results=(judged,),
        **fields,
    )


def stored(*samples: SampleResult, **fields: Any) -> TestResult:
    row = replace(results.result(), samples=samples, **fields)
    (found,) = read_run(NAME, write_run([row])).results
    return found


def answers(result: TestResult) -> list[str]:
    return [sample.candidate_answer for sample in result.samples]


def files(*runs: Sequence[str]) -> RunFiles:
    """A file every hour, each with results of these suites."""
    contents = {}
    for number, suites in enumerate(runs):
        rows = [results.result(path=path) for path in suites]
        name = file_name(START + timedelta(hours=number), "c" * 40, number)
        contents[name] = write_run(rows)
    return RunFiles(contents)


def test_name__has_time_commit_and_run() -> None:
    assert f"runs/20260101T100000000Z-{'c' * 40}-7.jsonl.gz" == NAME
    run = read_run(NAME, write_run([results.result()]))
    assert (run.commit, run.time) == ("c" * 40, "2026-01-01T10:00:00.000+00:00")


def test_row__has_one_answer_and_what_its_evaluators_decided() -> None:
    row = stored(sample("one"), sample("two"), sample("three", cached=True))
    assert answers(row) == ["", "two", ""]
    assert [bool(sample.output_messages) for sample in row.samples] == [False, True, False]
    assert [len(sample.evaluator_results) for sample in row.samples] == [0, 1, 0]
    (decided,) = row.samples[1].evaluator_results
    assert (decided.name, decided.score, decided.hits, decided.reasoning) == ("e", 1.0, (), "")
    assert [sample.score for sample in row.samples] == [1.0] * 3
    assert answers(stored(sample("one", cached=True))) == ["one"]
    assert answers(stored(sample("first"), sample("confirms", role="fresh"))) == ["first", ""]


def test_row__has_no_samples_that_confirmed_something_about_another_arm_or_the_suite() -> None:
    row = stored(sample("a"), declared=(sample("b"),), suite_samples=(sample("c"),))
    assert (row.declared, row.suite_samples) == ((), ())


def test_row__an_answer_that_is_too_large_or_too_deep_is_left_out() -> None:
    assert answers(stored(sample("small"), sample("x" * ANSWER_BYTES))) == ["small", ""]
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    calls = ({"role": "assistant", "content": [{"type": "json", "value": deep}]},)
    assert answers(stored(replace(sample("deep"), output_messages=calls))) == [""]


def test_row__has_the_messages_of_a_question_unless_they_have_pictures() -> None:
    system = {"role": "system", "content": "Be brief."}
    picture = {"role": "user", "content": [{"type": "image", "value": "data:image/png;base64,AA"}]}
    assert stored(sample("a"), input_messages=(system,)).input_messages == (system,)
    assert stored(sample("a"), input_messages=(system, picture)).input_messages == ()


def test_obsolete__files_without_one_of_the_last_runs_of_a_suite() -> None:
    found = files(["rare", "often"], *(["often"] for _ in range(RUNS)))
    names = sorted(found.contents)
    assert found.obsolete([("other", "")]) == []
    # The first file has the only run of `rare`; of `often` the oldest run makes room.
    assert found.obsolete([("often", "")]) == [names[1]]


def test_damaged__files_are_named_skipped_and_removed_with_the_runs_of_their_time() -> None:
    found = files(*(["often"] for _ in range(RUNS)))
    names = sorted(found.contents)
    whole = found.contents[names[0]]
    damaged = RunFiles({**found.contents, names[0]: whole[:-9], names[-1]: b"PK"})
    problems: list[str] = []
    assert [name for name, _ in damaged.runs(problems)] == names[-2:0:-1]
    assert [problem.partition(": ")[0] for problem in problems] == [
        f"`{name}` is damaged and does not count" for name in (names[-1], names[0])
    ]
    assert damaged.obsolete([("often", "")]) == [names[0]]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("runs/x.jsonl.gz", write_run([]), "its name is not that of a run"),
        (NAME.replace("20260101", "20261301"), write_run([]), "does not match format"),
        (NAME, b"{}", "it is not a complete gzip file"),
        (NAME, gzip.compress(b"{}", mtime=0), "line 1: "),
    ],
)
def test_damaged__has_a_reason(name: str, content: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_run(name, content)


def test_runs__of_some_suites_alone() -> None:
    both = read_run(NAME, write_run([results.result(path="a"), results.result(path="b")]), ["b"])
    assert [result.eval_path for result in both.results] == ["b"]


TIME = datetime(2026, 11, 23, 23, 59, tzinfo=UTC)


def shown(counts: Mapping[str, int], outcome: Outcome = Outcome.PASSED) -> Any:
    verdicts: dict[str, Verdict | None] = {"passed": "pass", "failed": "fail", "errors": None}
    results = [
        result(verdict=verdicts[name]) for name, number in counts.items() for _ in range(number)
    ]
    return json.loads(badge(results, outcome, TIME))


def test_badge__is_what_shields_reads() -> None:
    assert shown({"passed": 49, "failed": 1}) == {
        "schemaVersion": 1,
        "label": "evals",
        "message": "98% · 2026-11-23",
        "color": "green",
    }


@pytest.mark.parametrize(
    ("counts", "message", "color"),
    [
        ({"passed": 3}, "100% · 2026-11-23", "brightgreen"),
        ({"passed": 2499, "failed": 1}, "99.9% · 2026-11-23", "green"),
        ({"passed": 3, "failed": 1}, "75% · 2026-11-23", "yellow"),
        ({"failed": 2}, "0% · 2026-11-23", "red"),
        ({"passed": 1, "errors": 1}, "100% · 1 error · 2026-11-23", "red"),
        ({"errors": 2}, "unknown", "lightgrey"),
        ({}, "unknown", "lightgrey"),
    ],
)
def test_badge__rate_of_scored_tests_and_colour_of_all(
    counts: Mapping[str, int], message: str, color: str
) -> None:
    made = shown(counts)
    assert (made["message"], made["color"]) == (message, color)


@pytest.mark.parametrize(
    ("outcome", "color"),
    [(Outcome.INCONCLUSIVE, "yellow"), (Outcome.FAILED, "red"), (Outcome.INVALID, "red")],
)
def test_badge__is_not_green_unless_the_run_passed(outcome: Outcome, color: str) -> None:
    assert shown({"passed": 3}, outcome)["color"] == color
