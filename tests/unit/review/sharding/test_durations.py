"""The expected durations of tests."""

import math
from dataclasses import replace

import pytest

from agentevals_action.model.result import TestResult, TraceSummary
from agentevals_action.review.sharding.durations import collect_durations
from tests.support.reviews import result


def finished(id: str, *seconds: float, cached: bool = False) -> TestResult:
    made = result(id)
    samples = tuple(
        replace(
            made.samples[0], trace_summary=TraceSummary(duration_ms=value * 1000), cached=cached
        )
        for value in seconds
    )
    return replace(made, eval_path="s", samples=samples)


def test_durations__the_median_of_the_others_for_an_unknown_test() -> None:
    found = collect_durations([finished("a", 1.0), finished("b", 3.0, 2.0, 9.0)])
    assert (found.of(("s", "b")), found.of(("s", "new"))) == (3.0, 2.0)
    assert found.of(("new", "a"), ("s", "a")) == 1.0
    assert found.note([[("s", "a")], [("s", "new")]]) == (
        "the duration of 1 of 2 tests is unknown: 2.0 s is assumed (the median of the others)"
    )


def test_durations__a_cached_answer_does_not_count() -> None:
    found = collect_durations([finished("a", 0.01, cached=True)])
    assert not found.known
    assert "nothing is known of earlier runs" in found.note([[("s", "a")]])


@pytest.mark.parametrize("seconds", [1e305, math.inf, math.nan, -1.0])
def test_durations__an_impossible_one_is_unknown(seconds: float) -> None:
    """Accident: an agent reports times whose sum is infinite, and nothing can be planned."""
    assert collect_durations([finished("a", seconds, 2.0)]).of(("s", "a")) == 2.0
    assert not collect_durations([finished("a", seconds)]).known
