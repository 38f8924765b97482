"""The newest stored run whose fingerprints are those of base, and its history."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.baselines.base import Unavailable
from agentevals_action.baselines.stored import SAMPLES, StoredSource
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.baseline import BaselineOrigin, BaseSuite, StoredRun
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite
from tests.support import base_tree, results


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return base_tree.greeter(tmp_path)


def run(day: int, rows: Sequence[TestResult]) -> StoredRun:
    return StoredRun(tuple(rows), f"{day:040x}", f"2026-01-{day:02}T00:00:00.000+00:00")


def of(suite: Suite, changes: Mapping[str, Mapping[str, Any]] | None = None) -> list[TestResult]:
    return list(base_tree.results_of(suite, changes))


def found(suite: Suite, *runs: StoredRun, problem: str = "") -> BaseSuite:
    """What base takes of these runs, the newest of which is the last."""

    async def is_ancestor(commit: str) -> bool:
        return int(commit, 16) < 5

    of = Fingerprints().of
    source = StoredSource(
        "branch", "`data`", runs[::-1], problem, of, of, base_tree.NOW, 14.0, is_ancestor
    )
    return asyncio.run(source.find(suite))


def reason(suite: Suite, *runs: StoredRun, problem: str = "") -> str:
    with pytest.raises(Unavailable) as caught:
        found(suite, *runs, problem=problem)
    return str(caught.value)


def test_stored__the_newest_run_that_fits_with_the_samples_of_the_others(suite: Suite) -> None:
    other = results.fingerprint()
    taken = found(
        suite,
        run(1, of(suite, {"short": {"verdict": "fail"}})),
        run(3, of(suite)),
        run(6, of(suite, {"short": {"print": other}})),
        run(7, of(suite)[:1]),
    )
    time = "2026-01-03T00:00:00.000+00:00"
    assert taken.origin == BaselineOrigin("branch", f"{3:040x}", True, time, 2)
    greets, short = taken.rows
    assert [sample.verdict for sample in short.samples] == ["fail", "pass"]
    assert len(greets.samples) == 4


def test_stored__a_commit_after_base_and_an_old_run_are_marked(suite: Suite) -> None:
    assert found(suite, run(6, of(suite))).origin.is_ancestor is False
    old = replace(run(1, of(suite)), time="2025-12-01T00:00:00.000+00:00")
    assert found(suite, old).origin.stale


def test_stored__without_a_run_that_fits_the_newest_and_the_damage_are_named(suite: Suite) -> None:
    other = results.fingerprint()
    runs = (run(1, []), run(2, of(suite, {"short": {"print": other}})))
    assert reason(suite, *runs, problem="`x`") == (
        f"`x`; `data`: the results of {2:012}: the test `short` was run with another question and "
        "grading and agent than the base has"
    ).replace(f"{2:012}", f"{2:040x}"[:12])
    assert reason(suite, problem="no branch") == "no branch"
    assert reason(suite) == "`data` has no results of it"


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
    (row, _) = found(suite, *runs).rows
    assert len(row.samples) == SAMPLES
    assert [one.candidate_answer for one in row.samples if one.output_messages] == ["52"]
    cached = answered("again", cached=True)
    (row, _) = found(suite, run(1, answered("fresh")), run(2, cached)).rows
    assert [one.candidate_answer for one in row.samples] == ["fresh"]
    (row, _) = found(suite, run(1, cached), run(2, cached)).rows
    assert len(row.samples) == 1


def test_stored__an_answer_that_cannot_be_scored_again_is_none(suite: Suite) -> None:
    rows = [
        replace(
            row, samples=tuple(replace(one, output_messages=({"role": 3},)) for one in row.samples)
        )
        for row in of(suite)
    ]
    (row, _) = found(suite, run(1, rows)).rows
    assert (row.verdict, row.samples[0].output_messages) == ("pass", ())
