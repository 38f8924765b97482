"""Builders of trends, for tests of what shows them."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from agentevals_action.baselines import history_branch
from agentevals_action.baselines.trends import FlakyTest, Point, QuarantinedTest, SuiteTrend
from tests.support import results
from tests.support.repositories import Repository

BRANCH = "agentevals-data"
START = datetime(2026, 1, 1, 10, tzinfo=UTC)


def time_of(number: int) -> str:
    """The time of a run: one every six hours."""
    moment = START + timedelta(hours=6 * number)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def point(number: int, passed: int = 18, tests: int = 20, **fields: Any) -> Point:
    return Point(
        time=time_of(number),
        commit=f"{(number + 1) * 7919:08x}{number:032x}",
        tests=tests,
        passed=passed,
        **fields,
    )


def trend(path: str = "evals/EVAL.yaml", runs: int = 40, **fields: Any) -> SuiteTrend:
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
                score=round((0.82 if worse else 0.91) + 0.03 * wave, 4),
                cost=round((0.004 if worse else 0.0025) * (1 + 0.2 * wave), 6),
                p50=round(1800 + 300 * wave, 1),
                p95=round(4200 + 900 * wave, 1),
                agent=20 if number == runs // 3 else 0,
                question=2 if number == runs * 2 // 3 else 0,
                grading=3 if number == runs * 2 // 3 else 0,
                quarantined=int(number > runs // 2),
            )
        )
    flaky = FlakyTest(id="refund-window", passed=31, samples=50, flips=17)
    held = QuarantinedTest(
        id="refund-window", owner="@ada", reason="the model changed", expires="2027-01-31"
    )
    made = {"flaky": 1, "tests": (flaky,), "quarantine": (held,), **fields}
    return SuiteTrend(path=path, name="suite", points=tuple(points), **made)


def store(repository: Repository, runs: int) -> None:
    """Writes the data branch with this number of runs."""
    files: dict[str, str] = {}
    for number in range(runs):
        update = history_branch.update_files(
            files.keys(),
            files.__getitem__,
            [results.run(results.result("a"), results.result("b", "fail"))],
            f"{number + 1:040x}",
            time_of(number),
            {},
        )
        files |= update.files
    repository.git("checkout", "--quiet", "--orphan", "new")
    repository.git("rm", "-rfq", ".")
    repository.commit("results", files)
    repository.git("branch", "--force", BRANCH, "new")
    repository.git("checkout", "--quiet", "main")
    repository.git("branch", "--quiet", "-D", "new")
