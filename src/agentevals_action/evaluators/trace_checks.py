"""Evaluators of the trace: its figures within limits, and the skill that is opened.

They score 1 or 0. What the trace lacks is a miss, also when negated."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from agentevals_action.evaluators.text_checks import TrimmedText, score_check
from agentevals_action.formatting import quoted
from agentevals_action.model.evaluator import Case, Evaluator
from agentevals_action.model.messages import ToolCall
from agentevals_action.model.result import Score
from agentevals_action.model.trace import Trace
from agentevals_action.validation.file_model import list_spellings, spelled

#: Tools that read and change nothing, by their usual names in lower case without `_` and `-`.
EXPLORATION_TOOLS = frozenset({
    "read", "readfile", "viewfile", "notebookread", "grep", "grepsearch", "search", "searchfiles",
    "filesearch", "codebasesearch", "semanticsearch", "glob", "list", "ls", "listdir",
    "listdirectory", "listfiles", "websearch", "webfetch",
})  # fmt: skip

#: The tools that open a skill, and the argument that names it.
_ARGUMENTS = {"Skill": "skill", "Read": "file_path"}
#: The default distance of the exploration ratio from its target.
_TOLERANCE = 0.2

_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=0)]
_Duration = Annotated[float, Field(gt=0)]
_Share = Annotated[float, Field(ge=0, le=1)]


#: The figures of a trace by their names in sentences, with their units.
_FIGURES: Mapping[str, tuple[Callable[[Trace], float | None], str]] = {
    "tool calls": (lambda trace: None if trace.made_calls is None else len(trace.made_calls), ""),
    "model calls": (lambda trace: trace.llm_call_count, ""),
    "tokens": (lambda trace: trace.usage.total_tokens, ""),
    "input tokens": (lambda trace: trace.usage.input_tokens, ""),
    "output tokens": (lambda trace: trace.usage.output_tokens, ""),
    "cost": (lambda trace: trace.usage.cost_usd, "USD"),
    "duration": (lambda trace: trace.duration_ms, "ms"),
}


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


def _check_limit(name: str, trace: Trace, limit: float) -> Check:
    """The check that a figure is at most a limit. Its text says where a cost is from, or what to
    write so that the cost is known."""
    read, unit = _FIGURES[name]
    figure, most, note = read(trace), amount(limit, unit), ""
    if name == "cost" and figure is None:
        note = f"; {trace.cost_hint}" if trace.cost_hint else ""
    elif name == "cost" and trace.cost_source:
        note = f" (source: {trace.cost_source})"
    if figure is None:
        return Check(None, f"{name}: unknown, the limit is {most}{note}")
    holds = within(figure, limit)
    relation = "is within" if holds else "exceeds"
    return Check(holds, f"{name}: {amount(figure, unit)} {relation} the limit of {most}{note}")


def _check_ratio(ratio: float | None, target: float, tolerance: float) -> Check:
    """The check that the exploration ratio is within a tolerance of a target."""
    asked = f"{amount(target)} ± {amount(tolerance)} asked"
    if ratio is None:
        return Check(None, f"exploration ratio: unknown, {asked}")
    text = f"exploration ratio: {amount(round(ratio, 4))}, {asked}"
    return Check(within(abs(ratio - target), tolerance), text)


def _exploration_ratio(trace: Trace) -> float | None:
    """The share (0-1) of calls to `EXPLORATION_TOOLS`; None if it is unknown or without a call."""
    # An agent that reads files through its shell does not show which calls explore.
    if not trace.made_calls or trace.hidden_tools:
        return None
    calls = trace.made_calls
    names = (call.name.casefold().replace("_", "").replace("-", "") for call in calls)
    return sum(name in EXPLORATION_TOOLS for name in names) / len(calls)


class _Metrics(Evaluator):
    #: The figure that each field limits, by its name in sentences.
    figures: ClassVar[Mapping[str, str]]

    async def evaluate(self, case: Case) -> Score:
        """1 if every limit holds, else 0; each is a hit or a miss. The score is unknown if a figure
        is missing and no other limit fails."""
        checks = [*self._checks(case.trace)]
        results = {check.holds for check in checks}
        return Score(
            value=1.0 if results <= {True} else 0.0,
            hits=tuple(check.text for check in checks if check.holds),
            misses=tuple(check.text for check in checks if not check.holds),
            is_unknown=None in results and False not in results,
        )

    def _checks(self, trace: Trace) -> Iterator[Check]:
        for field, name in self.figures.items():
            if (limit := getattr(self, field)) is not None:
                yield _check_limit(name, trace, limit)


class Latency(_Metrics):
    """Passes if the agent took at most `threshold` milliseconds; an unknown duration is a miss."""

    type = "latency"
    figures: ClassVar[Mapping[str, str]] = {"threshold": "duration"}

    threshold: _Duration = spelled(
        "threshold", "max_ms", description="The longest time allowed, in milliseconds."
    )


class Cost(_Metrics):
    """Passes if the answer cost at most `budget`; an unknown cost is a miss."""

    type = "cost"
    figures: ClassVar[Mapping[str, str]] = {"budget": "cost"}

    budget: _Amount = spelled(
        "budget", "max_usd", description="The highest cost allowed, in US dollars."
    )


def _require_limit(schema: dict[str, Any]) -> None:
    tolerance = "exploration_tolerance"
    others = {tolerance, *list_spellings(Evaluator)}
    limits = [name for name in schema["properties"] if name not in others]
    schema["anyOf"] = [{"required": [name]} for name in limits]
    if tolerance in schema["properties"]:
        schema["dependencies"] = {tolerance: ["target_exploration_ratio"]}


class _Limits(_Metrics):
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
    figures: ClassVar[Mapping[str, str]] = {
        "max_total": "tokens",
        "max_input": "input tokens",
        "max_output": "output tokens",
    }

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


class ExecutionMetrics(_Limits):
    """Passes if every limit holds; a limit whose figure the trace lacks is a miss."""

    type = "execution_metrics"
    examples = "one, such as `max_tokens` or `max_duration_ms`"
    figures: ClassVar[Mapping[str, str]] = {
        "max_tool_calls": "tool calls",
        "max_llm_calls": "model calls",
        "max_tokens": "tokens",
        "max_input_tokens": "input tokens",
        "max_output_tokens": "output tokens",
        "max_cost_usd": "cost",
        "max_duration_ms": "duration",
    }

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

    def _checks(self, trace: Trace) -> Iterator[Check]:
        yield from super()._checks(trace)
        if (target := self.target_exploration_ratio) is not None:
            given = self.exploration_tolerance
            yield _check_ratio(
                _exploration_ratio(trace), target, _TOLERANCE if given is None else given
            )


class SkillTrigger(Evaluator):
    """Passes if the agent's first tool call, or any, opens the skill, or does not, as
    `should_trigger` asks."""

    type = "skill_trigger"

    skill: TrimmedText = Field(
        description="The skill: its name must be the argument `skill` of the tool `Skill` "
        "(`name` or `plugin:name`), or a folder or file in `file_path` of `Read`."
    )
    should_trigger: bool = Field(
        default=True, description="`false` if the skill must not be opened."
    )
    call: Literal["first", "any"] = Field(
        default="first", description="`any`: one of the tool calls opens the skill."
    )

    async def evaluate(self, case: Case) -> Score:
        """1 if the calls are as they should be, else 0; unknown tool calls and a refused one are
        a miss either way."""
        name, calls = quoted(self.skill), case.trace.tool_calls
        done, not_done = ("came first", "did not come first")
        if self.call == "any":
            done, not_done = ("was opened", "was not opened")
        counted = (calls or ())[: 1 if self.call == "first" else None]
        if calls is None or not _ARGUMENTS.keys().isdisjoint(case.trace.hidden_tools):
            why = "the reply does not show all tool calls"
            if calls is not None:
                why = "the agent reads files through its shell"
            miss = f"whether the skill {name} {done} is unknown: {why}"
            return Score(0.0, misses=(miss,), is_unknown=True)
        opening = [call for call in counted if _opens(call, self.skill.strip())]
        if opening and all(call.refused for call in opening):
            miss = f"the skill {name} {done}, but the call was refused"
            return Score(0.0, misses=(miss,), is_unknown=True)
        first = f"the first tool call is {quoted(calls[0].name)}" if calls else "no tool was called"
        text = f"the skill {name} " + (done if opening else f"{not_done}: {first}")
        return score_check(bool(opening) is self.should_trigger, text, text)

    def label(self) -> str:
        """The skill."""
        return self.skill


def _opens(call: ToolCall, skill: str) -> bool:
    if not isinstance(call.arguments, Mapping):
        return False
    value = call.arguments.get(_ARGUMENTS.get(call.name))
    return isinstance(value, str) and bool(
        re.search(rf"(^|[/\\:]){re.escape(skill)}(\.md)?($|[/\\:])", value)
    )
