"""Tests with deepeval and a metric of one's own, for the recorded `deepeval-4.3.xml`."""

import pytest
from deepeval import assert_test
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase


class Mentions(BaseMetric):
    async_mode = False
    threshold = 0.5

    def __init__(self, words):
        self.words = words

    def measure(self, case, *_, **__):
        missing = [word for word in self.words if word not in case.actual_output]
        self.score = 1 - len(missing) / len(self.words)
        self.reason = f"the answer misses {', '.join(missing)}"
        self.success = self.score >= self.threshold
        return self.score

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return "Mentions"


class BrokenJudge(Mentions):
    def measure(self, case, *_, **__):
        raise ConnectionError("the judge answered with HTTP 500")


CASES = [LLMTestCase(input="Refund?", actual_output="Within 14 days.")]


@pytest.mark.parametrize("case", CASES, ids=["refund"])
@pytest.mark.parametrize("words", [["14", "days"], ["30", "days of " * 70, "months"]])
def test_mentions(case, words, record_property):
    record_property("question", case.input)
    record_property("answer", case.actual_output)
    assert_test(case, [Mentions(words), Mentions(["14"])], run_async=False)


def test_broken_judge():
    assert_test(CASES[0], [BrokenJudge(["x"])], run_async=False)
