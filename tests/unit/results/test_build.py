"""Results that are extended by the fresh samples of a confirmation."""

import pytest

from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.results.build import extended

PASS = SampleResult(score=1.0, verdict="pass")


def failing(*gates: str) -> SampleResult:
    return SampleResult(score=1.0, verdict="fail", gates_failed=gates)


def first(sample: SampleResult) -> TestResult:
    return TestResult(
        timestamp="",
        eval_id="test",
        dataset="suite",
        eval_path="EVAL.yaml",
        score=sample.score,
        verdict=sample.verdict,
        gates_failed=sample.gates_failed,
        samples=(sample,),
    )


@pytest.mark.parametrize(
    ("fresh", "gates"),
    [
        ([failing("a"), PASS, PASS], ()),
        ([failing("a"), failing("a"), PASS], ("a",)),
        # Each sample fails a gate, and no gate fails in most of them.
        ([failing("a"), failing("b"), failing("c")], ("a", "b", "c")),
        ([failing("a"), failing("b"), PASS, PASS], ()),
        # Too few to decide: the first sample counts too.
        ([failing("a")], ("a",)),
    ],
)
def test_extended__the_majority_of_the_fresh_samples_decides_about_gates(
    fresh: list[SampleResult], gates: tuple[str, ...]
) -> None:
    result = extended(first(failing("a")), fresh)
    assert result.gates_failed == gates
    assert (result.verdict == "fail") == bool(gates)
    assert result.confirming == len(fresh)
