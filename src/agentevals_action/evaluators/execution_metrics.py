"""`execution_metrics`: what the answer took is within limits."""

from typing import Annotated, Self

from msgspec import Meta

from agentevals_action.entries.entry import Schema, Written
from agentevals_action.evaluators import metrics
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator

#: How far the share of exploring calls may be from its target when nothing is said.
_TOLERANCE = 0.2

_Count = Annotated[int, Meta(ge=0)]
_Share = Annotated[float, Meta(ge=0, le=1)]


class ExecutionMetrics(Options):
    """Passes when every limit given holds; a limit whose figure the trace lacks is a miss."""

    type = "execution_metrics"

    max_tool_calls: Annotated[_Count | None, Meta(description="The most tool calls allowed.")] = (
        None
    )
    max_llm_calls: Annotated[
        _Count | None, Meta(description="The most calls of a model allowed.")
    ] = None
    max_tokens: Annotated[
        _Count | None, Meta(description="The most tokens allowed, in and out together.")
    ] = None
    max_input_tokens: Annotated[
        _Count | None, Meta(description="The most tokens allowed in what the model is given.")
    ] = None
    max_output_tokens: Annotated[
        _Count | None, Meta(description="The most tokens allowed in what the model writes.")
    ] = None
    max_cost_usd: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="The highest cost, in US dollars.")
    ] = None
    max_duration_ms: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="The longest time allowed, in milliseconds."),
    ] = None
    target_exploration_ratio: Annotated[
        _Share | None,
        Meta(
            description="The share (0-1) of tool calls that should look and change nothing: those of tools that read, search, grep, glob, "
            "list, or fetch from the web. Without a tool call it is unknown."
        ),
    ] = None
    exploration_tolerance: Annotated[
        _Share | None,
        Meta(
            description=f"How far the share may be from `target_exploration_ratio`; {_TOLERANCE} when missing."
        ),
    ] = None

    @classmethod
    def refined(cls, schema: Schema) -> Schema:
        """One of the limits is there, and no tolerance of none."""
        limits = [
            {"required": [name]} for name in schema["properties"] if name != "exploration_tolerance"
        ]
        return {
            **schema,
            "anyOf": limits,
            "dependencies": {"exploration_tolerance": ["target_exploration_ratio"]},
        }

    def completed(self, _written: Written) -> Self:
        """Itself; ValueError when it has no limit, or the tolerance of one that is missing."""
        if self.exploration_tolerance is not None and self.target_exploration_ratio is None:
            raise ValueError(
                "`exploration_tolerance` stands alone, so it allows nothing; write `target_exploration_ratio` beside it"
            )
        if all(getattr(self, name) is None for name in self.__struct_fields__):
            raise ValueError(
                "it has no limit, so it checks nothing; write one, as `max_tokens` or `max_duration_ms`"
            )
        return self

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when all limits hold, else 0; each is a hit or a miss."""
        trace, calls = case.trace, case.trace.tool_calls
        tolerance = _TOLERANCE if self.exploration_tolerance is None else self.exploration_tolerance
        return metrics.score_checks(
            (
                *metrics.at_most(
                    "tool calls", None if calls is None else len(calls), self.max_tool_calls
                ),
                *metrics.at_most("model calls", trace.llm_call_count, self.max_llm_calls),
                *metrics.at_most("tokens", metrics.total_tokens(trace), self.max_tokens),
                *metrics.at_most("input tokens", trace.input_tokens, self.max_input_tokens),
                *metrics.at_most("output tokens", trace.output_tokens, self.max_output_tokens),
                *metrics.at_most("cost", trace.cost_usd, self.max_cost_usd, "USD"),
                *metrics.at_most("duration", trace.duration_ms, self.max_duration_ms, "ms"),
                *metrics.about(
                    "exploration ratio",
                    metrics.exploration_ratio(calls),
                    self.target_exploration_ratio,
                    tolerance,
                ),
            )
        )
