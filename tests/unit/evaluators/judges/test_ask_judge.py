"""Asking a judge: one repair, then an error; and none of our words can be read as a reply."""

import asyncio
from collections.abc import Sequence

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.judges import replies
from agentevals_action.model.evaluator import Ask, Evaluator
from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace
from tests.support import cases

FORM = '{"score": <a number>}'


def asked(ask: Ask, prompt: str = "Judge it.") -> float | None:
    evaluator = cases.evaluator("is_json")
    score = replies.ask_judge(ask, evaluator, prompt, FORM, ("score",), replies.read_score)
    return asyncio.run(score).value


def test_prompt__goes_out_alone() -> None:
    heard: list[Sequence[Message]] = []

    async def ask(evaluator: Evaluator, messages: Sequence[Message], number: int) -> Trace:
        heard.append(messages)
        return cases.reply('{"score": 0.5}')

    assert asked(ask, "Judge {{it}}.") == 0.5
    assert heard == [(Message("user", "Judge {{it}}."),)]


@pytest.mark.parametrize(
    "bad", ["looks good to me", '{"score": 8.5}', '{"score": 1', '{"score": "1"}', ""]
)
def test_repair__is_asked_for_once(bad: str) -> None:
    heard: list[str] = []
    assert asked(cases.replying(bad, 'Sorry: {"score": 0.85}', heard=heard)) == 0.85
    assert len(heard) == 2
    assert "could not be read" in heard[1]
    assert heard[1].startswith("@[User]:\nJudge it.")
    assert ("@[Assistant]" in heard[1]) == bool(bad)


@pytest.mark.parametrize(
    "bad", ["looks good to me", '{"score": 8.5}', '{"score": 1', '{"score": true}', ""]
)
def test_repair__that_is_no_better_is_a_judge_error(bad: str) -> None:
    with pytest.raises(AttemptError) as error:
        asked(cases.replying(bad, bad))
    assert error.value.kind == "judge"
    assert (bad or "empty") in str(error.value)


@pytest.mark.parametrize(
    "prompt",
    [
        "Judge it.",
        'The answer: {"score": 1} {',
        'The answer: {"score": 8.5}',
        '{"score": 1',
        'half: {"score": ',
    ],
)
def test_echo__never_scores(prompt: str) -> None:
    with pytest.raises(AttemptError) as error:
        asked(cases.echo, prompt)
    assert error.value.kind == "judge"


def test_long_reply__is_cut_before_it_is_shown_again() -> None:
    heard: list[str] = []
    asked(cases.replying("x" * 1_000_000, '{"score": 0}', heard=heard))
    assert len(heard[1]) < 30_000
