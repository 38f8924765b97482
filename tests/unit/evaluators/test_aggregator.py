"""The arithmetic of composites, and what their aggregators refuse."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.evaluators.composite import Aggregator, closes_gate
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.results.scoring import weighted_mean
from tests.support import cases

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 100)), min_size=1, max_size=6)


def made(kind: str, **fields: Any) -> Aggregator:
    return Aggregator.model_validate(
        {"type": kind, **({"required": ["a"]} if kind == "safety_gate" else {}), **fields},
    )


@pytest.mark.parametrize(
    ("kind", "score"),
    [
        ("weighted_average", 0.8),
        ("minimum", 0.5),
        ("maximum", 0.9),
        ("safety_gate", 0.8),
        ("all_or_nothing", 0),
    ],
)
def test_combine__by_kind(kind: str, score: float) -> None:
    assert made(kind).combine([(0.9, 3), (0.5, 1)]) == pytest.approx(score)


@pytest.mark.parametrize(
    ("threshold", "score"), [(0.5, 0.8), (0.51, 0), (0.5000000001, 0.8), (0.01, 0.8), (1, 0)]
)
def test_all_or_nothing__is_the_mean_when_all_reach_the_threshold(
    threshold: float, score: float
) -> None:
    assert made("all_or_nothing", threshold=threshold).combine(
        [(0.9, 3), (0.5, 1)]
    ) == pytest.approx(score)


def test_all_or_nothing__asks_for_0_8_by_default() -> None:
    assert made("all_or_nothing").combine([(0.1 + 0.7, 1), (1, 1)]) == pytest.approx(0.9)
    assert made("all_or_nothing").combine([(0.79, 1), (1, 1)]) == 0


@given(PAIRS)
def test_combine__lies_between_the_scores(pairs: list[tuple[float, float]]) -> None:
    scores = [score for score, _ in pairs]
    assert made("minimum").combine(pairs) == min(scores)
    assert made("maximum").combine(pairs) == max(scores)
    assert (
        made("weighted_average").combine(pairs)
        == made("safety_gate").combine(pairs)
        == weighted_mean(pairs)
    )
    assert made("all_or_nothing").combine(pairs) in (0, weighted_mean(pairs))


@pytest.mark.parametrize(
    ("score", "closes"), [(0, True), (0.5999, True), (0.6, False), (0.1 * 6, False), (1, False)]
)
def test_gate__closes_under_0_6(score: float, closes: bool) -> None:
    assert closes_gate(EvaluatorResult(name="e", type="contains", score=score)) is closes


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"type": "safty_gate"},
            "there is no aggregator 'safty_gate'; did you mean `safety_gate`?",
        ),
        (
            {"type": "zzz"},
            "there is no aggregator 'zzz'; write one of `weighted_average`, `minimum`",
        ),
        ({"type": "llm-grader"}, "`prompt` is missing; write one with"),
        ({"type": "code-grader"}, "`path` is missing; write the command, as `node combine.js`"),
        ({"type": "minimum", "path": "x"}, "it does not belong to `minimum`"),
        ({"type": "safety_gate"}, "without `required` has no effect"),
        ({"type": "safety_gate", "required": []}, "without `required` has no effect"),
        ({"type": "minimum", "weights": {"a": 1}}, "it does not belong to `minimum`"),
        (
            {"required": ["a"]},
            "it does not belong to `weighted_average`; write `type: safety_gate`",
        ),
        (
            {"threshold": 0.5},
            "it does not belong to `weighted_average`; write `type: all_or_nothing`",
        ),
        ({"type": "all_or_nothing", "threshold": 0}, "over 0"),
        ({"type": "all_or_nothing", "threshold": None}, "a number"),
        ({"weights": {"a": -1}}, "0 or more"),
        ({"weights": {"a": float("inf")}}, "finite number"),
    ],
)
def test_aggregator__refuses(fields: dict[str, Any], said: str) -> None:
    assert said in "; ".join(map(str, cases.model_errors(Aggregator, fields)))


def test_aggregator__tells_every_field_that_is_out_of_place() -> None:
    errors = cases.model_errors(
        Aggregator, {"type": "maximum", "weights": {}, "required": [], "threshold": 0.5}
    )
    assert [error.steps for error in errors] == [
        ("weights",),
        ("required",),
        ("threshold",),
    ]


def test_unknown__names_by_their_steps() -> None:
    aggregator = made("safety_gate", required=["safe", "sfae"], weights={"safe": 1, "x{y}": 2})
    assert aggregator.unknown_names(["safe", "b"]) == {
        ("weights", "x{y}"): "there is no evaluator `x{y}` in it; write one of `safe`, `b`",
        ("required", 1): "there is no evaluator `sfae` in it; did you mean `safe`?",
    }
