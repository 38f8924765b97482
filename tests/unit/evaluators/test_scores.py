"""The score of each type for an answer or a trace, with its words, and what becomes of it negated."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.model.trace import Trace, Usage
from tests.support import cases

CASES = yaml.safe_load(
    (Path(__file__).parents[2] / "data/evaluator_scores.yaml").read_text("utf-8")
)


def made(case: dict[str, Any], *, negate: bool) -> EvaluatorResult:
    """The result of a case."""
    calls, seen = (
        case[name] and tuple(ToolCall(**call) for call in case[name]) if name in case else None
        for name in ("calls", "seen")
    )
    trace = Trace(
        (Message("assistant", case.get("output", ""), tool_calls=seen or ()),),
        tool_calls=() if case.get("calls") == [] else calls,
        usage=Usage(**case.get("usage", {})),
        **case.get("trace", {}),
    )
    given = cases.case(trace=trace, expected=case.get("expected", ()))
    return cases.run(case["type"], case["fields"], given, negate=negate, threshold=0.5)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['type']} {case['fields']}"[:80])
def test_score__of_a_case(case: dict[str, Any]) -> None:
    result, negated = made(case, negate=False), made(case, negate=True)
    score = case.get("score")
    assert result.score == (score if score is None else pytest.approx(score, abs=1e-6))
    assert [*result.hits] == case.get("hits", [])
    assert [*result.misses] == case.get("misses", [])
    if score is None:
        assert case["error"] in str(result.error and result.error.message)
        assert (negated.score, negated.gates_failed) == (None, ())
    elif case.get("unknown"):
        assert (result.is_unknown, negated.score, negated.passed) == (True, 0, False)
        assert negated.misses == result.misses
    else:
        assert (result.is_unknown, negated.hits) == (False, result.misses)
        assert negated.score == pytest.approx(1 - score, abs=1e-6)
    if "negated" in case:
        assert [*negated.misses] == case["negated"]
