"""`tool_trajectory`: the agent called the tools that were expected of it."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, Strict, ValidationInfo, field_validator, model_validator

from agentevals_action.evaluators.base import Case, Options
from agentevals_action.grading import trajectory
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator

_NOTHING = "it checks nothing; write the calls under `expected`, or counts under `minimums`"


class ToolTrajectory(Options):
    """Scores the agent's tool calls by those expected, each of which one call satisfies; unknown tool calls are misses."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["expected"]}, {"required": ["minimums"]}]})

    type = "tool_trajectory"

    mode: trajectory.Mode = Field(
        "any_order",
        description="What is asked: `any_order` (every expected call and every minimum), `in_order` (the expected calls in their order, "
        "others between them), `exact` (these calls and no others), `superset` (these calls, and any others), `subset` (none but these).",
    )
    expected: Annotated[tuple[trajectory.Expectation, ...], Strict(False)] | None = Field(
        None, description="The calls that are expected; an empty list expects none (with `exact` or `subset`)."
    )
    minimums: dict[Annotated[str, Field(min_length=1)], Annotated[int, Field(ge=1)]] | None = Field(
        None, description="How often a tool must be called at least, by its name; for the mode `any_order`."
    )
    args_match: trajectory.ArgsMatch | None = Field(
        None, description="How arguments are compared where an expected call does not say: `superset`, `exact`, `subset`, `ignore`, a list."
    )

    @field_validator("minimums")
    @classmethod
    def _belong_to_the_mode(cls, value: dict[str, int] | None, info: ValidationInfo) -> dict[str, int] | None:
        mode = info.data.get("mode")
        if value and mode not in (None, "any_order"):
            raise ValueError(f"the mode `{mode}` asks for no minimums; write `mode: any_order`, or an evaluator of its own for them")
        return value

    @field_validator("args_match")
    @classmethod
    def _names_arguments(cls, value: trajectory.ArgsMatch | None, info: ValidationInfo) -> trajectory.ArgsMatch | None:
        known = [item.args for item in info.data.get("expected") or () if isinstance(item.args, dict)]
        trajectory.check_names(value, known)
        return value

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if self.expected is None and not self.minimums:
            raise ValueError(f"it has neither `expected` nor `minimums`, so {_NOTHING}")
        if not self.expected and not self.minimums and self.mode not in ("exact", "subset"):
            raise ValueError(f"`expected` is empty, so {_NOTHING}")
        return self

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """The share of what is asked, by the mode."""
        plan = trajectory.Plan(self.mode, self.expected or (), self.minimums or {}, self.args_match)
        return trajectory.score_calls(plan, case.trace.tool_calls)
