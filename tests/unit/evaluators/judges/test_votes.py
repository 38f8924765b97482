"""Several judgements of one answer: one score, and what is shown where they differ."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.messages import Message
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.model.trace import Trace
from tests.support import cases

REQUIRED = {"id": "safe", "outcome": "Is safe", "required": True}
RANGES = {"0": "bad", "10": "good"}


def judged(scores: Sequence[float], **fields: Any) -> EvaluatorResult:
    """An answer whose judgements have these scores."""
    replies = [json.dumps({"score": score, "reasoning": f"because {score}"}) for score in scores]
    common = {"threshold": fields.pop("threshold")} if "threshold" in fields else {}
    options = {"prompt": "{{answer}}", "samples": len(scores), **fields}
    return cases.run("llm_judge", options, cases.case("x", ask=cases.replying(*replies)), **common)


def checked(criteria: list[Any], *judgements: dict[str, Any], **fields: Any) -> EvaluatorResult:
    """An answer whose judgements of a rubric say whether each criterion is met, or its points."""
    replies = [
        json.dumps(
            {
                "checks": [
                    {"id": name, "satisfied": value, "score": value, "reasoning": f"{value}"}
                    for name, value in judgement.items()
                ],
                "overall_reasoning": f"judgement {number}",
            }
        )
        for number, judgement in enumerate(judgements, 1)
    ]
    options = {"rubrics": criteria, "samples": len(judgements), **fields}
    return cases.run("rubric", options, cases.case("x", ask=cases.replying(*replies)))


@pytest.mark.parametrize(
    ("scores", "fields", "score", "passed"),
    [
        ([0.9, 0.2, 0.8], {}, 0.8, True),
        ([0.9, 0.2, 0.7], {}, 0.7, False),
        ([0.9, 0.2, 0.8], {"aggregate": "majority"}, 1, True),
        ([0.9, 0.2, 0.7], {"aggregate": "majority"}, 0, False),
        ([0.9, 0.2, 0.7], {"aggregate": "majority", "threshold": 0.7}, 1, True),
        # A tie does not pass.
        ([0.9, 0.1], {}, 0.1, False),
        ([0.9, 0.1], {"aggregate": "majority"}, 0, False),
    ],
)
def test_score__is_the_median_or_the_majority(
    scores: list[float], fields: dict[str, Any], score: float, passed: bool
) -> None:
    result = judged(scores, **fields)
    assert (round(result.score or 0, 9), result.passed) == (score, passed)


def test_reason__is_that_of_the_median() -> None:
    result = judged([0.9, 0.2, 0.85])
    assert result.reasoning == "2 of 3 judgements pass (0.9, 0.2, 0.85). because 0.85"
    assert result.misses == ("2 of 3 judgements pass",)
    assert result.details == {"judgements": [0.9, 0.2, 0.85]}


def test_agreement__is_no_hit_and_no_miss() -> None:
    result = judged([0.9, 0.8])
    assert (result.score, result.hits, result.misses) == (0.8, (), ())
    assert result.reasoning.startswith("2 of 2 judgements pass (0.9, 0.8).")


def test_rubric__is_voted_on_by_criterion() -> None:
    result = checked(
        ["is polite", REQUIRED, "is short"],
        {"rubric-1": True, "safe": False, "rubric-3": True},
        {"rubric-1": False, "safe": True, "rubric-3": True},
        {"rubric-1": True, "safe": True, "rubric-3": False},
    )
    # Each judgement misses another criterion, and two of three have each as met.
    assert (result.score, result.passed, result.gates_failed) == (1, True, ())
    assert result.reasoning == (
        "0 of 3 judgements pass (0.6667, 0.6667, 0.6667). rubric-1: met in 2 of 3. "
        "safe: met in 2 of 3. rubric-3: met in 2 of 3. judgement 1"
    )
    assert result.details["checks"][0] == {"id": "rubric-1", "score": 1.0, "reasoning": "True"}


@pytest.mark.parametrize("aggregate", ["median", "majority"])
def test_required_criterion__fails_on_a_tie(aggregate: str) -> None:
    votes = ({"safe": True}, {"safe": False})
    result = checked([REQUIRED], *votes, aggregate=aggregate)
    assert (result.score, result.gates_failed) == (0, ("e/safe",))
    assert result.misses == ("safe: Is safe", "1 of 2 judgements pass")


def test_points__have_their_median_or_are_met_by_the_majority() -> None:
    criteria = [{"id": "clear", "outcome": "Is clear", "score_ranges": RANGES}]
    votes = ({"clear": 9}, {"clear": 8}, {"clear": 2})
    assert checked(criteria, *votes).hits[0] == "clear: Is clear (8/10)"
    assert checked(criteria, *votes, aggregate="majority").hits[0] == "clear: Is clear (10/10)"


def test_judgements__are_numbered_and_asked_of_the_judges_in_turn() -> None:
    numbers: list[int] = []

    async def ask(evaluator: Evaluator, messages: Sequence[Message], number: int) -> Trace:
        numbers.append(number)
        text = '{"score": %s}' % (number / 10)
        return Trace((Message("assistant", text),), model=f"m-{number % 2}")

    options = {"prompt": "{{answer}}", "targets": ["a", "b"], "samples": 2}
    result = cases.run("llm_judge", options, cases.case("x", ask=ask))

    assert sorted(numbers) == [0, 1, 2, 3]
    assert result.reasoning == "0 of 4 judgements pass (a 0, b 0.1, a 0.2, b 0.3)."
    assert result.judge is not None
    assert result.judge.models == ("m-0", "m-1")


def test_judgement_that_cannot_be_made__is_an_error_once_all_have_ended() -> None:
    ended: list[int] = []

    async def ask(evaluator: Evaluator, messages: Sequence[Message], number: int) -> Trace:
        if number == 0:
            raise AttemptError("judge", "the judge `a` could not be asked")
        await asyncio.sleep(0)
        ended.append(number)
        return Trace((Message("assistant", '{"score": 1}'),))

    result = cases.run(
        "llm_judge", {"prompt": "{{answer}}", "samples": 5}, cases.case("x", ask=ask)
    )

    assert (result.score, result.passed) == (None, None)
    assert result.error is not None
    assert result.error.message == "the judge `a` could not be asked"
    assert sorted(ended) == [1, 2, 3, 4]
