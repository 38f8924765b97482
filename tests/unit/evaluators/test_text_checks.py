"""The types that look at the output alone: bounds, and names. Their scores are in
`data/evaluator_scores.yaml`."""

import asyncio

import pytest

from agentevals_action.evaluators import base
from agentevals_action.validation import patterns
from tests.support import cases


def test_words__are_one_line_and_cut() -> None:
    result = cases.run("contains", {"value": "first\nsecond " + "x" * 200}, cases.case(""))
    assert result.misses[0].startswith('does not contain "first second xxx')
    assert len(result.misses[0]) < 110
    assert "\n" not in result.misses[0]


def test_is_json__too_deep_to_tell_is_an_error() -> None:
    result = cases.run("is_json", {}, cases.case("[" * 200_000), negate=True)
    assert result.score is None
    assert result.error is not None
    assert result.error.kind == "evaluator"


@pytest.mark.slow
def test_regex__runaway_pattern_is_an_error_also_negated() -> None:
    result = cases.run("regex", {"value": "(a|aa)+$"}, cases.case("a" * 60 + "b"), negate=True)
    assert result.score is None
    assert result.error is not None
    assert result.error.kind == "evaluator"
    assert "(a|aa)+$" in result.error.message


@pytest.mark.parametrize(
    ("kind", "data", "label"),
    [
        ("contains", {"value": "DENIED"}, "DENIED"),
        ("contains_any", {"value": ["a", "b"]}, "a-b"),
        ("icontains_all", {"value": ["a", "b"]}, "a-b"),
        ("regex", {"value": "a+"}, "a+"),
        ("is_json", {}, ""),
        ("skill_trigger", {"skill": "x"}, "x"),
    ],
)
def test_label__is_the_operand(kind: str, data: dict[str, object], label: str) -> None:
    assert cases.evaluator(kind, data).label() == label


def test_regex__runaway_pattern_holds_up_no_other_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.2)

    async def both() -> bool:
        slow = asyncio.create_task(
            base.run_evaluator(
                cases.evaluator("regex", {"value": "(a|aa)+$"}), cases.case("a" * 60 + "b")
            )
        )
        await asyncio.sleep(0)
        await base.run_evaluator(cases.evaluator("contains", {"value": "b"}), cases.case("b"))
        waited = not slow.done()
        await slow
        return waited

    assert asyncio.run(both())
