"""Evaluators that compare figures of the trace with limits.

They score 1 or 0. A figure that the trace lacks is a miss, also when negated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import ConfigDict, Field, model_validator

from agentevals_action.model.messages import ToolCall
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Case, Evaluator
from agentevals_action.model.trace import Trace
from agentevals_action.validation.file_model import list_spellings, spelled

#: Tools that read and change nothing, by their usual names in lower case without `_` and `-`.
EXPLORATION_TOOLS = frozenset({
    "read", "readfile", "viewfile", "notebookread", "grep", "grepsearch", "search", "searchfiles",
    "filesearch", "codebasesearch", "semanticsearch", "glob", "list", "ls", "listdir",
    "listdirectory", "listfiles", "websearch", "webfetch",
})  # fmt: skip

#: The default distance of the exploration ratio from its target.
_TOLERANCE = 0.2

_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=0)]
_Duration = Annotated[float, Field(gt=0)]
_Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Check:
    """One limit and its figure: `holds` is None if the trace lacks the figure."""

    holds: bool | None
    text: str


def amount(number: float, unit: str = "") -> str:
    """A figure with its unit (`ms`, `USD`, none for a count), with up to 9 decimals."""
    text = f"{number:.9f}".rstrip("0").rstrip(".") if isinstance(number, float) else str(number)
    return f"{text} {unit}".rstrip()


def within(figure: float, limit: float) -> bool:
    """Whether a figure is at most a limit, both rounded to 9 decimals."""
    return round(figure, 9) <= round(limit, 9)


def at_most(
    name: str, figure: float | None, limit: float | None, unit: str = ""
) -> tuple[Check, ...]:
    """The check that a figure is at most a limit; empty without a limit."""
    if limit is None:
        return ()
    most = amount(limit, unit)
    if figure is None:
        return (Check(None, f"{name}: unknown, the limit is {most}"),)
    holds = within(figure, limit)
    relation = "is within" if holds else "exceeds"
    return (Check(holds, f"{name}: {amount(figure, unit)} {relation} the limit of {most}"),)


def _cost_at_most(trace: Trace, limit: float | None) -> tuple[Check, ...]:
    """The check of the cost, with where it is from, or what to write so that it is known."""
    note = f" (source: {trace.cost_source})" if trace.cost_source else ""
    note = f"; {trace.cost_hint}" if trace.usage.cost_usd is None and trace.cost_hint else note
    checks = at_most("cost", trace.usage.cost_usd, limit, "USD")
    return tuple(replace(check, text=f"{check.text}{note}") for check in checks)


def about(
    name: str, figure: float | None, target: float | None, tolerance: float
) -> tuple[Check, ...]:
    """The check that a figure is within a tolerance of a target; empty without a target."""
    if target is None:
        return ()
    asked = f"{amount(target)} ± {amount(tolerance)} asked"
    if figure is None:
        return (Check(None, f"{name}: unknown, {asked}"),)
    text = f"{name}: {amount(round(figure, 4))}, {asked}"
    return (Check(within(abs(figure - target), tolerance), text),)


def score_checks(checks: Sequence[Check]) -> Score:
    """1 if every check holds, else 0; each is a hit or a miss.

    The score is unknown if a figure is missing and no other check fails."""
    results = {check.holds for check in checks}
    return Score(
        value=1.0 if results <= {True} else 0.0,
        hits=tuple(check.text for check in checks if check.holds),
        misses=tuple(check.text for check in checks if not check.holds),
        is_unknown=None in results and False not in results,
    )


def exploration_ratio(calls: Sequence[ToolCall] | None) -> float | None:
    """The share (0-1) of calls to `EXPLORATION_TOOLS`; None if it is unknown or without a call."""
    if not calls:
        return None
    names = (call.name.casefold().replace("_", "").replace("-", "") for call in calls)
    return sum(name in EXPLORATION_TOOLS for name in names) / len(calls)


class Latency(Evaluator):
    """Passes if the agent took at most `threshold` milliseconds; an unknown duration is a miss."""

    type = "latency"

    threshold: _Duration = spelled(
        "threshold", "max_ms", description="The longest time allowed, in milliseconds."
    )

    async def evaluate(self, case: Case) -> Score:
        """1 if the duration is within the limit, else 0."""
        return score_checks(at_most("duration", case.trace.duration_ms, self.threshold, "ms"))


class Cost(Evaluator):
    """Passes if the answer cost at most `budget`; an unknown cost is a miss."""

    type = "cost"

    budget: _Amount = spelled(
        "budget", "max_usd", description="The highest cost allowed, in US dollars."
    )

    async def evaluate(self, case: Case) -> Score:
        """1 if the cost is within the budget, else 0."""
        return score_checks(_cost_at_most(case.trace, self.budget))


def _require_limit(schema: dict[str, Any]) -> None:
    tolerance = "exploration_tolerance"
    others = {tolerance, *list_spellings(Evaluator)}
    limits = [name for name in schema["properties"] if name not in others]
    schema["anyOf"] = [{"required": [name]} for name in limits]
    if tolerance in schema["properties"]:
        schema["dependencies"] = {tolerance: ["target_exploration_ratio"]}


class _Limits(Evaluator):
    model_config = ConfigDict(json_schema_extra=_require_limit)

    #: The limits that the error of an evaluator without one names.
    examples: ClassVar[str]

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if not any(value is not None for value in self.own_fields().values()):
            raise ValueError(f"it has no limit, so it checks nothing; write {self.examples}")
        return self


class TokenUsage(_Limits):
    """Passes if the tokens are within every limit; unknown tokens are a miss."""

    type = "token_usage"
    examples = "`max_total`, `max_input` or `max_output`"

    max_total: _Count | None = spelled(
        "max_total",
        "max_total_tokens",
        default=None,
        description="The most tokens, in and out.",
    )
    max_input: _Count | None = spelled(
        "max_input", "max_input_tokens", default=None, description="The most input tokens."
    )
    max_output: _Count | None = spelled(
        "max_output", "max_output_tokens", default=None, description="The most output tokens."
    )

    async def evaluate(self, case: Case) -> Score:
        """1 if all limits hold, else 0."""
        trace = case.trace
        return score_checks(
            (
                *at_most("tokens", trace.usage.total_tokens, self.max_total),
                *at_most("input tokens", trace.usage.input_tokens, self.max_input),
                *at_most("output tokens", trace.usage.output_tokens, self.max_output),
            )
        )


class ExecutionMetrics(_Limits):
    """Passes if every limit holds; a limit whose figure the trace lacks is a miss."""

    type = "execution_metrics"
    examples = "one, such as `max_tokens` or `max_duration_ms`"

    max_tool_calls: _Count | None = Field(default=None, description="The most tool calls.")
    max_llm_calls: _Count | None = Field(default=None, description="The most model calls.")
    max_tokens: _Count | None = Field(default=None, description="The most tokens, in and out.")
    max_input_tokens: _Count | None = Field(default=None, description="The most input tokens.")
    max_output_tokens: _Count | None = Field(default=None, description="The most output tokens.")
    max_cost_usd: _Amount | None = Field(
        default=None, description="The highest cost in US dollars."
    )
    max_duration_ms: _Duration | None = Field(
        default=None, description="The longest time in milliseconds."
    )
    target_exploration_ratio: _Share | None = Field(
        default=None,
        description="The expected share (0-1) of tool calls that only look: those of tools that "
        "read, search, grep, glob, list, or fetch from the web. Unknown without a tool call.",
    )
    exploration_tolerance: _Share | None = Field(
        default=None,
        description="The allowed distance of the share from `target_exploration_ratio`; "
        f"{_TOLERANCE} if missing.",
    )

    @model_validator(mode="after")
    def _check_tolerance(self) -> Self:
        if self.exploration_tolerance is not None and self.target_exploration_ratio is None:
            raise ValueError(
                "`exploration_tolerance` has no effect alone; add `target_exploration_ratio`"
            )
        return self

    async def evaluate(self, case: Case) -> Score:
        """1 if all limits hold, else 0; each is a hit or a miss."""
        trace, calls = case.trace, case.trace.made_calls
        tolerance = _TOLERANCE if self.exploration_tolerance is None else self.exploration_tolerance
        # An agent that reads files through its shell does not show which calls explore.
        shown = None if trace.hidden_tools else calls
        ratio, target = exploration_ratio(shown), self.target_exploration_ratio
        call_count = None if calls is None else len(calls)
        return score_checks(
            (
                *at_most("tool calls", call_count, self.max_tool_calls),
                *at_most("model calls", trace.llm_call_count, self.max_llm_calls),
                *at_most("tokens", trace.usage.total_tokens, self.max_tokens),
                *at_most("input tokens", trace.usage.input_tokens, self.max_input_tokens),
                *at_most("output tokens", trace.usage.output_tokens, self.max_output_tokens),
                *_cost_at_most(trace, self.max_cost_usd),
                *at_most("duration", trace.duration_ms, self.max_duration_ms, "ms"),
                *about("exploration ratio", ratio, target, tolerance),
            )
        )
