"""Converts the three dialects of suites to canonical names; no other module knows a second spelling
of anything."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from agentevals_action.evaluators import EVALUATORS
from agentevals_action.evaluators.base import EvaluatorOptions
from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.messages import ROLES
from agentevals_action.model.validation.file_model import fields_of
from agentevals_action.suites.files.diagnostics import Findings, nearest
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.validation_errors import describe_value
from agentevals_action.suites.models import messages, schema_models, workspace_models
from agentevals_action.targets.providers import PROVIDERS

#: Fields that contain evaluators, in every dialect: of the suite, of tests, and of `execution`.
EVALUATOR_LISTS = ("assert", "assertions", "evaluators")

#: Spellings of the earlier format: accepted, with one warning for each in a file.
EARLIER = frozenset(
    ("evalcases", "eval_cases", "expected_outcome", "input_messages", "expected_messages")
)

#: The fields that nothing reads, wherever they are: remarks for readers, and settings of AgentV
#: that concern its logs, its speed, or its own catalogue of suites.
HARMLESS = frozenset(
    (
        *("$schema", "id", "name", "title", "description", "note", "comment", "author", "license"),
        *("tags", "category", "difficulty", "owner", "governance", "requires", "suite"),
        *("start_time", "end_time"),
        *("workers", "cache", "verbose", "fail_on_error", "failOnError", "stream_log", "log_dir"),
        *("log_directory", "log_format", "log_output_format", "keep_temp_files"),
        *("subagent_mode_allowed", "retry_initial_delay_ms", "retry_max_delay_ms"),
        *("retry_backoff_factor", "retry_status_codes"),
    )
)
#: Fields for data of the user's own, wherever they are; so is every field that begins with `x-`.
_DATA = ("metadata", "config")
EXEMPT = (*sorted(HARMLESS), *_DATA)

#: Where the documentation lists what is not supported.
DOCUMENTATION = "https://github.com/org/agentevals-action#suites"
#: Fields of the root of a suite that only the format of AgentV 5 has.
AGENTV_5 = (
    *("providers", "prompts", "scenarios", "evaluate_options", "extensions", "derived_metrics"),
    *("provider_prompt_map", "providerPromptMap", "nunjucks_filters", "graders", "experiment"),
)
#: Features of AgentV that could change a verdict and are not supported, by the object that has
#: them; `test` are those of a suite, a test and its `execution`.
UNSUPPORTED: Mapping[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "test": "threshold repeat trials turns mode aggregation on_turn_failure window_size "
        "imports include depends_on on_dependency_failure default_test preprocessors environment "
        "provider providers prompts options assert_scoring_function run model runs early_exit "
        "output_path env on_run_complete policy defaults targets budget_usd budgetUsd "
        "total_budget_usd",
        "evaluator": "include preprocessors transform threshold model temperature max_steps",
        "workspace": "path pool static static_path docker env setup_script teardown_script",
        "repository": "source type checkout clone resolver ancestor sparse",
        "target": "fallback_targets response workspace_template temperature max_output_tokens "
        "thinking_budget model_reasoning_effort max_budget_usd max_turns bypass_permissions "
        "variant subprovider tools thinking system_prompt fixtures execution_traces eval_path",
    }.items()
}
#: What to write for the features that people miss most.
_ADVICE = {
    "threshold": "mark evaluators as `required`, or use the input `min-pass-rate`",
    "repeat": "run every test several times with the input `samples`",
    "trials": "run every test several times with the input `samples`",
    "turns": "write the conversation as messages of `input`",
    "targets": "name one `target`; run the suite again with the input `target` for another",
}
#: Where fields belong that are often written in another object.
_PLACES = {
    **dict.fromkeys(("target", "timeout_seconds", "skip_defaults"), "under `execution`"),
    **dict.fromkeys(
        ("required", "min_score", "weight", "negate"), "at the evaluators that it concerns"
    ),
    **dict.fromkeys(("before_all", "before_each", "after_each", "after_all"), "under `hooks`"),
    "reset": "under `hooks.after_each`",
    "expected_output": "at each test",
    "workspace": "at the root of the suite or of a test",
}
#: Similarity from which on an unknown field is taken for a misspelled one.
MISSPELLED = 0.75

_NOTHING: Mapping[str, Any] = MappingProxyType({})
#: Features of AgentV that a code judge does not get as a part of its `config`.
_NEVER_PASSED = (*EVALUATOR_LISTS, "include", "preprocessors", "transform")


@dataclass(frozen=True)
class Shape:
    """The fields of one type of object: canonical names with their other spellings.

    Fields in `unsupported` and `misplaced` are errors, `elsewhere` ones are read by the caller,
    `inside` has the shapes of fields that contain objects."""

    what: str
    fields: Mapping[str, tuple[str, ...]]
    unsupported: Collection[str] = ()
    misplaced: Collection[str] = ()
    elsewhere: tuple[str, ...] = ()
    inside: Mapping[str, "Shape"] = field(default_factory=dict)

    @cached_property
    def canonical(self) -> Mapping[str, str]:
        """Canonical name by every spelling."""
        return {
            spelling: name for name, others in self.fields.items() for spelling in (name, *others)
        }


def model_shape(
    what: str,
    model: type[BaseModel],
    spellings: Mapping[str, tuple[str, ...]] = _NOTHING,
    **others: Any,
) -> Shape:
    """The shape of the objects of a model; `others` are fields of the shape."""
    spellings = spellings or getattr(model, "spellings", {})
    fields = {name: tuple(spellings.get(name, ())) for name in fields_of(model)}
    return Shape(what, fields, **others)


SUITE_EXECUTION, TEST_EXECUTION = (
    model_shape(
        "`execution`",
        model,
        unsupported=UNSUPPORTED["test"],
        misplaced=_PLACES,
        elsewhere=EVALUATOR_LISTS,
    )
    for model in (schema_models.SuiteExecution, schema_models.TestExecution)
)
BLOCK = model_shape("block", messages.Block, spellings={"value": ("text",)})
TOOL_CALL = model_shape(
    "tool call",
    messages.ToolCall,
    inside={"function": model_shape("`function`", messages.ToolFunction)},
)
MESSAGE = model_shape(
    "message", messages.Message, inside={"content": BLOCK, "tool_calls": TOOL_CALL}
)
_COMMAND = {"command": ("script",)}
HOOK = model_shape("hook", workspace_models.Hook, _COMMAND, misplaced=("reset",))
RESETTING_HOOK = model_shape("hook", workspace_models.ResettingHook, _COMMAND)
HOOKS = model_shape(
    "`hooks`",
    workspace_models.Hooks,
    inside={
        **dict.fromkeys(("before_all", "after_all"), HOOK),
        **dict.fromkeys(("before_each", "after_each"), RESETTING_HOOK),
    },
)
REPO = model_shape(
    "repository",
    workspace_models.Repository,
    {"commit": ("base_commit",)},
    unsupported=UNSUPPORTED["repository"],
)
WORKSPACE = model_shape(
    "workspace",
    workspace_models.Workspace,
    unsupported=UNSUPPORTED["workspace"],
    misplaced=_PLACES,
    inside={"hooks": HOOKS, "repos": REPO},
)
SUITE = model_shape(
    "suite",
    schema_models.Suite,
    {"input": ("input_messages",), "tests": ("evalcases", "eval_cases")},
    unsupported=UNSUPPORTED["test"],
    misplaced=_PLACES,
    elsewhere=EVALUATOR_LISTS,
    inside={"execution": SUITE_EXECUTION, "input": MESSAGE, "workspace": WORKSPACE},
)
TEST = model_shape(
    "test",
    schema_models.Test,
    {
        "criteria": ("expected_outcome",),
        "input": ("input_messages",),
        "expected_output": ("expected_messages",),
    },
    unsupported=UNSUPPORTED["test"],
    misplaced=_PLACES,
    elsewhere=EVALUATOR_LISTS,
    inside={
        "execution": TEST_EXECUTION,
        "input": MESSAGE,
        "expected_output": MESSAGE,
        "workspace": WORKSPACE,
    },
)


def is_like_suite(data: Map) -> bool:
    """Whether a file is meant as a suite: it has tests, something like them, or evaluators."""
    spellings = ("tests", *SUITE.fields["tests"])
    return any(key in EVALUATOR_LISTS or nearest(key, spellings, 0.75) for key in data)


def is_like_test(data: Map) -> bool:
    """Whether an object is meant as a test: it has a question, or what scores its answer."""
    own = ("input", "criteria", "expected_output", "rubrics")
    return any(key in EVALUATOR_LISTS or TEST.canonical.get(key) in own for key in data)


def tests_key(data: Map) -> str | None:
    """The key of a suite's tests as its author spelled it."""
    return next((key for key in data if SUITE.canonical.get(key) == "tests"), None)


