"""The likely cost of a run, by what the last one cost."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.model.result import SampleResult
from agentevals_action.results.estimate import attempt_cost, estimate
from agentevals_action.results.jsonl import encode_row
from tests.support import results

TWO_SAMPLES = (SampleResult(), SampleResult())


def test_attempt_cost__of_the_attempts_that_were_paid(tmp_path: Path) -> None:
    rows = [
        replace(results.result("a", cost_usd=0.5), samples=TWO_SAMPLES),
        results.result("b", cost_usd=0.05),
        results.result("cached", cost_usd=9.0, cached_replies=1),
        results.result("error", None, cost_usd=9.0),
        results.result("unknown"),
    ]
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"".join(encode_row(row) + b"\n" for row in rows))

    assert attempt_cost(path) == pytest.approx(0.15)


def test_attempt_cost__unknown_without_a_valid_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert attempt_cost(path) is None
    path.write_text("{}\n")
    assert attempt_cost(path) is None


def test_estimate__by_the_last_run() -> None:
    assert estimate(40, 0.05, None) == "Estimate: 40 attempts, about $2.00 (by the last run)"
    assert estimate(40, 0.05, 1.5) == (
        "Estimate: 40 attempts, about $2.00 (by the last run); "
        "that is above `max-cost-usd` ($1.50): some will not be made"
    )
    assert estimate(40, None, 1.5) == estimate(0, 0.05, 1.5) == ""
