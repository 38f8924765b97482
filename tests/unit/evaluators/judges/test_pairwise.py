"""`pairwise`: two answers in both orders, and what the judge may say of them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.evaluator import Ask, Evaluator
from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.result import EvaluatorResult, preferred_sides
from agentevals_action.model.trace import Trace
from agentevals_action.targets.message_texts import prompt_text
from tests.support import cases, suites


def said(better: str, by: str = "much") -> str:
    return f'{{"better": "{better}", "by": "{by}", "reasoning": "because"}}'


def compared(
    ask: Ask, head: str = "of head", base: str = "of base", **options: Any
) -> EvaluatorResult:
    """Head's answer, compared with base's."""
    given = cases.case(head, ask=ask)
    rival = replace(given, trace=Trace((Message("assistant", base),)))
    return cases.run("pairwise", {"criteria": "C", **options}, replace(given, rival=rival))


def choosing(words: str, by: str = "much") -> Ask:
    """A judge that prefers the answer with these words."""

    async def ask(evaluator: Evaluator, messages: Sequence[Message], number: int) -> Trace:
        prompt = prompt_text(messages)
        answers = dict(re.findall(r"<answer (A|B) \w+>\n(.*)", prompt))
        return cases.reply(said("A" if words in answers["A"] else "B", by))

    return ask


@pytest.mark.parametrize(
    ("ask", "score", "orders"),
    [
        (choosing("head"), 1.0, [1.0, 1.0]),
        (choosing("base"), 0.0, [0.0, 0.0]),
        (choosing("head", "slightly"), 0.5, [0.75, 0.75]),
        (choosing("base", "slightly"), 0.5, [0.25, 0.25]),
        (cases.replying(said("A"), said("B", "slightly")), 0.5, [1.0, 0.75]),
        (cases.replying(said("equal"), said("equal")), 0.5, [0.5, 0.5]),
    ],
)
def test_preference__is_much_better_in_both_orders(
    ask: Ask, score: float, orders: list[float]
) -> None:
    result = compared(ask)
    assert (result.score, result.error) == (score, None)
    assert [order.score for order in result.evaluator_results] == orders
    assert len(preferred_sides(result)) == 1
    assert result.judge
    assert result.judge.models == ("judge-1",)


@pytest.mark.parametrize(
    "replies", [(said("A"), said("A")), (said("B"), said("B")), (said("A"), said("equal"))]
)
def test_preference__for_a_place_is_a_flip(replies: tuple[str, str]) -> None:
    result = compared(cases.replying(*replies))
    assert result.score == 0.5
    assert len(preferred_sides(result)) == 2


def test_equal_answers__cost_no_call() -> None:
    result = compared(cases.no_judge, "the same", "the same")
    assert (result.score, result.evaluator_results) == (0.5, ())


def test_equal_calls_of_tools__are_equal_whatever_their_time() -> None:
    traces = [
        Trace((Message("assistant", "x"),), tool_calls=(ToolCall("find", {}, duration_ms=time),))
        for time in (1.0, 2.0)
    ]
    given = cases.case(trace=traces[0], ask=cases.no_judge)
    case = replace(given, rival=replace(given, trace=traces[1]))
    assert cases.run("pairwise", {"criteria": "C"}, case).score == 0.5


@pytest.mark.parametrize(
    "reply", ['{"better": "A"}', '{"better": "head", "by": "much"}', "A", '{"by": "much"}']
)
def test_unclear_reply__is_an_error(reply: str) -> None:
    result = compared(cases.replying(*[reply] * 4))
    assert result.score is None
    assert result.error
    assert result.error.kind == "judge"


def test_packaged_prompt__that_is_repeated_never_compares() -> None:
    result = compared(cases.echo, said("A"), said("B"), criteria=said("A"))
    assert result.score is None


def test_prompt__of_the_suite_gets_both_answers() -> None:
    heard: list[str] = []
    ask = cases.replying(said("A"), said("B"), heard=heard)
    assert compared(ask, prompt="{{criteria}}: {{answer_a}} / {{answer_b}}").score == 1
    assert sorted(heard) == ["C: of base / of head", "C: of head / of base"]


def suite(*evaluators: str, test: str = "{id: a, input: q}") -> str:
    listed = "".join(f"  - {each}\n" for each in evaluators)
    return f"name: suite\nassert:\n{listed}tests:\n  - {test}\n"


TARGETS = "targets: [{name: default, provider: mock, response: hi, judge_target: default}]\n"
CONTAINS = "{type: contains, value: x}"
REFUSED = {
    "alone": (suite("{type: pairwise, criteria: C}"), "has no evaluator that scores its answer"),
    "required": (
        suite(CONTAINS, "{type: pairwise, criteria: C, required: true}"),
        "`required`: a comparison gives no score to an answer, so this has no effect; remove it",
    ),
    "with a weight": (suite(CONTAINS, "{type: pairwise, criteria: C, weight: 2}"), "`weight`"),
    "without criteria": (
        suite(CONTAINS, "{type: pairwise}"),
        "`pairwise`: nothing says what makes an answer better; write `criteria` in it, or in the",
    ),
    "a prompt that reads one answer": (
        suite(CONTAINS, "{type: pairwise, prompt: 'Is {{answer_a}} good?'}"),
        "the prompt reads nothing of the agent; write {{answer_b}} in it",
    ),
    "inside a composite": (
        suite("{type: composite, assert: [{type: pairwise, criteria: C}]}"),
        "it gives no score to an answer; move it out of the composite",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_suite__is_refused(tmp_path: Path, name: str) -> None:
    text, words = REFUSED[name]
    suites.write(tmp_path, {"EVAL.yaml": text, ".agentv/targets.yaml": TARGETS})
    (error,) = suites.errors(tmp_path)
    assert words in error


def test_criteria__are_scored_by_the_default_judge_beside_it(tmp_path: Path) -> None:
    text = suite("{type: pairwise}", test="{id: a, input: q, criteria: C}")
    suites.write(tmp_path, {"EVAL.yaml": text, ".agentv/targets.yaml": TARGETS})
    test = suites.only_test(tmp_path)
    assert [each.type for each in test.scoring] == ["llm_judge"]
    assert [each.type for each in test.comparing] == ["pairwise"]
