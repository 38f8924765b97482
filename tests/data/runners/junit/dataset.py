"""Tests with pydantic-evals, for the recorded `pydantic-evals-2.62.xml`."""

import pytest
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains

CASES = [
    Case(name="france", inputs="capital of France?", expected_output="Paris"),
    Case(name="spain", inputs="capital of Spain?", expected_output="Madrid"),
]
REPORT = Dataset(name="capitals", cases=CASES, evaluators=[Contains("Paris")]).evaluate_sync(
    lambda question: "Paris", progress=False
)


@pytest.mark.parametrize("case", REPORT.cases, ids=lambda case: case.name)
def test_capital(case, record_property):
    record_property("question", case.inputs)
    record_property("answer", case.output)
    assert case.output == case.expected_output
