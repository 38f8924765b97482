"""The evaluator types. A new type is one class and one line here."""

from agentevals_action.model.evaluator import Evaluator
from agentevals_action.system.registry import Registry

#: The module (in this package) and the class of every type by its name, in the order of the
#: documentation.
_CLASSES = {
    "contains": ("text_checks", "Contains"),
    "contains_any": ("text_checks", "ContainsAny"),
    "contains_all": ("text_checks", "ContainsAll"),
    "icontains": ("text_checks", "IContains"),
    "icontains_any": ("text_checks", "IContainsAny"),
    "icontains_all": ("text_checks", "IContainsAll"),
    "starts_with": ("text_checks", "StartsWith"),
    "ends_with": ("text_checks", "EndsWith"),
    "equals": ("text_checks", "Equals"),
    "regex": ("text_checks", "Regex"),
    "is_json": ("json.is_json", "IsJson"),
    "latency": ("trace_checks", "Latency"),
    "cost": ("trace_checks", "Cost"),
    "token_usage": ("trace_checks", "TokenUsage"),
    "code_judge": ("code_judge.evaluator", "CodeJudge"),
    "llm_judge": ("judges.llm_judge", "LlmJudge"),
    "rubric": ("judges.rubric", "Rubric"),
    "pairwise": ("judges.pairwise", "Pairwise"),
    "composite": ("composite", "Composite"),
    "tool_trajectory": ("tool_trajectory.evaluator", "ToolTrajectory"),
    "field_accuracy": ("json.field_accuracy", "FieldAccuracy"),
    "execution_metrics": ("trace_checks", "ExecutionMetrics"),
    "skill_trigger": ("trace_checks", "SkillTrigger"),
}

_ALIASES = {
    "assert_set": "composite",
    "code_grader": "code_judge",
    "llm_grader": "llm_judge",
    "llm_rubric": "llm_judge",
    "rubrics": "rubric",
    "script": "code_judge",
}

EVALUATORS: Registry[type[Evaluator]] = Registry(__name__, _CLASSES, _ALIASES)
Evaluator.types = EVALUATORS
