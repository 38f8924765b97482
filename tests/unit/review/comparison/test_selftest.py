"""Figures about the samples of one commit."""

from dataclasses import replace

import pytest

from agentevals_action.model.result import ErrorInfo, SampleResult
from agentevals_action.review.comparison.selftest import Flakiness, blocked_together, measure
from tests.support import results

HOLDS = SampleResult(score=1.0, verdict="pass")
FAILS = SampleResult(score=0.0, verdict="fail")
GATE_FAILS = SampleResult(score=1.0, verdict="fail", gates_failed=("safe",))
ERROR = SampleResult(error=ErrorInfo(kind="target", message="refused"))


def of(*samples: SampleResult) -> Flakiness:
    return measure(replace(results.result("a", gates=("safe",)), samples=samples))


@pytest.mark.parametrize(
    ("samples", "flake_rate", "blocked"),
    [
        ((HOLDS, HOLDS, HOLDS), 0, 0),
        ((FAILS, FAILS), 0, 0),
        ((HOLDS, FAILS), 0.5, 0.5),
        ((HOLDS, HOLDS, HOLDS, FAILS), 0.25, 3 / 12),
        ((HOLDS, HOLDS, GATE_FAILS), 1 / 3, 2 / 6),
        ((HOLDS, HOLDS, ERROR), 0, 0),
        ((HOLDS, ERROR), None, None),
    ],
)
def test_measure__rates(
    samples: tuple[SampleResult, ...], flake_rate: float | None, blocked: float | None
) -> None:
    found = of(*samples)
    assert found.flake_rate == (None if flake_rate is None else pytest.approx(flake_rate))
    assert found.blocked == (None if blocked is None else pytest.approx(blocked))
    assert found.errors == samples.count(ERROR)
    assert found.message == ("refused" if found.errors else "")


def test_blocked_together__one_worse_test_is_enough() -> None:
    assert blocked_together([of(HOLDS, FAILS), of(HOLDS, FAILS), of(HOLDS, HOLDS)]) == 0.75
    assert blocked_together([]) == 0
