"""Builders of trends, for tests of what shows them."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from agentevals_action.baselines.run_files import file_name, write_run
from agentevals_action.baselines.trends import FlakyTest, Idle, Point, SuiteTrend
from agentevals_action.model.result import TestResult
from tests.support import results
from tests.support.repositories import Repository

BRANCH = "agentevals-data"
START = datetime(2026, 1, 1, 10, tzinfo=UTC)


def time_of(number: int) -> datetime:
    """The time of a run: one every six hours."""
    return START + timedelta(hours=6 * number)


def point(number: int, passed: int = 18, tests: int = 20, **fields: Any) -> Point:
    return Point(
        time=time_of(number).isoformat(timespec="milliseconds"),
        commit=f"{(number + 1) * 7919:08x}{number:032x}",
        tests=tests,
        passed=passed,
        **fields,
    )


def trend(
    path: str = "evals/EVAL.yaml", runs: int = 40, flaky: str = "refund-window"
) -> SuiteTrend:
    """A suite whose agent changes at a third of its runs, and gets worse; its questions and grading
    change later, and one of its runs has errors."""
    points = []
    for number in range(runs):
        worse = number >= runs // 3
        wave = math.sin(number * 1.7 + len(path))
        points.append(
            point(
                number,
                passed=round((16 if worse else 18) + 1.4 * wave),
                errored=int(number == runs // 2),
                cost=round((0.004 if worse else 0.0025) * (1 + 0.2 * wave), 6),
                agent=20 if number == runs // 3 else 0,
                question=2 if number == runs * 2 // 3 else 0,
                grading=3 if number == runs * 2 // 3 else 0,
            )
        )
    return SuiteTrend(
        path,
        tuple(points),
        (FlakyTest(flaky, passed=31, samples=50, flips=17),),
        idle=(
            Idle("never failed", (flaky, "opening-hours"), 50, "privacy"),
            Idle("never passed", (flaky,), 12, "names the price"),
            Idle("never scored", ("sums-up",), 9),
        ),
    )


def store(repository: Repository, runs: int, *rows: TestResult) -> None:
    """Writes the data branch with this number of runs, of two tests by default."""
    rows = rows or (results.result("a"), results.result("b", "fail"))
    files = {
        file_name(time_of(number), f"{number + 1:040x}", number): write_run(rows)
        for number in range(runs)
    }
    repository.git("checkout", "--quiet", "--orphan", "new")
    repository.git("rm", "-rfq", ".")
    repository.commit("results", files)
    repository.git("branch", "--force", BRANCH, "new")
    repository.git("checkout", "--quiet", "main")
    repository.git("branch", "--quiet", "-D", "new")
