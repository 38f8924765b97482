"""Fields of an answer against those expected: where the JSON is, and what must not take long. Each
way of comparing is in `data/evaluator_scores.yaml`."""

from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.json import field_accuracy as fields
from agentevals_action.evaluators.json.objects import UnreadableReply
from agentevals_action.model.messages import Block, Message
from agentevals_action.validation import patterns


def field(path: str = "a", **more: Any) -> fields.Comparison:
    return fields.Comparison(path=path, **more)


def test_data__of_a_list_may_stand_in_fences() -> None:
    listed = [field("[0].a"), field("1")]
    assert fields.read_data('[{"a": 1}]', listed) == [{"a": 1}]
    with pytest.raises(UnreadableReply):
        fields.read_data("```json\n" * 50_000, listed)  # an unclosed fence is searched once


@pytest.mark.parametrize(
    "message",
    [
        Message("assistant", (Block("json", {"a": 1}),)),
        Message("assistant", '{"a": 1}'),
        Message("assistant", (Block("text", 'so:\n```json\n{"a": 1}\n```'),)),
    ],
)
def test_expected__is_that_of_the_last_assistant_message(message: Message) -> None:
    messages = (Message("assistant", '{"a": 2}'), message, Message("user", '{"a": 3}'))
    assert fields.read_expected(messages, [field()]) == {"a": 1}


def test_expected__is_none() -> None:
    with pytest.raises(UnreadableReply, match="there is none"):
        fields.read_expected((), [field()])
    with pytest.raises(UnreadableReply, match="there is no JSON object"):
        fields.read_expected((Message("assistant", "forty-two"),), [field()])


def test_regex__that_runs_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.1)
    with pytest.raises(AttemptError, match=r"ran for over 0\.1 s on the field a"):
        fields.holds(field(match="regex"), "(a|a)*$", "a" * 40 + "b")


def test_deep_json__is_no_crash() -> None:
    answer = "[" * 5000 + "]" * 5000
    assert fields.score_fields([field()], "minimum", {"a": 1}, answer).value == 0
