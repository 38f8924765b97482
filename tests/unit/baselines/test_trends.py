"""The development of suites over stored runs, and the file that keeps it."""

from dataclasses import replace

import pytest

from agentevals_action.baselines import history, history_branch, history_format, trends
from agentevals_action.baselines.trends import QuarantinedTest, SuiteTrend, format_trends
from agentevals_action.model.result import (
    Fingerprint,
    SampleResult,
    SuiteRun,
    TestResult,
    TraceSummary,
    Verdict,
)
from tests.support import results
from tests.support.results import SCORES, fingerprint
from tests.support.trends import point, time_of, trend

PATH = "evals/EVAL.yaml"


def ran(
    id: str,
    *verdicts: Verdict,
    cost: float | None = None,
    ms: float | None = None,
    print: Fingerprint | None = None,
    cached: bool = False,
) -> TestResult:
    figures = TraceSummary(cost_usd=cost, duration_ms=ms)
    samples = tuple(
        SampleResult(score=SCORES[one], verdict=one, trace_summary=figures, cached=cached)
        for one in verdicts
    )
    return replace(results.result(id, verdicts[0], print=print), samples=samples)


def commit(number: int) -> str:
    return f"{number + 1:040x}"


class Branch(dict[str, str]):
    """A results branch in memory."""

    def store(
        self, number: int, *tests: TestResult, path: str = PATH, held: tuple[str, ...] = ()
    ) -> SuiteTrend:
        quarantine = [
            QuarantinedTest(id=one, owner="@ada", reason="moody", expires="2026-02-01")
            for one in held
        ]
        return self.store_run(number, results.run(*tests, path=path), quarantine)

    def store_run(
        self, number: int, run: SuiteRun, quarantine: list[QuarantinedTest] | None = None
    ) -> SuiteTrend:
        update = history_branch.update_files(
            self.keys(),
            self.__getitem__,
            [run],
            commit(number),
            time_of(number),
            {run.path: quarantine or []},
        )
        self.update(update.files)
        (found,) = (one for one in update.trends if one.path == run.path)
        return found


def test_run__is_a_point_with_its_totals() -> None:
    branch = Branch()
    branch.store(0, ran("a", "pass"), ran("b", "pass"))
    found = branch.store(
        1,
        ran("a", "pass", cost=0.1, ms=100),
        ran("b", "fail", cost=0.3, ms=300),
        results.result("c", None),
        held=("b",),
    )
    last = found.points[-1]
    assert [one.commit for one in found.points] == [commit(0), commit(1)]
    assert (last.tests, last.passed, last.errored, last.scored) == (3, 1, 1, 2)
    assert last.cost == pytest.approx(0.2)
    assert (last.p50, last.p95) == (100, 300)
    assert (last.quarantined, [one.id for one in found.quarantine]) == (1, ["b"])


def test_changes__count_the_tests_with_another_fingerprint() -> None:
    branch = Branch()
    branch.store(0, ran("a", "pass"), ran("b", "pass"))
    new_model = fingerprint(agent="other")
    found = branch.store(1, ran("a", "pass", print=new_model), ran("b", "pass", print=new_model))
    assert (found.points[1].agent, found.points[1].question, found.points[1].grading) == (2, 0, 0)
    asked = replace(new_model, question="other", grading="other")
    found = branch.store(2, ran("a", "pass", print=asked), ran("b", "pass", print=new_model))
    assert (found.points[2].agent, found.points[2].question, found.points[2].grading) == (0, 1, 1)
    found = branch.store(3, ran("a", "pass", print=asked), ran("new", "pass"))
    assert (found.points[3].agent, found.points[3].question, found.points[3].grading) == (0, 0, 0)


def test_flake_rate__is_the_share_of_neighbours_that_differ_with_one_fingerprint() -> None:
    branch = Branch()
    branch.store(0, ran("moody", "pass", "fail", "pass"), ran("steady", "pass"))
    branch.store(1, ran("moody", "fail", "fail"), ran("steady", "pass"))
    found = branch.store(2, ran("moody", "borderline"), ran("steady", "pass"))
    (test,) = found.tests
    assert (found.flaky, test.id, test.passed, test.samples, test.flips) == (1, "moody", 2, 6, 3)
    assert test.rate == pytest.approx(3 / 5)
    fixed = fingerprint(agent="fixed")
    assert branch.store(3, ran("moody", "pass", print=fixed), ran("steady", "pass")).tests == ()


def test_cached_run__is_a_complete_point() -> None:
    # Cached samples are not stored next to fresh ones: a point of the stored samples of this commit
    # would have one test.
    branch = Branch()
    branch.store(0, ran("a", "pass"), ran("b", "pass"))
    other = fingerprint(question="other")
    found = branch.store(1, ran("a", "pass", cached=True), ran("b", "fail", print=other))
    assert [(one.tests, one.passed) for one in found.points] == [(2, 2), (2, 1)]


def test_same_run_again__is_one_point() -> None:
    branch = Branch()
    branch.store(0, ran("a", "pass"))
    assert len(branch.store(0, ran("a", "pass", "fail")).points) == 1


