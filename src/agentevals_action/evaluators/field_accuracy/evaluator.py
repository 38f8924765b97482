"""`field_accuracy`: fields of JSON in the output are compared with those of `expected_output`."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Case, EvaluatorOptions, require
from agentevals_action.evaluators.field_accuracy.fields import (
    Aggregation,
    Comparison,
    expected_problem,
    read_expected,
    score_fields,
)
from agentevals_action.evaluators.judges.replies import UnreadableReply
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator, Mismatch, Test
from agentevals_action.model.validation.file_model import ListOf


class FieldAccuracy(EvaluatorOptions):
    """Compares fields of JSON in the output with those of `expected_output`; the score is the
    weighted share of fields that match."""

    type = "field_accuracy"

    fields: Annotated[
        ListOf[Comparison],
        AfterValidator(require(bool, "the list is empty; write at least one field")),
    ] = Field(json_schema_extra={"minItems": 1}, description="The fields to compare.")
    aggregation: Aggregation = Field(
        default="weighted_average",
        description="How the fields make the score; with `minimum` and `all_or_nothing`, "
        "one that differs makes it 0.",
    )

    def check(self, test: Test) -> Sequence[Mismatch]:
        """Fields that `expected_output` lacks, or whose expected value does not suit `match`."""
        try:
            expected = read_expected(test.expected_output, self.fields)
        except UnreadableReply as error:
            problem = f"`expected_output` has no JSON to compare fields with: {error}"
            return (Mismatch(None, problem, "write an object there"),)
        mismatches = []
        for comparison in self.fields:
            problem, _, advice = expected_problem(comparison, expected).rpartition("; ")
            if problem:
                problem = f"the field `{comparison.path}` {problem}"
                mismatches.append(Mismatch(comparison.location, problem, advice))
        return mismatches

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """The share of fields that match; AttemptError if there is nothing to compare with, or a
        pattern exceeds its time limit."""
        if mismatches := self.check(case.test):
            raise AttemptError("evaluator", f"{mismatches[0].problem}; {mismatches[0].advice}")
        expected = read_expected(case.test.expected_output, self.fields)
        # A thread: a slow pattern must not block the other tests.
        return await asyncio.to_thread(
            score_fields, self.fields, self.aggregation, expected, case.trace.output
        )
