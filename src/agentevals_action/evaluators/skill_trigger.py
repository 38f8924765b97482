"""`skill_trigger`: the agent turned to a skill first."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from agentevals_action.evaluators import matching
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.formatting import quoted
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator, ToolCall

#: The tools that open a skill, and the argument that names it.
_ARGUMENTS = {"Skill": "skill", "Read": "file_path"}


class SkillTrigger(Options):
    """Passes when the agent's first tool call opens a skill, or opens another when it should not be
    opened."""

    type = "skill_trigger"

    skill: Annotated[
        matching.TrimmedText,
        Meta(
            description="The skill: its name must be part of the `skill` that the tool `Skill` is called with, or of the `file_path` of "
            "`Read`."
        ),
    ]
    should_trigger: Annotated[
        bool, Meta(description="`false` when the skill must not be opened first.")
    ] = True

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the first call is as it should be, else 0; unknown tool calls are a miss either
        way."""
        name, calls = quoted(self.skill), case.trace.tool_calls
        if calls is None:
            return Score(
                0.0,
                misses=(
                    f"whether the skill {name} came first is unknown: the reply shows no tool calls",
                ),
                known=False,
            )
        opened = bool(calls) and opens(calls[0], self.skill.strip())
        first = f"the first tool call is {quoted(calls[0].name)}" if calls else "no tool was called"
        told = (
            f"the skill {name} came first"
            if opened
            else f"the skill {name} did not come first: {first}"
        )
        return matching.score_check(opened is self.should_trigger, told, told)

    def label(self) -> str:
        """The skill."""
        return self.skill


def opens(call: ToolCall, skill: str) -> bool:
    """Whether a tool call opens a skill: `Skill` whose `skill` contains its name, or `Read` whose
    `file_path` does."""
    named = _ARGUMENTS.get(call.name)
    if named is None or not isinstance(call.arguments, Mapping):
        return False
    value = call.arguments.get(named)
    return isinstance(value, str) and skill in value
