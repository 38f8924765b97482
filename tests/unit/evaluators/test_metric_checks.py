"""Figures against limits, and which tools explore."""

import pytest

from agentevals_action.evaluators import metric_checks as metrics
from agentevals_action.model.messages import ToolCall


def test_limit__is_not_decided_by_float_noise() -> None:
    (check,) = metrics.at_most("cost", 0.1 + 0.2, 0.3, "USD")
    assert (check.holds, check.text) == (True, "cost: 0.3 USD is within the limit of 0.3 USD")
    (check,) = metrics.about("ratio", 0.6 + 0.2, 0.6, 0.2)
    assert check.holds


@pytest.mark.parametrize(
    ("holds", "value", "is_unknown"),
    [
        ((True, True), 1, False),
        ((True, False), 0, False),
        ((True, None), 0, True),
        # One that is broken decides, whatever is unknown.
        ((None, False), 0, False),
    ],
)
def test_checks__make_a_score(
    holds: tuple[bool | None, ...], value: float, is_unknown: bool
) -> None:
    score = metrics.score_checks(
        [metrics.Check(is_held, str(place)) for place, is_held in enumerate(holds)]
    )
    assert (score.value, score.is_unknown) == (value, is_unknown)
    assert sorted(score.hits + score.misses) == ["0", "1"]


def test_exploration_ratio__is_the_share_of_calls_that_look() -> None:
    def ratio(*tools: str) -> float | None:
        return metrics.exploration_ratio([ToolCall(tool) for tool in tools])

    assert ratio("Read", "grep", "WebSearch", "Edit") == 3 / 4
    assert ratio("read_file", "list-files", "Bash") == 2 / 3
    assert ratio("Write") == 0
    assert ratio() is None
    assert metrics.exploration_ratio(None) is None
