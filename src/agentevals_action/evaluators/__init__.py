"""The evaluator types. A new type is one class and one line here."""

from collections.abc import Mapping

from agentevals_action.evaluators.code_judge.evaluator import CodeJudge
from agentevals_action.evaluators.composite import Composite
from agentevals_action.evaluators.json.field_accuracy import FieldAccuracy
from agentevals_action.evaluators.json.is_json import IsJson
from agentevals_action.evaluators.judges.llm_judge import LlmJudge
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.evaluators.metric_checks import Cost, ExecutionMetrics, Latency, TokenUsage
from agentevals_action.evaluators.skill_trigger import SkillTrigger
from agentevals_action.evaluators.text_checks import (
    Contains,
    ContainsAll,
    ContainsAny,
    EndsWith,
    Equals,
    IContains,
    IContainsAll,
    IContainsAny,
    Regex,
    StartsWith,
)
from agentevals_action.evaluators.tool_trajectory.evaluator import ToolTrajectory
from agentevals_action.model.suite import Evaluator

#: Every evaluator type by its name, in the order of the documentation.
EVALUATORS: Mapping[str, type[Evaluator]] = {
    "contains": Contains,
    "contains_any": ContainsAny,
    "contains_all": ContainsAll,
    "icontains": IContains,
    "icontains_any": IContainsAny,
    "icontains_all": IContainsAll,
    "starts_with": StartsWith,
    "ends_with": EndsWith,
    "equals": Equals,
    "regex": Regex,
    "is_json": IsJson,
    "latency": Latency,
    "cost": Cost,
    "token_usage": TokenUsage,
    "code_judge": CodeJudge,
    "llm_judge": LlmJudge,
    "rubric": Rubric,
    "composite": Composite,
    "tool_trajectory": ToolTrajectory,
    "field_accuracy": FieldAccuracy,
    "execution_metrics": ExecutionMetrics,
    "skill_trigger": SkillTrigger,
}

#: The same with the aliases of each type: the union of which files have evaluators.
EVALUATORS_BY_NAME: Mapping[str, type[Evaluator]] = {
    name: options for options in EVALUATORS.values() for name in (options.type, *options.aliases)
}
Evaluator.types = EVALUATORS_BY_NAME
