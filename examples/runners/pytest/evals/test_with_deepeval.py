"""The agent's answers, measured by deepeval; a metric of one's own needs no key."""

import pytest
from agent import answer
from deepeval import assert_test
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase


class HasExpected(BaseMetric):
    """Whether the answer has the words that are expected."""

    def __init__(self, threshold: float = 1.0) -> None:
        self.threshold, self.async_mode = threshold, False

    def measure(self, test_case: LLMTestCase) -> float:
        self.success = test_case.expected_output in test_case.actual_output
        self.reason = "" if self.success else f"{test_case.expected_output!r} is not in it"
        self.score = float(self.success)
        return self.score

    async def a_measure(self, test_case: LLMTestCase) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return self.success


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        pytest.param("Within how many days may I return shoes?", "30 days", id="returns"),
        pytest.param("How long does the delivery to an EU country take?", "5 days", id="delivery"),
    ],
)
def test_answer__has_expected_words(question, expected, record_property):
    case = LLMTestCase(input=question, actual_output=answer(question), expected_output=expected)
    record_property("question", question)
    record_property("answer", case.actual_output)
    assert_test(case, [HasExpected()])
