"""`execution_metrics`: what the answer took is within limits."""

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from agentevals_action.evaluators.base import Case, Options
from agentevals_action.grading import metrics
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator

#: How far the share of exploring calls may be from its target when nothing is said.
_TOLERANCE = 0.2


def _require_a_limit(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"required": [name]} for name in schema["properties"] if name != "exploration_tolerance"]
    schema["dependencies"] = {"exploration_tolerance": ["target_exploration_ratio"]}


class ExecutionMetrics(Options):
    """Passes when every limit given holds; a limit whose figure the trace lacks is a miss."""

    model_config = ConfigDict(json_schema_extra=_require_a_limit)

    type = "execution_metrics"

    max_tool_calls: int | None = Field(None, ge=0, description="The most tool calls allowed.")
    max_llm_calls: int | None = Field(None, ge=0, description="The most calls of a model allowed.")
    max_tokens: int | None = Field(None, ge=0, description="The most tokens allowed, in and out together.")
    max_input_tokens: int | None = Field(None, ge=0, description="The most tokens allowed in what the model is given.")
    max_output_tokens: int | None = Field(None, ge=0, description="The most tokens allowed in what the model writes.")
    max_cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(None, description="The highest cost, in US dollars.")
    max_duration_ms: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        None, description="The longest time allowed, in milliseconds."
    )
    target_exploration_ratio: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None,
        description="The share (0-1) of tool calls that should look and change nothing: those of tools that read, search, grep, glob, "
        "list, or fetch from the web. Without a tool call it is unknown.",
    )
    exploration_tolerance: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description=f"How far the share may be from `target_exploration_ratio`; {_TOLERANCE} when missing."
    )

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if self.exploration_tolerance is not None and self.target_exploration_ratio is None:
            raise ValueError("`exploration_tolerance` stands alone, so it allows nothing; write `target_exploration_ratio` beside it")
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("it has no limit, so it checks nothing; write one, as `max_tokens` or `max_duration_ms`")
        return self

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when all limits hold, else 0; each is a hit or a miss."""
        trace, calls = case.trace, case.trace.tool_calls
        tolerance = _TOLERANCE if self.exploration_tolerance is None else self.exploration_tolerance
        return metrics.score_checks(
            (
                *metrics.at_most("tool calls", None if calls is None else len(calls), self.max_tool_calls),
                *metrics.at_most("model calls", trace.llm_call_count, self.max_llm_calls),
                *metrics.at_most("tokens", metrics.total_tokens(trace), self.max_tokens),
                *metrics.at_most("input tokens", trace.input_tokens, self.max_input_tokens),
                *metrics.at_most("output tokens", trace.output_tokens, self.max_output_tokens),
                *metrics.at_most("cost", trace.cost_usd, self.max_cost_usd, "USD"),
                *metrics.at_most("duration", trace.duration_ms, self.max_duration_ms, "ms"),
                *metrics.about("exploration ratio", metrics.exploration_ratio(calls), self.target_exploration_ratio, tolerance),
            )
        )
