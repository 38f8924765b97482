"""The benchmark of calibrations: the bounds hold as often as they claim. The numbers of labels in
the documentation are based on it."""

import runpy
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("statsmodels", reason="needs the extra `judges`")

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "judges.py"


@pytest.fixture(scope="module")
def judges() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(20, 1), (40, 1), (20, 3)])
@pytest.mark.parametrize("judge", [(0.9, 0.8), (0.8, 0.6)])
def test_bounds__hold_in_at_least_90_percent_of_calibrations(
    judges: dict[str, Any], size: tuple[int, int], judge: tuple[float, float]
) -> None:
    held = judges["coverage"](size, judge, 1000, Random(1), resamples=2)
    shares = {name: held[name] for name in ("sensitivity", "specificity", "agreement")}
    assert min(shares.values()) >= 0.9, shares


@pytest.mark.slow
def test_bound_of_kappa__holds_in_about_90_percent_of_calibrations(judges: dict[str, Any]) -> None:
    held = judges["coverage"]((40, 1), (0.9, 0.8), 200, Random(1), resamples=200)
    assert held["kappa"] >= 0.88


def test_bounds__as_if_answers_to_one_test_were_not_alike_hold_less_often(
    judges: dict[str, Any],
) -> None:
    held = judges["coverage"]((20, 3), (0.9, 0.8), 200, Random(1), resamples=2)
    assert held["naive"] < 0.9 < held["specificity"]


@pytest.mark.parametrize(
    ("floor", "wrong", "labels"), [(0.7, 0, 9), (0.7, 1, 14), (0.8, 0, 14), (0.9, 0, 29)]
)
def test_least_labels__of_a_floor(
    judges: dict[str, Any], floor: float, wrong: int, labels: int
) -> None:
    assert judges["least_labels"](floor, wrong) == labels
