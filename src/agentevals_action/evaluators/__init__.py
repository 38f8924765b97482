"""The evaluator types: one file each; a new one is its file and its line here."""

from collections.abc import Mapping

from agentevals_action.evaluators.base import Options
from agentevals_action.registry import Registry

#: Every evaluator type, which is the name of its file, in the order of the documentation: its
#: class, and its aliases.
_TYPES: Mapping[str, tuple[str, ...]] = {
    "contains": ("Contains",),
    "contains_any": ("ContainsAny",),
    "contains_all": ("ContainsAll",),
    "icontains": ("IContains",),
    "icontains_any": ("IContainsAny",),
    "icontains_all": ("IContainsAll",),
    "starts_with": ("StartsWith",),
    "ends_with": ("EndsWith",),
    "equals": ("Equals",),
    "regex": ("Regex",),
    "is_json": ("IsJson",),
    "latency": ("Latency",),
    "cost": ("Cost",),
    "token_usage": ("TokenUsage",),
    "code_judge": ("CodeJudge", "code_grader", "script"),
    "llm_judge": ("LlmJudge", "llm_grader", "llm_rubric"),
    "rubric": ("Rubric", "rubrics"),
    "composite": ("Composite", "assert_set"),
    "tool_trajectory": ("ToolTrajectory",),
    "field_accuracy": ("FieldAccuracy",),
    "execution_metrics": ("ExecutionMetrics",),
    "skill_trigger": ("SkillTrigger",),
}

#: The module of a type that is in a folder of its own.
_FOLDERS = {"llm_judge": "judges.llm_judge", "rubric": "judges.rubric"}


def catalog() -> Mapping[str, type[Options]]:
    """Every evaluator type by its name and by each of its aliases, all with `_`."""
    named = {
        name: (_FOLDERS.get(kind, kind), plugin)
        for kind, (plugin, *aliases) in _TYPES.items()
        for name in (kind, *aliases)
    }
    return Registry[Options](__name__, named)


def every() -> tuple[type[Options], ...]:
    """Every evaluator type, in the order of the documentation."""
    types = catalog()
    return tuple(types[kind] for kind in _TYPES)
