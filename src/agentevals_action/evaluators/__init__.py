"""The evaluator types: one file each; a new one is its file and its line here."""

from agentevals_action.evaluators.base import Options
from agentevals_action.evaluators.code_judge import CodeJudge
from agentevals_action.evaluators.composite import Composite
from agentevals_action.evaluators.contains import Contains
from agentevals_action.evaluators.contains_all import ContainsAll
from agentevals_action.evaluators.contains_any import ContainsAny
from agentevals_action.evaluators.cost import Cost
from agentevals_action.evaluators.ends_with import EndsWith
from agentevals_action.evaluators.equals import Equals
from agentevals_action.evaluators.execution_metrics import ExecutionMetrics
from agentevals_action.evaluators.field_accuracy import FieldAccuracy
from agentevals_action.evaluators.icontains import IContains
from agentevals_action.evaluators.icontains_all import IContainsAll
from agentevals_action.evaluators.icontains_any import IContainsAny
from agentevals_action.evaluators.is_json import IsJson
from agentevals_action.evaluators.latency import Latency
from agentevals_action.evaluators.llm_judge import LlmJudge
from agentevals_action.evaluators.regex import Regex
from agentevals_action.evaluators.rubric import Rubric
from agentevals_action.evaluators.skill_trigger import SkillTrigger
from agentevals_action.evaluators.starts_with import StartsWith
from agentevals_action.evaluators.token_usage import TokenUsage
from agentevals_action.evaluators.tool_trajectory import ToolTrajectory

#: Every evaluator type, in the order of the documentation.
REGISTRY: tuple[type[Options], ...] = (
    Contains,
    ContainsAny,
    ContainsAll,
    IContains,
    IContainsAny,
    IContainsAll,
    StartsWith,
    EndsWith,
    Equals,
    Regex,
    IsJson,
    Latency,
    Cost,
    TokenUsage,
    CodeJudge,
    LlmJudge,
    Rubric,
    Composite,
    ToolTrajectory,
    FieldAccuracy,
    ExecutionMetrics,
    SkillTrigger,
)


def catalog() -> dict[str, type[Options]]:
    """Every evaluator type by its name and by each of its aliases, all with `_`."""
    return {name: options for options in REGISTRY for name in (options.type, *options.aliases)}
