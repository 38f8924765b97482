"""How many labels a floor still needs."""

from collections import Counter

import pytest

from agentevals_action.judges.labelling import missing_labels
from agentevals_action.model.judge import Metric
from agentevals_action.model.judge_rule import Floor


@pytest.mark.parametrize(
    ("metric", "least", "more"),
    [
        ("specificity", 0.7, 9 - 3),
        ("specificity", 0.3, 0),
        ("sensitivity", 0.9, 29 - 5),
        ("agreement", 0.7, 9 - 8),
        ("kappa", 0.7, 0),
    ],
)
def test_missing_labels__are_those_of_the_class_that_the_metric_is_of(
    metric: Metric, least: float, more: int
) -> None:
    """The least number of hits alone whose bound reaches the floor, as tables of exact intervals
    have it: 9 for 0.7, 29 for 0.9."""
    assert missing_labels(Counter({"pass": 5, "fail": 3}), Floor(metric, least)) == more