class PlainCriteria(Map):
    """The rubric that the plain strings of a list of evaluators stand for."""

    __slots__ = ()


def type_key(name: str) -> str:
    """A type's name for look-up: `-` and `_` are equal."""
    return name.replace("-", "_")


@cache
def evaluator_shape(options: type[EvaluatorOptions]) -> Shape:
    """The shape of one type of evaluator: its own fields and the common ones."""
    has_children = bool(options.children_field)
    common = fields_of(schema_models.Evaluator).keys() - {"target"}
    own = {**dict.fromkeys(common, ()), **model_shape("", options).fields}
    own.pop(options.children_field, None)
    if options.asks_judge:
        own["target"] = ()
    return Shape(
        "evaluator",
        own,
        UNSUPPORTED["evaluator"],
        elsewhere=EVALUATOR_LISTS if has_children else (),
    )


def fold(data: Map, shape: Shape, findings: Findings) -> Map:
    """An object, and those inside it, by canonical names.

    Errors are: a field that is unsupported, misplaced, or resembles a known one, because it was
    meant to have an effect; two spellings of one field with different values. Any other unknown
    field is a warning."""
    folded = Map(data.source, data.start)
    for key, value in data.items():
        name = shape.canonical.get(key)
        if name is None:
            if key not in shape.elsewhere:
                _report_unknown(data, key, shape, findings)
            continue
        if key != name and key in EARLIER:
            problem = f"`{key}` is the earlier spelling of `{name}`"
            findings.warn_once(data.key_location(key), problem, f"write `{name}`")
        if name not in folded:
            inner = shape.inside.get(name)
            folded.adopt(data, key, name, _fold_inside(value, inner, findings) if inner else None)
        elif _long_form(name, data[folded.spelling(name)]) != _long_form(name, value):
            problem = f"`{folded.spelling(name)}` and `{key}` are the same field and differ"
            findings.error(data.key_location(key), problem, "keep one of them")
    return folded


