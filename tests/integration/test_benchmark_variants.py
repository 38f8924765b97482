"""The benchmark of the statistics of variants: their level, and the power that the documentation
of a suite's size is based on."""

import runpy
from pathlib import Path
from random import Random
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "variants.py"


@pytest.fixture(scope="module")
def variants() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    ("size", "rates", "least", "most"),
    [
        ((5, 3), (0.5, 0.5), 0.0, 0.05),  # the level
        ((12, 3), (0.9, 0.9), 0.0, 0.05),
        ((3, 1), (0.4, 0.8), 0.0, 0.0),
        ((5, 3), (0.4, 0.8), 0.46, 0.6),
        ((12, 3), (0.4, 0.8), 0.88, 0.96),
        ((5, 3), (0.6, 0.8), 0.12, 0.23),
    ],
)
def test_share_found__level_and_power(
    variants: dict[str, Any],
    size: tuple[int, int],
    rates: tuple[float, float],
    least: float,
    most: float,
) -> None:
    share = variants["share_found"](*size, rates, 600, Random(1))
    assert least <= share <= most
