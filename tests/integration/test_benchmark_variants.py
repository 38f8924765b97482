"""The benchmark of variants: how often they are decided as they are. The sizes of the documentation
are based on it."""

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
    ("measure", "size", "rates", "least", "most"),
    [
        ("share_found", (5, 3), (0.5, 0.5), 0.0, 0.05),  # the level
        ("share_found", (12, 3), (0.9, 0.9), 0.0, 0.05),
        ("share_found", (3, 1), (0.4, 0.8), 0.0, 0.0),
        ("share_found", (5, 3), (0.4, 0.8), 0.44, 0.64),
        ("share_found", (12, 3), (0.4, 0.8), 0.86, 0.98),
        ("share_found", (5, 3), (0.6, 0.8), 0.1, 0.26),
        ("share_blocked", (5, 3), (0.5, 0.5), 0.0, 0.05),
        ("share_blocked", (12, 3), (0.9, 0.9), 0.0, 0.05),
        ("share_blocked", (12, 3), (0.8, 0.4), 0.8, 0.98),
    ],
)
def test_share__level_and_power(
    variants: dict[str, Any],
    measure: str,
    size: tuple[int, int],
    rates: tuple[float, float],
    least: float,
    most: float,
) -> None:
    share = variants[measure](*size, rates, 250, Random(1))
    assert least <= share <= most


def test_review__without_a_condition_a_variant_blocks_nothing(variants: dict[str, Any]) -> None:
    found = [variants["review"](5, 3, (0.8, 0.2), Random(seed)) for seed in range(20)]
    assert [each.outcome for each in found] == [None] * 20