def test_branch_of_an_earlier_version__starts_with_its_complete_runs() -> None:
    branch = Branch()
    old, new = fingerprint(), fingerprint(agent="other")
    branch.store(0, ran("a", "pass", cost=0.2, ms=10, print=old), ran("b", "fail", print=old))
    branch.store(1, ran("a", "pass", print=new), ran("b", "pass", print=new))
    # The second test ended in an error: the rest is not the suite's pass rate.
    branch.store(2, ran("a", "fail", print=new), results.result("b", None, print=new))
    branch.store(3, ran("a", "pass", print=new), ran("b", "pass", print=new))
    del branch["trends.json"]
    (found,) = history_branch.all_trends(branch.keys(), branch.__getitem__)
    assert [(one.commit, one.passed, one.tests, one.agent) for one in found.points] == [
        (commit(0), 1, 2, 0),
        (commit(1), 2, 2, 2),
        (commit(3), 2, 2, 0),
    ]
    assert (found.points[0].cost, found.points[0].p95) == (0.2, 10)
    again = branch.store(4, ran("a", "pass", print=new), ran("b", "pass", print=new))
    assert [one.commit for one in again.points] == [commit(0), commit(1), commit(3), commit(4)]


def test_branch_of_an_earlier_version__runs_whose_samples_were_dropped_are_left_out() -> None:
    branch = Branch()
    for number in range(history.FINGERPRINTS + 1):
        prints = fingerprint(agent=str(number))
        branch.store(number, ran("changes", "fail", print=prints), ran("same", "pass"))
    kept = branch[history_format.file_name(PATH)]
    stored = history_format.read_history(kept, PATH)
    assert not isinstance(stored, str)
    found = trends.of_history(stored)
    assert found is not None
    assert [one.commit for one in found.points] == [commit(1), commit(2), commit(3)]
    assert all((one.tests, one.passed) == (2, 1) for one in found.points)


@pytest.mark.parametrize(
    "damage",
    [
        *("", "{}", "[", '{"version":2,"suites":[]}'),
        format_trends([trend(path=PATH, runs=1)]).replace('"passed":17', '"passed":20'),
    ],
)
def test_damaged_file__starts_again_with_the_stored_samples(damage: str) -> None:
    branch = Branch()
    branch.store(0, ran("a", "pass"))
    assert damage != branch["trends.json"]
    branch["trends.json"] = damage
    found = branch.store(1, ran("a", "pass"))
    assert [one.commit for one in found.points] == [commit(0), commit(1)]


@pytest.mark.parametrize("number", [-1.0, float("inf"), float("nan")])
def test_figures_that_no_agent_has__are_left_out(number: float) -> None:
    tests = (ran("a", "pass", cost=number, ms=number), ran("b", "pass", cost=1.0, ms=1.0))
    run = results.run(*tests, path=PATH)
    fresh, _ = history.of_run(results.run(ran("a", "pass"), path=PATH), commit(0), time_of(0))
    (found,) = trends.with_run(None, run, fresh, None, fresh, []).points
    assert (found.cost, found.p50, found.p95) == (1.0, 1.0, 1.0)


def test_figures_whose_sum_is_infinite__have_a_mean() -> None:
    tests = (ran("a", "pass", cost=1.7e308), ran("b", "pass", cost=1.7e308))
    (found,) = Branch().store_run(0, results.run(*tests, path=PATH)).points
    assert found.cost == pytest.approx(1.7e308)


def test_bounds__keep_the_last_points_and_the_suites_that_ran_last() -> None:
    (long,) = trends.bounded([trend(runs=trends.POINTS + 7)])
    assert (len(long.points), long.points[0].time) == (trends.POINTS, time_of(7))
    many = [trend(f"{number:04}", runs=30) for number in range(trends.SUITES)]
    fresh = trend("fresh", runs=31)
    kept = trends.bounded([*many, fresh])
    assert fresh.path in [one.path for one in kept]
    assert len(kept) == trends.SUITES
    assert sum(len(one.points) for one in kept) <= trends.ALL_POINTS
    assert sum(len(one.tests) for one in kept) == trends.ALL_TESTS
    assert trends.read_trends(trends.format_trends(kept)) == kept


def test_overall__is_of_each_suite_its_last_run() -> None:
    one = trend("one", runs=0 + 2)
    one = one.model_copy(update={"points": (point(0, 5, 10), point(4, 10, 10))})
    other = one.model_copy(update={"path": "other", "points": (point(2, 1, 10, errored=2),)})
    found = trends.overall([one, other], 10)
    assert [(each.passed, each.scored) for each in found] == [(5, 10), (6, 18), (11, 18)]
    assert trends.overall([one, other], 2) == found[-2:]


def test_overall__of_a_time_that_has_no_days_before_it() -> None:
    first = point(0).model_copy(update={"time": "0001-01-01T00:00:00.000Z"})
    (found,) = trends.overall([trend().model_copy(update={"points": (first,)})], 10)
    assert (found.passed, found.scored) == (18, 20)


def test_overall__a_suite_that_does_not_run_any_more_ends_to_count() -> None:
    gone = trend("gone").model_copy(update={"points": (point(0, 0, 10),)})
    days = 4 * (history.FORGOTTEN_DAYS + 1)  # four runs a day
    lives = gone.model_copy(
        update={"path": "lives", "points": (point(1, 9, 10), point(days, 9, 10))}
    )
    assert [(one.passed, one.scored) for one in trends.overall([gone, lives], 10)] == [
        (0, 10),
        (9, 20),
        (9, 10),
    ]
