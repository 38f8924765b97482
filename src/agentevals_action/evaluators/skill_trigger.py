"""`skill_trigger`: the agent opens a skill with its first tool call."""

from collections.abc import Mapping

from pydantic import Field

from agentevals_action.evaluators.text_checks import TrimmedText, score_check
from agentevals_action.formatting import quoted
from agentevals_action.model.messages import ToolCall
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Case, Evaluator

#: The tools that open a skill, and the argument that names it.
_ARGUMENTS = {"Skill": "skill", "Read": "file_path"}


class SkillTrigger(Evaluator):
    """Passes if the agent's first tool call opens the skill, or does not, as `should_trigger`
    asks."""

    type = "skill_trigger"

    skill: TrimmedText = Field(
        description="The skill: its name must be part of the argument `skill` of the tool "
        "`Skill`, or of `file_path` of `Read`."
    )
    should_trigger: bool = Field(
        default=True, description="`false` if the skill must not be opened first."
    )

    async def evaluate(self, case: Case) -> Score:
        """1 if the first call is as it should be, else 0; unknown tool calls and a refused one are
        a miss either way."""
        name, calls = quoted(self.skill), case.trace.tool_calls
        if calls is None or not _ARGUMENTS.keys().isdisjoint(case.trace.hidden_tools):
            why = "the reply does not show all tool calls"
            if calls is not None:
                why = "the agent reads files through its shell"
            miss = f"whether the skill {name} came first is unknown: {why}"
            return Score(0.0, misses=(miss,), is_unknown=True)
        opened = bool(calls) and _opens(calls[0], self.skill.strip())
        if opened and calls[0].refused:
            miss = f"the skill {name} came first, but the call was refused"
            return Score(0.0, misses=(miss,), is_unknown=True)
        first = f"the first tool call is {quoted(calls[0].name)}" if calls else "no tool was called"
        text = f"the skill {name} " + ("came first" if opened else f"did not come first: {first}")
        return score_check(opened is self.should_trigger, text, text)

    def label(self) -> str:
        """The skill."""
        return self.skill


def _opens(call: ToolCall, skill: str) -> bool:
    if not isinstance(call.arguments, Mapping):
        return False
    value = call.arguments.get(_ARGUMENTS.get(call.name))
    return isinstance(value, str) and skill in value
