"""The benchmark of conditions on cost and time: how often they are decided as they are. The figures
of the documentation are based on it."""

import runpy
from pathlib import Path
from random import Random
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "increases.py"


@pytest.fixture(scope="module")
def increases() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    ("figure", "size", "rise", "limit", "least", "most"),
    [
        # Half of alpha; a limit of 0 leaves no room for noise.
        ("cost", (5, 1, 0.25), 0.0, 0.0, 0.0, 0.05),
        ("latency", (5, 1, 0.25), 0.0, 0.0, 0.0, 0.05),
        ("cost", (20, 1, 0.4), 0.1, 0.1, 0.0, 0.05),
        pytest.param("cost", (60, 1, 0.25), 0.3, 0.1, 0.8, 1.0, marks=pytest.mark.slow),
        pytest.param("latency", (60, 1, 0.25), 0.3, 0.1, 0.8, 1.0, marks=pytest.mark.slow),
    ],
)
def test_shares__level_and_power(
    increases: dict[str, Any],
    figure: str,
    size: tuple[int, int, float],
    rise: float,
    limit: float,
    least: float,
    most: float,
) -> None:
    blocked, _, _ = increases["shares"](figure, size, rise, limit, 60, Random(1))
    assert least <= blocked <= most
