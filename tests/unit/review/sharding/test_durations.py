"""The expected durations of tests."""

import math
from dataclasses import replace

import pytest

from agentevals_action.model.history import PastSample, Series, SuiteHistory
from agentevals_action.model.result import Fingerprint, TestResult, TraceSummary
from agentevals_action.review.sharding.durations import collect_durations
from tests.support.reviews import result

FINGERPRINT = Fingerprint(question="q", grading="g", agent="a")


def history(*seconds: float | None, cached: bool = False) -> SuiteHistory:
    samples = tuple(
        PastSample("t", "c", 0, 1.0, "pass", duration_ms=one and one * 1000, cached=cached)
        for one in seconds
    )
    return SuiteHistory("s", "s", {"known": (Series(FINGERPRINT, samples, "t"),)})


def finished(id: str, seconds: float) -> TestResult:
    made = result(id)
    summary = TraceSummary(duration_ms=seconds * 1000)
    sample = replace(made.samples[0], trace_summary=summary)
    return replace(made, eval_path="s", samples=(sample,))


def test_durations__the_median_of_the_stored_samples() -> None:
    found = collect_durations([history(1.0, 2.0, 9.0, None)], [finished("known", 50.0)])
    assert found.of(("s", "known")) == 2.0


def test_durations__the_median_of_the_others_for_an_unknown_test() -> None:
    found = collect_durations([], [finished("a", 1.0), finished("b", 3.0), finished("c", 100.0)])
    assert found.of(("s", "new")) == 3.0
    assert found.note([[("s", "a")], [("s", "new")]]) == (
        "the duration of 1 of 2 tests is unknown: 3.0 s is assumed (the median of the others)"
    )


def test_durations__a_cached_answer_says_nothing() -> None:
    found = collect_durations([history(0.01, cached=True)], [])
    assert not found.known
    assert "nothing is known of earlier runs" in found.note([[("s", "known")]])


def test_durations__a_renamed_suite_keeps_them() -> None:
    found = collect_durations([history(4.0)], [])
    assert found.of(("new", "known"), ("s", "known")) == 4.0
    assert found.note([[("new", "known"), ("s", "known")]]) == ""


@pytest.mark.parametrize("seconds", [1e305, math.inf, math.nan, -1.0])
def test_durations__an_impossible_one_is_unknown(seconds: float) -> None:
    """Accident: an agent reports times whose sum is infinite, and nothing can be planned."""
    assert collect_durations([history(seconds, 2.0)], []).of(("s", "known")) == 2.0
    assert not collect_durations([history(seconds)], [finished("a", seconds)]).known
