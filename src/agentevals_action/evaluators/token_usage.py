"""`token_usage`: the answer took no more tokens than allowed."""

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import ConfigDict, Field, model_validator

from agentevals_action.evaluators.base import Case, Options
from agentevals_action.grading import metrics
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class TokenUsage(Options):
    """Passes when the tokens used are within every limit given; unknown tokens are a miss."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": [name]} for name in ("max_total", "max_input", "max_output")]})

    type = "token_usage"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "max_total": ("max_total_tokens",),
        "max_input": ("max_input_tokens",),
        "max_output": ("max_output_tokens",),
    }

    max_total: int | None = Field(None, ge=0, description="The most tokens allowed, in and out together.")
    max_input: int | None = Field(None, ge=0, description="The most tokens allowed in what the model is given.")
    max_output: int | None = Field(None, ge=0, description="The most tokens allowed in what the model writes.")

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if self.max_total is None and self.max_input is None and self.max_output is None:
            raise ValueError("it has no limit, so it checks nothing; write `max_total`, `max_input` or `max_output`")
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