def _fold_inside(value: Any, shape: Shape, findings: Findings) -> Any:
    if isinstance(value, Map):
        is_data = shape is BLOCK or (shape is MESSAGE and value.get("role") not in ROLES)
        return value if is_data else fold(value, shape, findings)
    if not isinstance(value, Items):
        return value
    return value.mapped(
        lambda item, _: fold(item, shape, findings) if isinstance(item, Map) else item
    )


def _report_unknown(data: Map, key: str, shape: Shape, findings: Findings) -> None:
    location = data.key_location(key)
    if key in shape.unsupported:
        findings.error(location, f"`{key}` of AgentV is not supported", _advice(key, shape))
        return
    if key in shape.misplaced:
        findings.error(location, f"`{key}` is misplaced", f"write it {_PLACES[key]}")
        return
    if is_exempt(key):
        return
    problem = f"the field `{key}` of this {shape.what} is unknown".replace("this `", "`")
    known = (*shape.canonical, *shape.elsewhere, *shape.unsupported, *shape.misplaced)
    # `timeout` for `timeout_seconds`
    candidates = (*shape.fields, *shape.misplaced)
    longer = (name for name in candidates if name.startswith(f"{key}_"))
    if meant := nearest(key, known, MISSPELLED) or next(longer, None):
        findings.error(location, problem, f"did you mean `{meant}`?")
    elif key in known_elsewhere(shape.what):
        findings.error(location, problem, "remove it, or write it where it belongs")
    else:
        # Data of another program: its name resembles nothing that could have an effect.
        advice = "remove it, or write it in `metadata`, or with `x-` in front of its name"
        findings.warn_once(location, f"{problem} and has no effect", advice)


