"""Stored results as those of base: the newest run that fits, its history, the order of sources."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.baselines.stored import (
    SAMPLES,
    StoredSource,
    Unavailable,
    describe_origin,
    find_stored,
)
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.baseline import (
    BaselineInfo,
    BaselineOrigin,
    IncompleteSource,
    StoredRun,
)
from agentevals_action.model.result import ErrorInfo, SampleResult, TestResult
from agentevals_action.model.suite import Suite
from tests.support import base_tree, results

OTHER = results.fingerprint()
PASS = SampleResult(score=1.0, verdict="pass")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return base_tree.greeter(tmp_path)


def run(day: int, rows: Sequence[TestResult]) -> StoredRun:
    return StoredRun(tuple(rows), f"{day:040x}", f"2026-01-{day:02}T00:00:00.000+00:00")


def of(suite: Suite, changes: Mapping[str, Mapping[str, Any]] | None = None) -> list[TestResult]:
    return list(base_tree.results_of(suite, changes))


def source(
    *runs: StoredRun, name: str = "branch", problem: str = "", is_newest: bool = False
) -> StoredSource:
    """A source with these runs, the newest of which is the last; of a base without a tree, the
    newest results count."""
    known, time = Fingerprints(), base_tree.NOW - timedelta(days=14)
    stored = None if is_newest else known
    return StoredSource(name, "`data`", runs[::-1], problem, stored, known, time)


def found(suite: Suite, *runs: StoredRun, is_newest: bool = False) -> tuple[TestResult, ...]:
    return asyncio.run(source(*runs, is_newest=is_newest).find(suite))[1]


def origin(suite: Suite, *runs: StoredRun) -> BaselineOrigin:
    found_origin = asyncio.run(source(*runs).find(suite))[0].origin
    assert found_origin
    return found_origin


def reason(suite: Suite, *runs: StoredRun, problem: str = "") -> str:
    with pytest.raises(Unavailable) as caught:
        asyncio.run(source(*runs, problem=problem).find(suite))
    return str(caught.value)


def test_source__the_newest_run_that_fits_with_the_samples_of_the_others(suite: Suite) -> None:
    runs = (
        run(1, of(suite, {"short": {"verdict": "fail"}})),
        run(3, [*of(suite)[::-1], results.result("gone", path=suite.path)]),
        run(6, of(suite, {"short": {"print": OTHER}})),
        run(7, of(suite)[:1]),
    )
    greets, short = found(suite, *runs)
    assert [sample.verdict for sample in short.samples] == ["fail", "pass"]
    assert len(greets.samples) == 4
    time = "2026-01-03T00:00:00.000+00:00"
    assert origin(suite, *runs) == BaselineOrigin("branch", f"{3:040x}", time, 2)


def test_source__rows_follow_from_the_samples_and_the_suite(suite: Suite) -> None:
    forged = {"verdict": "fail", "failed": ("by-name",), "line": 99}
    greets, _ = found(suite, run(1, of(suite, {"greets": forged})))
    assert (greets.verdict, greets.gates_failed) == ("fail", ("by-name",))
    assert [gate.name for gate in greets.gates] == ["by-name"]
    assert (greets.line, greets.question, greets.timestamp) == (3, "Ada", "2026-01-01T00:00:00Z")


def test_source__without_a_tree_the_newest_results_count(suite: Suite) -> None:
    older = replace(base_tree.fingerprints(suite)["greets"], agent="0" * 64)
    gone = results.result("gone", path=suite.path)
    runs = (
        run(1, of(suite)),
        run(2, of(suite, {"greets": {"print": older}})),
        run(3, [*of(suite, {"greets": {"print": older, "verdict": "fail"}})[:1], gone]),
        run(4, [gone]),
        run(5, [replace(row, fingerprint=None) for row in of(suite)]),
    )
    known, (greets,) = asyncio.run(source(*runs, is_newest=True).find(suite))  # `short` is new
    assert ([sample.verdict for sample in greets.samples], greets.fingerprint) == (
        ["pass", "fail"],
        older,
    )
    assert known.origin
    assert known.origin.commit == f"{3:040x}"
    edited = {"short": {"print": OTHER}}
    (_, short) = found(suite, run(1, of(suite, edited)), is_newest=True)
    assert short.fingerprint == OTHER  # as another question it is not compared


def test_source__an_old_run_is_stale(suite: Suite) -> None:
    times = {"2025-12-26": True, "2025-12-28": False, "2026-02-01": False}
    for time, stale in times.items():
        old = replace(run(1, of(suite)), time=f"{time}T00:00:00")
        assert origin(suite, old).stale is stale


def test_source__without_a_run_that_fits_the_newest_and_the_damage_are_named(suite: Suite) -> None:
    runs = (run(1, []), run(2, of(suite, {"short": {"print": OTHER}})))
    assert reason(suite, *runs, problem="`x`") == (
        "`x`; `data`: the results of 000000000000: the test `short` was run with another question "
        "and grading and agent than the base has"
    )
    assert reason(suite, problem="no branch") == "no branch"
    assert reason(suite) == "`data` has no results of it"


@pytest.mark.parametrize("part", ["question", "grading", "agent"])
def test_source__another_digest(suite: Suite, part: str) -> None:
    other = replace(base_tree.fingerprints(suite)["greets"], **{part: "0" * 64})
    actual = reason(suite, run(1, of(suite, {"greets": {"print": other}})))
    assert actual.endswith(f"the test `greets` was run with another {part} than the base has")


def test_source__rows_that_are_not_those_of_base(suite: Suite) -> None:
    """A missing test would count as new."""
    rows = of(suite)
    forged = replace(
        rows[0],
        samples=(
            SampleResult(score=0.1, verdict="pass"),
            SampleResult(score=7.0, verdict="pass"),
        ),
    )
    cases: dict[str, Sequence[TestResult]] = {
        "the test `short` of 2 is not in it": rows[:1],
        "a test has more than one result there": (*rows, rows[0]),
        "2 tests (the first is `greets`) were run with another": [
            replace(row, fingerprint=None) for row in rows
        ],
        "the test `short` ended in an error there": of(suite, {"short": {"verdict": None}}),
        "the test `greets` ended in an error there": (forged, rows[1]),
    }
    for expected, stored in cases.items():
        assert expected in reason(suite, run(1, stored))


def test_source__samples_of_a_confirmation_do_not_count(suite: Suite) -> None:
    rows = of(suite)
    samples = (PASS, SampleResult(error=ErrorInfo(kind="target", message="down")), PASS)
    confirmed = replace(rows[0], samples=(*samples[:2], replace(PASS, role="fresh")))
    (greets, _) = found(suite, run(1, (confirmed, rows[1])))
    assert greets.samples == (PASS,)


def answered(suite: Suite, message: Mapping[str, Any], **fields: Any) -> list[TestResult]:
    return [
        replace(
            row,
            samples=tuple(
                replace(
                    sample,
                    output_messages=(message,),
                    candidate_answer=message.get("content", ""),
                    **fields,
                )
                for sample in row.samples
            ),
        )
        for row in of(suite)
    ]


def test_source__one_answer_and_the_latest_samples_count(suite: Suite) -> None:
    def say(text: str, **fields: Any) -> list[TestResult]:
        return answered(suite, {"role": "assistant", "content": text}, **fields)

    runs = [run(number % 28 + 1, say(str(number))) for number in range(SAMPLES + 3)]
    (row, _) = found(suite, *runs)
    assert len(row.samples) == SAMPLES
    assert [each.candidate_answer for each in row.samples if each.output_messages] == ["52"]
    cached = say("again", cached=True)
    (row, _) = found(suite, run(1, say("fresh")), run(2, cached))
    assert [each.candidate_answer for each in row.samples] == ["fresh"]
    (row, _) = found(suite, run(1, cached), run(2, cached))
    assert len(row.samples) == 1


def test_source__an_answer_that_cannot_be_scored_again_is_none(suite: Suite) -> None:
    (row, _) = found(suite, run(1, answered(suite, {"role": 3})))
    assert (row.verdict, row.samples[0].output_messages) == ("pass", ())


def test_find_stored__the_first_source_that_has_a_suite(suite: Suite) -> None:
    suites = {path: suite.model_copy(update={"path": path}) for path in "abcd"}
    rows = {path: of(each) for path, each in suites.items()}
    sources = (source(run(1, rows["a"])), source(run(2, [*rows["a"], *rows["b"]]), name="file"))
    stored = asyncio.run(find_stored(sources, suites, BaselineInfo("auto", wanted=True)))
    taken = stored.suites
    assert {path: each.origin and each.origin.source for path, each in taken.items()} == {
        "a": "branch",
        "b": "file",
        "c": None,
        "d": None,
    }
    problem = "`data` has no results of it"
    assert taken["c"].problem == f"the baseline file: {problem}"
    tried = tuple(IncompleteSource(name, problem) for name in ("branch", "file"))
    assert (stored.info.tried, set(stored.rows)) == (tried, {"a", "b"})


def test_find_stored__different_reasons_are_bounded(suite: Suite) -> None:
    suites = {path: suite.model_copy(update={"path": path}) for path in "abcd"}
    rows = [row for each in suites.values() for row in of(each)[: "abcd".index(each.path) % 2]]
    info = BaselineInfo("auto", wanted=True)
    (incomplete,) = asyncio.run(find_stored([source(run(1, rows))], suites, info)).info.tried
    assert incomplete.problem.startswith("`a`: `data` has no results of it; `b`: `data`: the ")
    assert incomplete.problem.endswith("; and 1 more suite")


def test_origin__latest_time_and_fewest_samples() -> None:
    early = replace(results.result("a"), timestamp="2026-01-01T23:00:00-02:00")
    late = replace(early, timestamp="2026-01-01T23:30:00Z", samples=early.samples * 3)
    actual = describe_origin("file", [early, late, replace(late, timestamp="yesterday")], "c" * 40)
    assert actual == BaselineOrigin("file", "c" * 40, time=early.timestamp, samples=1)
