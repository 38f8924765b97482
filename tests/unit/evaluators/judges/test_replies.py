"""The score in the object of a judge."""

from typing import Any

import pytest

from agentevals_action.evaluators.json.objects import UnreadableReply
from agentevals_action.evaluators.judges import replies


def test_read_score__needs_a_number_of_its_own_type() -> None:
    assert replies.read_score({"score": 1}).value == 1.0
    for value in (True, "0.5", None, [0.5], 1.1, -0.1, 10**400):
        with pytest.raises(UnreadableReply, match="score"):
            replies.read_score({"score": value})


def test_read_score__takes_the_share_only_where_it_may() -> None:
    data = {"assertions": [{"text": "a", "passed": True}, {"text": "b", "passed": False}]}
    assert replies.read_score(data, share=True).value == 0.5
    with pytest.raises(UnreadableReply):
        replies.read_score(data)
    with pytest.raises(UnreadableReply):
        replies.read_score({**data, "score": None}, share=True)


@pytest.mark.parametrize(
    "data",
    [
        {"assertions": []},
        {"assertions": [{"text": "a", "passed": "yes"}]},
        {"score": 1, "hits": "a"},
        {"score": 1, "misses": [1]},
        {"score": 1, "details": []},
        {"score": 1, "reasoning": 7},
    ],
)
def test_read_score__needs_fields_of_their_types(data: dict[str, Any]) -> None:
    with pytest.raises(UnreadableReply):
        replies.read_score(data, share=True)


def test_read_score__assertions_are_hits_and_misses() -> None:
    failed = {"text": "b", "passed": False, "evidence": "no b"}
    score = replies.read_score(
        {"score": 0.75, "assertions": [{"text": "a", "passed": True}, failed]}
    )
    assert (score.value, score.hits, score.misses) == (0.75, ("a",), ("b (no b)",))
