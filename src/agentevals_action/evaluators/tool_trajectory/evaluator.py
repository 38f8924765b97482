"""`tool_trajectory`: the agent's tool calls are compared with those expected."""

import asyncio
from collections.abc import Collection
from typing import Annotated, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from agentevals_action.evaluators.tool_trajectory.expectations import (
    ArgsMatch,
    Expectation,
    ExpectedCalls,
    Mode,
    check_argument_names,
)
from agentevals_action.evaluators.tool_trajectory.matching import score_calls
from agentevals_action.model.evaluator import Case, Evaluator
from agentevals_action.model.result import Score
from agentevals_action.model.trace import list_calls
from agentevals_action.validation.file_model import ListOf, NonEmpty, spelled

_NOTHING = "it checks nothing; write the calls under `expected`, or counts under `minimums`"


class ToolTrajectory(Evaluator):
    """Compares the agent's tool calls with those expected; one call satisfies one of them, a
    refused call none. Unknown tool calls are misses."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["expected"]}, {"required": ["minimums"]}]}
    )

    type = "tool_trajectory"

    mode: Mode = Field(
        default="any_order",
        description="`any_order` (every expected call and every minimum), `in_order` (the "
        "expected calls in their order, others between them), `exact` (these "
        "calls and no others), `superset` (these calls, and any others), "
        "`subset` (no calls but these).",
    )
    expected: ListOf[Expectation] | None = Field(
        default=None,
        description="The expected calls; an empty list expects none (with `exact` or `subset`).",
    )
    minimums: dict[NonEmpty, Annotated[int, Field(ge=1)]] | None = Field(
        default=None,
        description="The least number of calls of a tool, by its name; for the mode `any_order`.",
    )
    args_match: ArgsMatch | None = spelled(
        "args_match",
        "argsMatch",
        default=None,
        description="How arguments are compared unless an expected call has its own "
        "`args_match`: `superset`, `exact`, `subset`, `ignore`, or a list.",
    )

    @field_validator("minimums")
    @classmethod
    def _check_mode(
        cls, value: dict[str, int] | None, info: ValidationInfo
    ) -> dict[str, int] | None:
        mode = info.data.get("mode")
        if value and mode not in (None, "any_order"):
            raise ValueError(
                f"the mode `{mode}` has no minimums; "
                "write `mode: any_order`, or a second evaluator for them"
            )
        return value

    @field_validator("args_match")
    @classmethod
    def _check_names(cls, value: ArgsMatch | None, info: ValidationInfo) -> ArgsMatch | None:
        expected = info.data.get("expected") or ()
        check_argument_names(value, [call.args for call in expected if isinstance(call.args, dict)])
        return value

    @model_validator(mode="after")
    def _check_something(self) -> Self:
        if self.expected is None and not self.minimums:
            raise ValueError(f"it has neither `expected` nor `minimums`, so {_NOTHING}")
        if not self.expected and not self.minimums and self.mode not in ("exact", "subset"):
            raise ValueError(f"`expected` is empty, so {_NOTHING}")
        return self

    def expected_tools(self) -> Collection[str]:
        """The tools of the expected calls, and of the minimums."""
        return {*(call.tool for call in self.expected or ()), *(self.minimums or ())}

    async def evaluate(self, case: Case) -> Score:
        """The satisfied share, by the mode; AttemptError for too many calls."""
        expected = tuple(call.or_else(self.args_match) for call in self.expected or ())
        plan = ExpectedCalls(self.mode, expected, self.minimums or {})
        trace = case.trace
        # A thread: many calls must not block the other tests.
        return await asyncio.to_thread(
            score_calls, plan, trace.tool_calls, trace.hidden_tools, list_calls(trace.messages)
        )
