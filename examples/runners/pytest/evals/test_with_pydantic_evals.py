"""The agent's answers as a data set of pydantic-evals, with one test for each case."""

import pytest
from agent import answer
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains, Evaluator, EvaluatorContext, MaxDuration


class IsShort(Evaluator[str, str]):
    def evaluate(self, ctx: EvaluatorContext[str, str]) -> bool:
        return len(ctx.output) < 200


CASES = [
    Case(
        name="cancellation",
        inputs="When can I still cancel an order?",
        evaluators=(Contains("warehouse"),),
    ),
    Case(
        name="worn-shoes",
        inputs="Can I return shoes that are not unworn?",
        evaluators=(Contains("unworn"), Contains("30 days")),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case, record_property):
    dataset = Dataset(name="support", cases=[case], evaluators=[IsShort(), MaxDuration(60)])
    report = dataset.evaluate_sync(answer, progress=False)
    (result,) = report.cases
    record_property("question", result.inputs)
    record_property("answer", result.output)
    failed = [name for name, check in result.assertions.items() if not check.value]
    assert not failed, f"{result.output!r} fails {', '.join(failed)}"
