"""The origin of the baseline, and differences with their intervals."""

from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.model.baseline import BaselineInfo, BaselineOrigin, IncompleteSource
from agentevals_action.model.comparison import Difference, SuiteComparison
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.reports.view import suite_table
from agentevals_action.reports.view.models import Links
from tests.support import reviews


def comment(*suites: SuiteComparison, **fields: Any) -> str:
    return reviews.comment(reviews.review(*suites, **fields), Links())


def with_differences(**fields: Any) -> SuiteComparison:
    return replace(reviews.compared((reviews.result("a"),), (reviews.result("a"),)), **fields)


@pytest.mark.parametrize(
    ("figure", "numbers", "text"),
    [
        (
            "score",
            (0.03, -0.01, 0.07, 0.1),
            "score +0.03 (−0.01 to +0.07): not significant; this suite can "
            "detect changes from 0.10",
        ),
        (
            "score",
            (0.2, -0.9, 1.3, 1.6),
            "score +0.20 (−0.90 to +1.30): not significant; this suite has too few tests",
        ),
        ("score", (-0.2, -0.31, -0.004, 0.1), "score −0.20 (−0.31 to −0.004): lower than on base"),
        ("score", (-0.8, -0.8, -0.8, 0.0), "score −0.80: lower than on base"),
        ("score", (0.01, 0.00001, 0.02, 0.1), "score +0.01 (just above 0 to +0.02): higher than"),
        ("cost", (0.002, 0.001, 0.003, 0.001), "cost +$0.0020 (+$0.0010 to +$0.0030): more exp"),
        ("duration", (-2e3, -3e3, -1e3, 1.0), "time −2.0 s (−3.0 s to −1.0 s): faster than on"),
        ("duration", (-400.0, -780.0, -20.0, 1.0), "time −0.4 s (−0.8 s to just below 0): faster"),
        ("duration", (400.0, 0.0, 800.0, 1.0), "time +0.4 s (0.0 s to +0.8 s): not sign"),
    ],
)
def test_differences__in_words(
    figure: str, numbers: tuple[float, float, float, float], text: str
) -> None:
    suite = with_differences(**{figure: Difference(*numbers, pairs=9, clusters=9)})
    (line,) = suite_table.difference_lines(suite)
    assert line.startswith(text)


def test_differences__that_no_figure_shows_are_not_shown() -> None:
    nothing, tiny = Difference(0.0, 0.0, 0.0, 0.0, 9, 9), Difference(0.000001, -1.0, 1.0, 1.0, 9, 9)
    assert (
        suite_table.difference_lines(with_differences(score=nothing, cost=tiny, duration=tiny))
        == ()
    )
    sure = Difference(0.00004, 0.00001, 0.00007, 0.0, 9, 9)
    assert (
        suite_table.difference_lines(with_differences(score=sure, cost=sure, duration=sure)) == ()
    )
    assert suite_table.difference_lines(with_differences()) == ()


def test_pooled__is_over_all_questions() -> None:
    up, down = Difference(0.1, 0.0, 0.2, 0.14, 30, 30), Difference(-0.1, -0.2, 0.0, 0.14, 10, 5)
    both = suite_table.pool_differences([up, down])
    assert both is not None
    assert (both.pairs, both.clusters) == (40, 35)
    assert both.mean == pytest.approx(0.05)
    assert both.high - both.mean == pytest.approx((3**2 + 1) ** 0.5 / 40)
    assert suite_table.pool_differences([up, None]) is None
    assert suite_table.pool_differences([]) is None


def origin_words(origin: BaselineOrigin) -> str:
    head = base = tuple(reviews.result(f"t{number}") for number in range(3))
    lines = comment(reviews.compared(head, base, origin=origin)).splitlines()
    return next(line for line in lines if line.startswith("Compared")).partition("UTC")[2]


def test_baseline__one_source_for_all_is_in_the_sentence() -> None:
    assert (
        origin_words(BaselineOrigin("rerun", reviews.BASE))
        == ", run again with the base's own files."
    )
    stored = BaselineOrigin("branch", reviews.BASE, "2025-12-31T23:00:00Z", 20)
    assert (
        origin_words(stored)
        == ": stored results of that commit, at least 20 samples per test, the latest of 2025-12-31 23:00 UTC."
    )
    before = replace(
        stored, commit="0ddba11" * 5, time="2025-12-01T00:00:00Z", samples=1, stale=True
    )
    assert origin_words(before) == (
        ": stored results of `0ddba11`, at least 1 sample per test, the latest of 2025-12-01 00:00 UTC"
        " (31 days old), **stale**: older than `baseline-max-age`."
    )
    assert (
        origin_words(BaselineOrigin("file", samples=3))
        == ": the baseline file, at least 3 samples per test."
    )


def test_baseline__sources_that_did_not_serve_state_why() -> None:
    tests = (reviews.result("a"),)
    baseline = replace(
        reviews.BASELINE,
        tried=(IncompleteSource("branch", "`agentevals-data` has no results of it @octocat"),),
    )
    text = comment(
        reviews.compared(tests, tests, origin=BaselineOrigin("rerun")), baseline=baseline
    )
    assert "<summary>Origin of the baseline</summary>" in text
    assert "- Stored results: `agentevals-data` has no results of it @&#8203;octocat" in text


def test_baseline__a_service_that_both_sides_ask_is_no_base() -> None:
    text = comment(reviews.compared((reviews.result("a"),), (), same_service=("a",)))
    assert "**Not compared** with the base" in text
    assert "Compared with the base" not in text
    assert (
        "- `evals/support/EVAL.yaml`: 1 test is not comparable: both sides would ask the same "
        "service (with `start`, the target starts one for each side)" in text
    )


def test_notes__renamed_and_broken_bases_and_re_scored_tests_are_listed() -> None:
    tests = (reviews.result("a"),)
    suite = reviews.compared(tests, tests)
    rescored = (replace(suite.tests[0], rescored=True),)
    selection = replace(suite.run.selection, base_path="old/EVAL.yaml")
    renamed = replace(suite, tests=rescored, run=replace(suite.run, selection=selection))
    error = Diagnostic(Location("evals/new.yaml", 1, 1), "bad")
    new = reviews.compared(tests, None, path="evals/new.yaml", broken=error)
    text = comment(renamed, new)
    assert f"- `{reviews.PATH}`: on base `old/EVAL.yaml`; 1 test re-scored: their" in text
    assert "- `evals/new.yaml`: the suite is invalid on base" in text


def test_baseline__uncommitted_changes_are_no_commit() -> None:
    suite = reviews.compared((reviews.result("a"),), (reviews.result("a"),))
    text = comment(suite, uncommitted=("agent.py",))
    head = f"orking tree of `{reviews.HEAD[:7]}`"
    assert f"W{head}, compared with the base `{reviews.BASE[:7]}`" in text
    assert f" · w{head} · base `{reviews.BASE[:7]}` · " in text


def test_baseline__without_one_states_the_reason() -> None:
    suite = reviews.compared((reviews.result("a"),), None)
    nothing = BaselineInfo("none", wanted=False, reason="there is no base on `schedule`")
    text = comment(suite, baseline=nothing)
    assert "There is no base on `schedule`." in text
