"""The measurement of false blocks and misses: its arithmetic, and that a seed gives its table."""

import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agentevals_action.model.comparison import SmallestDrop
from agentevals_action.review.comparison.power import with_head

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "regressions.py"


@pytest.fixture(scope="module")
def regressions() -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(SCRIPT.parent)
        yield runpy.run_path(str(SCRIPT), run_name="regressions")


def test_fisher__known_values(regressions: dict[str, Any]) -> None:
    fisher = regressions["fisher"]
    assert fisher(4, 4, 0, 4) == pytest.approx(1 / 70)
    assert fisher(3, 4, 1, 4) == pytest.approx(17 / 70)
    assert fisher(0, 6, 0, 20) == 1
    assert fisher(6, 6, 0, 20) == pytest.approx(1 / 230230)


def test_pool__holds_as_often_as_it_says(regressions: dict[str, Any]) -> None:
    for rate in (0.0, 0.3, 0.98, 1.0):
        assert sum(sample.verdict == "pass" for sample in regressions["pool"](rate)) == round(
            100 * rate
        )


@pytest.mark.slow
def test_table__the_same_seed_gives_the_same() -> None:
    first, again, other = (
        subprocess.run(
            [sys.executable, str(SCRIPT), "--pull-requests", "1", "--seed", seed],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "1", "2")
    )
    assert first == again != other
    assert len(first.splitlines()) == 2 + 24 + 12 + 8
    assert "one broken: 0.95 → 0" in first


@pytest.mark.slow
def test_runners__unchanged_pull_requests_pass_and_a_broken_test_is_found(
    regressions: dict[str, Any],
) -> None:
    for scenario in regressions["scenarios"]():
        if scenario.runner:
            measured = regressions["measure"](scenario, 40, 1)
            if scenario.broken is None:
                assert measured.blocked <= 0.05 * measured.count, scenario.name
            else:
                assert measured.found >= 0.95 * measured.count, scenario.name


#: Tests, their pass rate on base, samples of base's history, and samples on head.
SUITES = [
    (1, 0.9, 1, 1),
    (3, 0.8, 5, 1),
    (5, 0.9, 3, 3),
    (10, 1.0, 1, 1),
    (20, 0.9, 1, 1),
    (20, 0.9, 20, 1),
    (20, 0.9, 5, 3),
    (50, 0.98, 1, 1),
    (50, 0.98, 20, 1),
    (100, 0.8, 20, 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("tests", "base", "history", "samples"), SUITES)
def test_smallest_drop__is_found_in_about_four_of_five_simulated_pull_requests(
    regressions: dict[str, Any], tests: int, base: float, history: int, samples: int
) -> None:
    simulation, pool = regressions["simulation"], regressions["pool"]
    conditions, count = simulation.Conditions(history=history, samples=samples), 400
    inputs = (samples, conditions.confirm, conditions.alpha)
    head = with_head(SmallestDrop(tests, *inputs, base, history)).head
    urns = [
        simulation.Urn(("suite", f"test-{number}"), pool(base), pool(head))
        for number in range(tests)
    ]
    found = sum(
        bool(each.regressed)
        for each in simulation.pull_requests(urns, conditions, count, Random(1))
    )
    assert 0.7 <= found / count <= 0.9
