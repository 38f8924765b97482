"""`tool_trajectory`: the agent called the tools that were expected of it."""

from typing import Annotated, Self

from msgspec import Meta

from agentevals_action.entries.entry import NonEmpty, Schema, Seen, Written, checks
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.evaluators.tool_trajectory import matching
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator

_NOTHING = "it checks nothing; write the calls under `expected`, or counts under `minimums`"


class ToolTrajectory(Options):
    """Scores the agent's tool calls by those expected, each of which one call satisfies; unknown
    tool calls are misses."""

    type = "tool_trajectory"

    mode: Annotated[
        matching.Mode,
        Meta(
            description="What is asked: `any_order` (every expected call and every minimum), `in_order` (the expected calls in their "
            "order, others between them), `exact` (these calls and no others), `superset` (these calls, and any others), `subset` (none "
            "but these)."
        ),
    ] = "any_order"
    expected: Annotated[
        tuple[matching.Expectation, ...] | None,
        Meta(
            description="The calls that are expected; an empty list expects none (with `exact` or `subset`)."
        ),
    ] = None
    minimums: Annotated[
        dict[NonEmpty, Annotated[int, Meta(ge=1)]] | None,
        Meta(
            description="How often a tool must be called at least, by its name; for the mode `any_order`."
        ),
    ] = None
    args_match: Annotated[
        matching.ArgsMatch | None,
        Meta(
            description="How arguments are compared where an expected call does not say: `superset`, `exact`, `subset`, `ignore`, a list."
        ),
    ] = None

    @checks("minimums")
    @classmethod
    def _belong_to_the_mode(cls, value: dict[str, int] | None, seen: Seen) -> dict[str, int] | None:
        mode = seen.fields.get("mode")
        if value and mode not in (None, "any_order"):
            raise ValueError(
                f"the mode `{mode}` asks for no minimums; write `mode: any_order`, or an evaluator of its own for them"
            )
        return value

    @checks("args_match")
    @classmethod
    def _names_arguments(
        cls, value: matching.ArgsMatch | None, seen: Seen
    ) -> matching.ArgsMatch | None:
        known = [
            item.args for item in seen.fields.get("expected") or () if isinstance(item.args, dict)
        ]
        matching.check_names(value, known)
        return value

    @classmethod
    def refined(cls, schema: Schema) -> Schema:
        """One of the fields that ask something is there."""
        return {**schema, "anyOf": [{"required": ["expected"]}, {"required": ["minimums"]}]}

    def completed(self, _written: Written) -> Self:
        """Itself; ValueError when it asks nothing."""
        if self.expected is None and not self.minimums:
            raise ValueError(f"it has neither `expected` nor `minimums`, so {_NOTHING}")
        if not self.expected and not self.minimums and self.mode not in ("exact", "subset"):
            raise ValueError(f"`expected` is empty, so {_NOTHING}")
        return self

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """The share of what is asked, by the mode."""
        plan = matching.Plan(self.mode, self.expected or (), self.minimums or {}, self.args_match)
        return matching.score_calls(plan, case.trace.tool_calls)
