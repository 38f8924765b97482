"""The benchmark of pairs of answers: how often head's are called worse. The figures of the
documentation are based on it."""

import runpy
from pathlib import Path
from random import Random
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "pairwise.py"


@pytest.fixture(scope="module")
def pairwise() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    ("decisive", "share", "losses", "confirmed", "least", "most"),
    [
        (20, 1.0, 0.5, False, 0.0, 0.025),  # the level
        (60, 1.0, 0.5, False, 0.0, 0.025),
        (60, 1.0, 0.5, True, 0.0, 0.01),
        (4, 1.0, 1.0, False, 0.0, 0.0),
        (60, 1.0, 0.7, False, 0.8, 0.95),
        (60, 0.5, 0.7, False, 0.4, 0.7),  # the losses must be a fifth of all pairs
        (60, 1.0, 0.8, True, 0.9, 1.0),
    ],
)
def test_share__level_and_power(
    pairwise: dict[str, Any],
    decisive: int,
    share: float,
    losses: float,
    confirmed: bool,
    least: float,
    most: float,
) -> None:
    measure, rng = pairwise["share_found"], Random(1)
    found = measure(decisive, share, losses, 400, rng, confirmed=confirmed)
    assert least <= found <= most
