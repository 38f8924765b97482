"""Every field of AgentV's published schemas is read, refused by name, or without effect."""

from pathlib import Path

import pytest

from agentevals_action import evaluators
from agentevals_action.suites import dialects
from agentevals_action.suites.dialects import Shape
from tests.support import suites

#: The properties of the published schema of AgentV 4.42, by object. A name in capitals is a type of
#: evaluator.
AGENTV_4 = {
    "suite": "$schema name description category version author tags license requires input "
    "input_files tests eval_cases target execution assertions preprocessors workspace",
    "test": "id vars criteria input input_files expected_output assertions evaluators execution "
    "workspace metadata conversation_id suite depends_on on_dependency_failure mode turns "
    "aggregation on_turn_failure window_size",
    "execution": "target targets workers assertions evaluators skip_defaults cache trials "
    "budget_usd budgetUsd fail_on_error failOnError threshold",
    "message": "role content",
    "block": "type value",
    "workspace": "template isolation repos hooks mode path docker",
    "repository": "path repo commit base_commit ancestor sparse",
    "hooks": "enabled before_all before_each after_each after_all",
    "hook": "command script timeout_ms cwd reset",
    "code_grader": "name weight required min_score negate type command script cwd target config "
    "preprocessors",
    "llm_grader": "name weight required min_score negate type prompt rubrics model target config "
    "max_steps temperature preprocessors",
    "composite": "name weight required min_score negate type assertions evaluators aggregator",
    "tool_trajectory": "name weight required min_score negate type mode minimums expected "
    "args_match argsMatch",
    "field_accuracy": "name weight required min_score negate type fields aggregation",
    "latency": "name weight required min_score negate type threshold",
    "cost": "name weight required min_score negate type budget",
    "token_usage": "name weight required min_score negate type max_total max_input max_output",
    "execution_metrics": "name weight required min_score negate type max_tool_calls max_llm_calls "
    "max_tokens max_cost_usd max_duration_ms target_exploration_ratio exploration_tolerance",
    "contains": "name weight required min_score negate type value",
    "is_json": "name weight required min_score negate type",
    "rubrics": "name weight required min_score negate type criteria",
}
#: The properties of a suite and of a test in the schema of AgentV 5.
AGENTV_5 = {
    "suite": "$schema name description category version author tags license requires "
    "expected_output input prompts input_files imports tests providerPromptMap "
    "provider_prompt_map graders defaults eval_cases evalcases target targets providers model "
    "experiment repeat runs early_exit timeout_seconds evaluate_options budget_usd threshold "
    "default_test environment scenarios derived_metrics output_path env nunjucks_filters "
    "extensions on_run_complete policy execution assert preprocessors",
    "test": "id description vars provider providers prompts input input_files expected_output "
    "assert assert_scoring_function options threshold execution run environment metadata "
    "conversation_id suite depends_on on_dependency_failure mode turns aggregation "
    "on_turn_failure window_size",
}
_SHAPES = {
    "suite": dialects.SUITE,
    "test": dialects.TEST,
    "message": dialects.MESSAGE,
    "block": dialects.BLOCK,
    "workspace": dialects.WORKSPACE,
    "repository": dialects.REPO,
    "hooks": dialects.HOOKS,
    "hook": dialects.RESETTING_HOOK,
}


def shapes_of(what: str) -> tuple[Shape, ...]:
    if what == "execution":
        return (dialects.SUITE_EXECUTION, dialects.TEST_EXECUTION)
    if what in _SHAPES:
        return (_SHAPES[what],)
    return (dialects.evaluator_shape(evaluators.EVALUATORS_BY_NAME[what]),)


@pytest.mark.parametrize(
    ("what", "names"),
    [
        *((what, names) for what, names in AGENTV_4.items()),
        *((what, names) for what, names in AGENTV_5.items()),
    ],
)
def test_published_field__is_read_refused_or_harmless(what: str, names: str) -> None:
    unknown = []
    for name in names.split():
        is_known = any(
            name in shape.canonical
            or name in shape.elsewhere
            or name in shape.unsupported
            or name in shape.misplaced
            or name in dialects.known_elsewhere(shape.what)
            for shape in shapes_of(what)
        )
        is_of_agentv_5 = what == "suite" and name in dialects.AGENTV_5
        if not (is_known or dialects.is_exempt(name) or is_of_agentv_5):
            unknown.append(name)

    assert unknown == []


@pytest.mark.parametrize("name", sorted(dialects.HARMLESS - {"id", "name"}))
def test_harmless_field__is_accepted_everywhere(tmp_path: Path, name: str) -> None:
    text = f"""\
name: suite
{name if name != "description" else "x-other"}: "x"
tests:
  - id: a
    {name if name not in ("description", "note") else "x-other"}: "x"
    input: [{{role: user, content: q, {name}: x}}]
    assert: [{{type: is_json, {name}: x}}]
"""
    suites.write(tmp_path, {"EVAL.yaml": text})

    suites.load_valid(tmp_path, strict=True)


def test_field_of_the_user__is_accepted(tmp_path: Path) -> None:
    text = "name: suite\nx-anchors: {a: 1}\ntests: [{id: a, input: q, criteria: c, x-mine: 2}]"
    suites.write(tmp_path, {"EVAL.yaml": text})

    suites.load_valid(tmp_path, strict=True)