def _advice(key: str, shape: Shape) -> str:
    """What to write for an unsupported feature."""
    if shape.what == "evaluator" and key == "threshold":
        return "write `required: 0.7` for a gate at 0.7"
    if shape.unsupported is UNSUPPORTED["test"] and key in _ADVICE:
        return _ADVICE[key]
    return f"see {DOCUMENTATION}"


@cache
def known_elsewhere(what: str) -> frozenset[str]:
    """The fields of objects that are like this one: of other types of evaluators and targets, and
    of the suite or its tests."""
    shapes = {
        "evaluator": [evaluator_shape(options) for options in EVALUATORS.values()],
        "target": [model_shape("target", options) for options in PROVIDERS.values()],
    }.get(what, [])
    if what in (SUITE.what, TEST.what, SUITE_EXECUTION.what):
        shapes = [SUITE, TEST, SUITE_EXECUTION, TEST_EXECUTION]
    return frozenset(name for shape in shapes for name in (*shape.canonical, *shape.elsewhere))


def passed_fields(data: Map, shape: Shape) -> Mapping[str, Any]:
    """The fields of a code judge that are passed on as part of `config`, as AgentV does. One that
    resembles a known field is none of them: `requird` would silently remove a gate."""
    known = (*shape.canonical, *shape.elsewhere)
    return {
        key: value
        for key, value in data.items()
        if key not in known
        and key not in _NEVER_PASSED
        and not is_exempt(key)
        and nearest(key, known, MISSPELLED) is None
    }


def is_exempt(key: str) -> bool:
    """Whether a field that nothing reads may stand anywhere."""
    return key in EXEMPT or key.startswith("x-")


def refuse_other_format(data: Map, findings: Findings) -> bool:
    """Reports a suite in the format of AgentV 5, as one error; whether it is one."""
    found = [key for key in data if key in AGENTV_5]
    if found:
        names = one_of(found).replace(" or ", " and ")
        problem = f"this suite is in the format of AgentV 5, which is not supported: it has {names}"
        advice = f"write the format of AgentV 4; see {DOCUMENTATION}"
        findings.error(data.key_location(found[0]), problem, advice)
    return bool(found)


def _long_form(name: str, value: Any) -> Any:
    """The long form of content, so that two spellings can be compared."""
    if name not in ("input", "expected_output") or isinstance(value, list):
        return value
    if isinstance(value, Mapping) and "role" in value:
        return [value]
    content = value if isinstance(value, str) else [{"type": "json", "value": value}]
    return [{"role": "user" if name == "input" else "assistant", "content": content}]


def declared_evaluators(data: Map, findings: Findings) -> tuple[tuple[Any, Location], ...]:
    """The evaluators of a suite or a test as written, with their locations, in file order."""
    found: list[tuple[Any, Location]] = []
    for key, value in data.items():
        if key in EVALUATOR_LISTS:
            found += listed_evaluators(data, (key,), findings)
        elif key == "execution" and isinstance(value, Map):
            if "evaluators" in value:
                problem = "`evaluators` under `execution` is the earlier spelling of `assert`"
                findings.warn_once(value.key_location("evaluators"), problem, "write `assert`")
            found += listed_evaluators(
                value, [name for name in value if name in EVALUATOR_LISTS], findings
            )
    return tuple(found)


def listed_evaluators(
    data: Map, keys: Iterable[str], findings: Findings
) -> Iterator[tuple[Any, Location]]:
    """The evaluators of the lists under these keys, with their locations. The plain strings of a
    list are one rubric, at the location of the first."""
    for key in keys:
        values = data[key]
        if not isinstance(values, Items):
            problem = f"`{key}` is {describe_value(values)}"
            findings.error(data.value_location(key), problem, "write a list of evaluators")
            continue
        criteria: Items | None = None
        for value, location in values.located():
            if not isinstance(value, str):
                yield value, location
            elif criteria is None:
                criteria = _criteria(values)
                rubric = PlainCriteria(values.source, criteria.start)
                rubric.update(type="rubric", rubrics=criteria)
                yield rubric, location


def _criteria(values: Items) -> Items:
    texts = [(value, where) for value, where in values.located() if isinstance(value, str)]
    criteria = Items(values.source, (texts[0][1].line, texts[0][1].column))
    for text, location in texts:
        criteria.put(text, (location.line, location.column))
    return criteria
