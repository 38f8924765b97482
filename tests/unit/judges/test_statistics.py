"""The figures of a judge that `benchmarks/judges.py` does not show."""

import pytest

pytest.importorskip("statsmodels", reason="needs the extra `judges`")

from agentevals_action.judges.calibrate import JudgedAnswer, Opinion
from agentevals_action.judges.statistics import measure
from agentevals_action.model.judge import Label


def test_kappa__of_a_judge_without_a_mistake_is_no_certainty() -> None:
    labels = [
        Label(test=str(number), answer="", label="pass" if number % 2 else "fail", who="ada")
        for number in range(12)
    ]

    found = measure([JudgedAnswer(label, (Opinion(label.passes),)) for label in labels])

    assert found.kappa
    low, high = found.kappa_interval
    assert (found.kappa.value, high) == (1.0, 1.0)
    assert low == found.kappa.low
    assert low < 0.5
