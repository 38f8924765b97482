"""`field_accuracy`: fields of JSON in the output are those of `expected_output`."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from agentevals_action.entries.entry import Checked
from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Case, Misfit, Options
from agentevals_action.evaluators.field_accuracy.fields import (
    Aggregation,
    Comparison,
    misfit,
    read_expected,
    score_fields,
)
from agentevals_action.evaluators.judges.replies import UnreadableReply
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator, Test


def _some(comparisons: tuple[Comparison, ...]) -> tuple[Comparison, ...]:
    if not comparisons:
        raise ValueError(
            "the list is empty, so there is nothing to compare; write at least one field"
        )
    return comparisons


class FieldAccuracy(Options):
    """Compares fields of JSON in the output with those of `expected_output`; the score is how much
    of them agrees."""

    type = "field_accuracy"

    fields: Annotated[
        Annotated[tuple[Comparison, ...], Checked(_some)],
        Meta(description="The fields that are compared.", extra_json_schema={"minItems": 1}),
    ]
    aggregation: Annotated[
        Aggregation,
        Meta(
            description="How the fields make the score; with `minimum` and `all_or_nothing` one that differs makes it 0."
        ),
    ] = "weighted_average"

    def check(self, test: Test) -> Sequence[Misfit]:
        """Fields that `expected_output` lacks, or holds with a value that cannot be compared so."""
        try:
            expected = read_expected(test.expected_output, self.fields)
        except UnreadableReply as error:
            return (
                Misfit(
                    None,
                    f"`expected_output` holds no JSON to compare fields with: {error}",
                    "write an object there",
                ),
            )
        misfits = []
        for comparison in self.fields:
            problem, _, advice = misfit(comparison, expected).rpartition("; ")
            if problem:
                misfits.append(
                    Misfit(comparison.location, f"the field `{comparison.path}` {problem}", advice)
                )
        return misfits

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """The share of fields that agree; AttemptError when there is nothing to compare with, or a
        pattern runs away."""
        if misfits := self.check(case.test):
            raise AttemptError("evaluator", f"{misfits[0].problem}; {misfits[0].advice}")
        expected = read_expected(case.test.expected_output, self.fields)
        import asyncio  # late: evaluators are read without an event loop

        # A thread of its own: a pattern that runs away must not hold up the other tests.
        return await asyncio.to_thread(
            score_fields, self.fields, self.aggregation, expected, case.trace.output
        )
