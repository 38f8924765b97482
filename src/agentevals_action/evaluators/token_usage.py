"""`token_usage`: the answer took no more tokens than allowed."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from msgspec import Meta

from agentevals_action.entries.entry import Schema, Written
from agentevals_action.evaluators import metrics
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator

_Count = Annotated[int, Meta(ge=0)]


class TokenUsage(Options):
    """Passes when the tokens used are within every limit given; unknown tokens are a miss."""

    type = "token_usage"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "max_total": ("max_total_tokens",),
        "max_input": ("max_input_tokens",),
        "max_output": ("max_output_tokens",),
    }

    max_total: Annotated[
        _Count | None, Meta(description="The most tokens allowed, in and out together.")
    ] = None
    max_input: Annotated[
        _Count | None, Meta(description="The most tokens allowed in what the model is given.")
    ] = None
    max_output: Annotated[
        _Count | None, Meta(description="The most tokens allowed in what the model writes.")
    ] = None

    @classmethod
    def refined(cls, schema: Schema) -> Schema:
        """One of the limits is there."""
        return {**schema, "anyOf": [{"required": [name]} for name in schema["properties"]]}

    def completed(self, _written: Written) -> Self:
        """Itself; ValueError when it has no limit."""
        if self.max_total is None and self.max_input is None and self.max_output is None:
            raise ValueError(
                "it has no limit, so it checks nothing; write `max_total`, `max_input` or `max_output`"
            )
        return self

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when all limits hold, else 0."""
        trace = case.trace
        return metrics.score_checks(
            (
                *metrics.at_most("tokens", metrics.total_tokens(trace), self.max_total),
                *metrics.at_most("input tokens", trace.input_tokens, self.max_input),
                *metrics.at_most("output tokens", trace.output_tokens, self.max_output),
            )
        )
