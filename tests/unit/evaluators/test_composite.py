"""Composites: what they make of their evaluators' scores, gates and errors."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from agentevals_action.evaluators import base
from agentevals_action.evaluators.composite import Aggregation, Composite
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.results.scoring import score_sample
from tests.support import cases


def has(text: str, name: str = "", **common: Any) -> Evaluator:
    """An evaluator that passes when the answer has a text."""
    return cases.evaluator("contains", {"value": text}, name=name or text, **common)


def says(score: float, name: str, **common: Any) -> Evaluator:
    """A judge that gives this score, whatever the answer."""
    return cases.evaluator(
        "llm_judge", {"prompt": f'{{{{answer[:0]}}}}{{"score": {score}}}'}, name=name, **common
    )


def broken(name: str, **common: Any) -> Evaluator:
    """An evaluator that cannot tell."""
    return cases.evaluator("code_judge", {"script": ["/no/such/program"]}, name=name, **common)


def untraced(name: str, **common: Any) -> Evaluator:
    """An evaluator of tool calls, of which a plain answer says nothing."""
    return cases.evaluator("skill_trigger", {"skill": "pdf"}, name=name, **common)


def composite(
    *children: Evaluator, name: str = "m", common: Mapping[str, Any] | None = None, **fields: Any
) -> Evaluator:
    return cases.evaluator(
        "composite", {"evaluators": children, **fields}, name=name, **(common or {})
    )


def scored(evaluator: Evaluator, answer: str = "alpha", root: Path = Path("/")) -> EvaluatorResult:
    return asyncio.run(base.run_evaluator(evaluator, cases.case(answer, ask=cases.echo, root=root)))


def test_average__by_weight_of_the_children_and_by_name() -> None:
    children = has("alpha", "a", weight=3), has("beta", "b")
    assert scored(composite(*children)).score == pytest.approx(0.75)
    by_name = scored(composite(*children, aggregator={"weights": {"a": 0.3, "b": 0.7}}))
    assert by_name.score == pytest.approx(0.3)
    assert [result.weight for result in by_name.evaluator_results] == [0.3, 0.7]
    assert scored(composite(*children, aggregator={"weights": {"b": 0}})).score == 1
    assert scored(composite(*children, aggregator={"weights": {"a": 0, "b": 0}})).score == 0.5


@pytest.mark.parametrize(
    ("aggregator", "score"),
    [
        ({"type": "minimum"}, 0.5),
        ({"type": "maximum"}, 0.9),
        ({"type": "all_or_nothing"}, 0),
        ({"type": "all_or_nothing", "threshold": 0.5}, 0.8),
        ({"type": "all_or_nothing", "threshold": 0.5, "weights": {"b": 3}}, 0.7),
        ({"type": "safety_gate", "required": ["a"]}, 0.8),
        ({"type": "safety_gate", "required": ["b"]}, 0),
    ],
)
def test_aggregator__decides_the_score(aggregator: Mapping[str, Any], score: float) -> None:
    result = scored(composite(says(0.9, "a", weight=3), says(0.5, "b"), aggregator=aggregator))
    assert result.score == pytest.approx(score)
    assert result.details == {"aggregator": aggregator["type"]}


def test_children__are_kept_with_their_hits_and_misses_in_order() -> None:
    result = scored(
        composite(has("beta", "b"), composite(has("alpha", "a"), name="in"), has("gamma", "c"))
    )
    assert [child.name for child in result.evaluator_results] == ["b", "in", "c"]
    assert [child.name for child in result.evaluator_results[1].evaluator_results] == ["a"]
    assert result.hits == result.evaluator_results[1].hits
    assert result.misses == (
        *result.evaluator_results[0].misses,
        *result.evaluator_results[2].misses,
    )
    assert result.reasoning == "weighted_average: b 0 × 1, in 1 × 1, c 0 × 1"


def test_safety_gate__closed_runs_nothing_else(tmp_path: Path) -> None:
    ran = cases.evaluator(
        "code_judge", {"exit_code": True, "script": ["touch", "ran"]}, tmp_path, name="ran"
    )
    gate = composite(
        ran,
        has("safe"),
        says(0.59, "judge"),
        aggregator={"type": "safety_gate", "required": ["safe", "judge"]},
    )

    result = scored(gate, root=tmp_path)

    assert (result.score, result.passed, result.gates_failed, result.error) == (
        0,
        False,
        ("m",),
        None,
    )
    assert [child.name for child in result.evaluator_results] == ["safe", "judge"]
    assert result.reasoning == "safety_gate: closed by safe 0, judge 0.59; not run: ran"
    assert not (tmp_path / "ran").exists()
    assert scored(gate, "safe", tmp_path).gates_failed == ("m",)


def test_safety_gate__open_is_the_average_of_all(tmp_path: Path) -> None:
    gate = composite(
        says(0, "style", weight=3),
        says(0.6, "safe"),
        aggregator={"type": "safety_gate", "required": ["safe"]},
    )

    result = scored(gate)

    assert result.score == pytest.approx(0.15)
    assert (result.passed, result.gates_failed) == (False, ())
    assert [child.name for child in result.evaluator_results] == ["style", "safe"]


def test_safety_gate__is_named_itself_at_any_depth() -> None:
    gate = composite(
        has("safe", "b"), name="gate", aggregator={"type": "safety_gate", "required": ["b"]}
    )
    result = scored(composite(has("alpha"), composite(gate, name="in"), name="out"))
    assert result.gates_failed == ("out/in/gate",)
    assert (result.score, result.passed) == (0.5, False)


def test_gates__each_once_in_suite_order() -> None:
    gate = composite(
        has("x", "late", threshold=0.8),
        has("y", "first", threshold=0.8),
        aggregator={"type": "safety_gate", "required": ["first"]},
        common={"threshold": 0.9},
    )
    assert scored(gate).gates_failed == ("m", "m/first")
    plain = composite(
        has("x", "a", threshold=0.8), says(0.9, "b", threshold=0.95), common={"threshold": 0.8}
    )
    assert scored(plain).gates_failed == ("m", "m/a", "m/b")


def test_gate_names__as_declared() -> None:
    inner = composite(
        has("x", "a", threshold=0.8),
        name="in",
        aggregator={"type": "safety_gate", "required": ["a"]},
    )
    assert isinstance(inner, Composite)
    assert inner.inner_gates() == (("", None), ("a", cases.HERE))


@pytest.mark.parametrize(
    "aggregator", [{}, {"type": "minimum"}, {"type": "maximum"}, {"type": "all_or_nothing"}]
)
def test_error__of_a_child_is_the_composites(aggregator: Mapping[str, Any]) -> None:
    result = scored(
        composite(has("alpha", "a"), composite(broken("judge"), name="in"), aggregator=aggregator)
    )
    assert (result.score, result.passed, result.gates_failed) == (None, None, ())
    assert result.error is not None
    assert result.error.kind == "evaluator"
    assert result.error.message.startswith("in: judge: ")
    assert [child.score for child in result.evaluator_results] == [1, None]
    assert score_sample([result]) == (None, None, ())


def test_error__beside_a_failed_gate_loses_neither() -> None:
    result = scored(composite(broken("judge"), has("beta", "b", threshold=0.8)))
    assert (result.score, result.passed, result.gates_failed) == (None, False, ("m/b",))
    assert result.error is not None
    assert score_sample([result]) == (None, "fail", ("m/b",))
    outer = scored(
        composite(
            composite(broken("judge"), has("beta", "b", threshold=0.8), name="in"), has("alpha")
        )
    )
    assert outer.gates_failed == ("m/in/b",)


def test_error__of_what_a_safety_gate_requires_still_runs_the_others() -> None:
    required = {"type": "safety_gate", "required": ["judge"]}
    result = scored(
        composite(broken("judge"), has("beta", "b", threshold=0.8), aggregator=required)
    )
    assert (result.score, result.gates_failed) == (None, ("m/b",))
    assert scored(composite(broken("judge"), has("alpha"), aggregator=required)).gates_failed == ()


@pytest.mark.parametrize(("threshold", "score"), [(0.5, 1), (0.66, 1), (0.67, 0), (1, 0)])
def test_threshold__is_the_fraction_that_must_pass(threshold: float, score: float) -> None:
    children = says(0.8, "a"), says(0.79, "b"), says(0.5, "c", threshold=0.5)
    aggregator = {"type": "threshold", "threshold": threshold}
    assert scored(composite(*children, aggregator=aggregator)).score == score
    result = scored(composite(*children, threshold=threshold))
    assert (result.score, result.passed) == (score, score == 1)
    assert result.details == {"aggregator": "threshold"}
    assert result.reasoning == f"2 of 3 pass; a fraction of {threshold:g} is required"


def test_negated__turns_the_score_and_swaps_hits_and_misses() -> None:
    plain, negated = (
        composite(has("alpha"), has("beta")),
        composite(has("alpha"), has("beta"), common={"negate": True}),
    )
    assert (scored(negated).hits, scored(negated).misses) == (
        scored(plain).misses,
        scored(plain).hits,
    )
    assert scored(composite(says(0.3, "a"), common={"negate": True})).score == pytest.approx(0.7)


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    "fields",
    [*({"aggregator": {"type": kind}} for kind in get_args(Aggregation)[:3]), {"threshold": 0.5}],
)
def test_negated__what_is_unknown_inside_counts_against_it_at_any_depth(
    fields: Mapping[str, Any], negate: bool
) -> None:
    common = {"negate": negate}
    inner = composite(untraced("t", negate=True), name="in", common=common, **fields)
    assert scored(composite(inner, common=common, **fields)).score == 0
    known = composite(untraced("t"), has("alpha", "a"), common={"negate": True}, **fields)
    assert (scored(known).score, scored(known).passed) == (0, False)


def test_every__walks_in_suite_order() -> None:
    tree = composite(
        has("a"), composite(has("b"), composite(has("c"), name="in2"), name="in"), has("d")
    )
    assert [evaluator.name for evaluator in tree.walk()] == [
        "m",
        "a",
        "in",
        "b",
        "in2",
        "c",
        "d",
    ]


#: The composite, and its score, whether it is advisory, and its failed gates, where judges decide
#: nothing.
ADVISORY: Mapping[str, tuple[Evaluator, float | None, bool, tuple[str, ...]]] = {
    "beside a pass": (composite(has("alpha"), says(0, "judge", weight=9)), 1.0, False, ()),
    "beside a failure": (composite(has("beta"), says(1, "judge", weight=9)), 0.0, False, ()),
    "a gate of a judge": (composite(has("alpha"), says(0, "judge", required=True)), 1.0, False, ()),
    "a gate beside a judge": (
        composite(has("beta", "safe", required=True), says(1, "judge")),
        0.0,
        False,
        ("m/safe",),
    ),
    "alone": (composite(says(0, "judge"), says(1, "other")), 0.5, True, ()),
    "beside one of weight 0": (composite(has("alpha", weight=0), says(0, "judge")), 0.0, True, ()),
    "inside another": (composite(composite(says(0, "judge")), has("alpha")), 1.0, False, ()),
    "nothing else inside": (composite(composite(says(0, "judge"), name="n")), 0.0, True, ()),
    "maximum": (
        composite(has("beta"), says(1, "judge"), aggregator={"type": "maximum"}),
        0.0,
        False,
        (),
    ),
    "minimum": (
        composite(has("alpha"), says(0, "judge"), aggregator={"type": "minimum"}),
        1.0,
        False,
        (),
    ),
    "all or nothing": (
        composite(has("alpha"), says(0, "judge"), aggregator={"type": "all_or_nothing"}),
        1.0,
        False,
        (),
    ),
    "threshold": (composite(has("alpha"), says(0, "judge"), threshold=1), 1.0, False, ()),
    "a safety gate that a judge would close": (
        composite(
            says(0, "judge"),
            has("alpha"),
            aggregator={"type": "safety_gate", "required": ["judge"]},
        ),
        1.0,
        False,
        (),
    ),
    "a safety gate that is closed": (
        composite(
            has("beta", "safe"),
            says(1, "judge"),
            aggregator={"type": "safety_gate", "required": ["safe"]},
        ),
        0.0,
        False,
        ("m",),
    ),
    "an error beside a judge": (composite(broken("b"), says(1, "judge")), None, False, ()),
}


@pytest.mark.parametrize("name", ADVISORY)
def test_composite__advisory_judges_decide_nothing_in_it(name: str) -> None:
    evaluator, score, is_advisory, gates = ADVISORY[name]
    case = cases.case("alpha", ask=cases.echo, root=Path("/"), why_advisory=lambda judge: "new")
    result = asyncio.run(base.run_evaluator(evaluator, case))
    assert (result.score, bool(result.advisory), result.gates_failed) == (score, is_advisory, gates)
    assert bool(result.error) is (score is None)
