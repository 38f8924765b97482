"""The newest stored run whose fingerprints are those of base, and its history."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.baselines.stored import SAMPLES, StoredBaseline
from agentevals_action.model.baseline import BaselineOrigin, BaseRun, StoredRun
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite
from tests.support import base_tree, results

PATH = base_tree.PATH


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return base_tree.greeter(tmp_path)


def run(day: int, rows: Sequence[TestResult]) -> StoredRun:
    return StoredRun(tuple(rows), f"{day:040x}", f"2026-01-{day:02}T00:00:00.000+00:00")


def of(suite: Suite, changes: Mapping[str, Mapping[str, Any]] | None = None) -> list[TestResult]:
    return list(base_tree.results_of(suite, changes))


def found(suite: Suite, *runs: StoredRun, problem: str = "") -> BaseRun:
    """What base takes of these runs, the newest of which is the last."""

    async def is_ancestor(commit: str) -> bool:
        return int(commit, 16) < 5

    baseline = StoredBaseline(
        "branch",
        "`data`",
        base_tree.tree(suite),
        base_tree.FRESH,
        runs[::-1],
        problem,
        is_ancestor,
    )
    return asyncio.run(baseline.results(base_tree.select(PATH, "new/EVAL.yaml")))


def test_stored__the_newest_run_that_fits_with_the_samples_of_the_others(suite: Suite) -> None:
    other = results.fingerprint()
    taken = found(
        suite,
        run(1, of(suite, {"short": {"verdict": "fail"}})),
        run(3, of(suite)),
        run(6, of(suite, {"short": {"print": other}})),
        run(7, of(suite)[:1]),
    )
    assert taken.origins == {
        PATH: BaselineOrigin("branch", f"{3:040x}", True, "2026-01-03T00:00:00.000+00:00", 2)
    }
    greets, short = taken.suites[PATH].results
    assert [sample.verdict for sample in short.samples] == ["fail", "pass"]
    assert len(greets.samples) == 4
    assert taken.missing == {"new/EVAL.yaml": "the suite is new"}


def test_stored__a_commit_after_base_and_an_old_run_are_marked(suite: Suite) -> None:
    assert found(suite, run(6, of(suite))).origins[PATH].is_ancestor is False
    old = replace(run(1, of(suite)), time="2025-12-01T00:00:00.000+00:00")
    assert found(suite, old).origins[PATH].stale


def test_stored__without_a_run_that_fits_the_newest_and_the_damage_are_named(suite: Suite) -> None:
    other = results.fingerprint()
    taken = found(suite, run(1, []), run(2, of(suite, {"short": {"print": other}})), problem="`x`")
    assert (taken.suites, taken.info.wanted) == ({}, True)
    assert taken.problems[PATH] == (
        f"`x`; `data`: the results of {2:012}: the test `short` was run with another question and "
        "grading and agent than the base has"
    ).replace(f"{2:012}", f"{2:040x}"[:12])
    assert found(suite, problem="no branch").problems[PATH] == "no branch"
    assert found(suite).problems[PATH] == "`data` has no results of it"


def test_stored__one_answer_and_the_latest_samples_count(suite: Suite) -> None:
    def answered(text: str, **fields: Any) -> list[TestResult]:
        message = {"role": "assistant", "content": text}
        return [
            replace(
                row,
                samples=tuple(
                    replace(one, output_messages=(message,), candidate_answer=text, **fields)
                    for one in row.samples
                ),
            )
            for row in of(suite)
        ]

    runs = [run(number % 28 + 1, answered(str(number))) for number in range(SAMPLES + 3)]
    (row, _) = found(suite, *runs).suites[PATH].results
    assert len(row.samples) == SAMPLES
    assert [one.candidate_answer for one in row.samples if one.output_messages] == ["52"]
    cached = answered("again", cached=True)
    (row, _) = found(suite, run(1, answered("fresh")), run(2, cached)).suites[PATH].results
    assert [one.candidate_answer for one in row.samples] == ["fresh"]
    (row, _) = found(suite, run(1, cached), run(2, cached)).suites[PATH].results
    assert len(row.samples) == 1


def test_stored__an_answer_that_cannot_be_scored_again_is_none(suite: Suite) -> None:
    rows = [
        replace(
            row, samples=tuple(replace(one, output_messages=({"role": 3},)) for one in row.samples)
        )
        for row in of(suite)
    ]
    (row, _) = found(suite, run(1, rows)).suites[PATH].results
    assert (row.verdict, row.samples[0].output_messages) == ("pass", ())
