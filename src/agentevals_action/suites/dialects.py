"""Converts the three dialects of suites to canonical names; no other module knows a second spelling
of anything."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from agentevals_action.evaluators.base import EvaluatorOptions
from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.file_model import fields_of
from agentevals_action.model.messages import ROLES
from agentevals_action.suites import messages, schema_models, workspace_models
from agentevals_action.suites.files.diagnostics import Findings, did_you_mean
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.validation_errors import describe_value

#: Fields that contain evaluators, in every dialect: of the suite, of tests, and of `execution`.
EVALUATOR_LISTS = ("assert", "assertions", "evaluators")

#: Spellings of the earlier format: accepted, with one warning for each in a file.
EARLIER = frozenset(
    ("evalcases", "eval_cases", "expected_outcome", "input_messages", "expected_messages")
)

#: Fields for readers of the file, which have no effect.
REMARKS = ("name", "description", "note", "comment")

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_UNSUPPORTED = "of AgentV is not supported"
_OTHER_TYPE = "is not known to this type of evaluator"
_IN_EXECUTION = ("is misplaced", "write it under `execution`")
_NOT_PASSED_ON = (
    "is not passed on to the evaluators inside",
    "write it at each evaluator that asks this judge",
)
_JUDGE = (f"{_UNSUPPORTED} here", "describe the model as a target and name it with `target`")
_SAMPLES = "run every test several times with the input `samples`"
_OUTPUT = "let the agent return the text that is scored"

#: Features of AgentV that could change a verdict and are not supported: problem and advice.
_REFUSED: Mapping[str, tuple[str, str]] = {
    name: (_UNSUPPORTED, advice)
    for name, advice in {
        "threshold": "mark evaluators as `required`, or use the input `min-pass-rate`",
        "repeat": _SAMPLES,
        "trials": _SAMPLES,
        "turns": "write the conversation as messages of `input`",
        "imports": "name the files in `tests`",
        "include": "name a file of tests in `tests`, and write evaluators out",
        "input_files": "write blocks of `type: file` in `input`",
        "depends_on": "write tests that stand on their own",
        "default_test": "write evaluators and `execution` at the root of the suite",
        "preprocessors": _OUTPUT,
        "environment": "run the agent through a target of provider `cli`",
    }.items()
}
_REFUSED_IN_EXECUTION: Mapping[str, tuple[str, str]] = {
    **_REFUSED,
    "workspace": ("is misplaced", "write it next to `execution`"),
    "targets": (
        _UNSUPPORTED,
        "name one `target`; run the suite again with the input `target` for another",
    ),
    **dict.fromkeys(("budget_usd", "total_budget_usd"), (_UNSUPPORTED, "remove it")),
}
_REFUSED_IN_EVALUATORS: Mapping[str, tuple[str, str]] = {
    "include": (_UNSUPPORTED, "write the evaluators out"),
    "preprocessors": (_UNSUPPORTED, _OUTPUT),
    "transform": ("is not supported", _OUTPUT),
    "threshold": (_OTHER_TYPE, "write `required: 0.7` for a gate at 0.7"),
    "rubrics": (_OTHER_TYPE, "write an evaluator of `type: rubric`"),
    **dict.fromkeys(EVALUATOR_LISTS, (_OTHER_TYPE, "write an evaluator of `type: composite`")),
    **dict.fromkeys(("model", "temperature", "max_steps"), _JUDGE),
}


@dataclass(frozen=True)
class Shape:
    """The fields of one type of object: canonical names with their other spellings.

    Fields in `refused` are errors with this problem and advice, `silent` ones are ignored,
    `elsewhere` ones are read by the caller, `inside` has the shapes of fields that contain objects.
    In a `closed` shape an unknown field is an error, not a warning, unless it is a remark."""

    what: str
    fields: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    elsewhere: tuple[str, ...] = ()
    inside: Mapping[str, "Shape"] = field(default_factory=dict)
    closed: bool = False

    @cached_property
    def canonical(self) -> Mapping[str, str]:
        """Canonical name by every spelling."""
        return {
            spelling: name for name, others in self.fields.items() for spelling in (name, *others)
        }


def model_shape(
    what: str,
    model: type[BaseModel],
    refused: Mapping[str, tuple[str, str]] = _NOTHING,
    spellings: Mapping[str, tuple[str, ...]] = _NOTHING,
    **others: Any,
) -> Shape:
    """The shape of the objects of a model; `others` are fields of the shape."""
    spellings = spellings or getattr(model, "spellings", {})
    fields = {name: tuple(spellings.get(name, ())) for name in fields_of(model)}
    return Shape(what, fields, refused, **others)


SUITE_EXECUTION, TEST_EXECUTION = (
    model_shape("`execution`", model, _REFUSED_IN_EXECUTION, elsewhere=EVALUATOR_LISTS)
    for model in (schema_models.SuiteExecution, schema_models.TestExecution)
)
BLOCK = model_shape("block", messages.Block, spellings={"value": ("text",)})
MESSAGE = model_shape("message", messages.Message, inside={"content": BLOCK})
_COMMAND = {"command": ("script",)}
HOOK = model_shape(
    "hook",
    workspace_models.Hook,
    {"reset": ("is known to `before_each` and `after_each` alone", "write it there")},
    _COMMAND,
    closed=True,
)
RESETTING_HOOK = model_shape(
    "hook", workspace_models.ResettingHook, spellings=_COMMAND, closed=True
)
HOOKS = model_shape(
    "`hooks`",
    workspace_models.Hooks,
    closed=True,
    inside={
        **dict.fromkeys(("before_all", "after_all"), HOOK),
        **dict.fromkeys(("before_each", "after_each"), RESETTING_HOOK),
    },
)
REPO = model_shape(
    "repository",
    workspace_models.Repository,
    dict.fromkeys(
        ("source", "type", "checkout", "clone", "resolver"),
        (_UNSUPPORTED, "name the repository by `repo`, and its commit by `commit`"),
    ),
    {"commit": ("base_commit",)},
)
WORKSPACE = model_shape(
    "workspace",
    workspace_models.Workspace,
    {
        **dict.fromkeys(
            ("mode", "path", "pool", "static", "static_path"),
            (_UNSUPPORTED, "let `template`, `repos` and `hooks` make the folder"),
        ),
        "docker": (
            _UNSUPPORTED,
            "run the agent in the container through a target of provider `cli`",
        ),
        "env": (_UNSUPPORTED, "check for programs in a hook `before_all`"),
        "workspace": (
            "is misplaced in a file of its own",
            "write its fields at the root of the file",
        ),
        "setup_script": (
            "is the earlier form of AgentV's `hooks.before_all`",
            "write `hooks: {before_all: {command: …}}`",
        ),
        "teardown_script": (
            "is the earlier form of AgentV's `hooks.after_all`",
            "write `hooks: {after_all: {command: …}}`",
        ),
        "reset": ("is misplaced", "write it under `hooks.after_each`"),
        **dict.fromkeys(
            ("before_all", "before_each", "after_each", "after_all"),
            ("is misplaced", "write it under `hooks`"),
        ),
    },
    inside={"hooks": HOOKS, "repos": REPO},
)
SUITE = model_shape(
    "suite",
    schema_models.Suite,
    {**_REFUSED, **dict.fromkeys(("target", "timeout_seconds"), _IN_EXECUTION)},
    {"input": ("input_messages",), "tests": ("evalcases", "eval_cases")},
    silent=frozenset(("$schema", "author", "license", "tags", "requires")),
    elsewhere=EVALUATOR_LISTS,
    inside={"execution": SUITE_EXECUTION, "input": MESSAGE, "workspace": WORKSPACE},
)
TEST = model_shape(
    "test",
    schema_models.Test,
    {**_REFUSED, **dict.fromkeys(("target", "timeout_seconds", "skip_defaults"), _IN_EXECUTION)},
    {
        "criteria": ("expected_outcome",),
        "input": ("input_messages",),
        "expected_output": ("expected_messages",),
    },
    elsewhere=EVALUATOR_LISTS,
    inside={
        "execution": TEST_EXECUTION,
        "input": MESSAGE,
        "expected_output": MESSAGE,
        "workspace": WORKSPACE,
    },
)


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
    refused = {**_REFUSED_IN_EVALUATORS, **({"target": _NOT_PASSED_ON} if has_children else {})}
    return Shape(
        "evaluator",
        own,
        {name: reason for name, reason in refused.items() if name not in own},
        elsewhere=EVALUATOR_LISTS if has_children else (),
    )


def fold(data: Map, shape: Shape, findings: Findings) -> Map:
    """An object, and those inside it, by canonical names.

    An unknown field is a warning, or an error where the shape is closed. Refused fields are errors,
    and so are two spellings of one field with different values."""
    folded = Map(data.source, data.start)
    for key, value in data.items():
        name = shape.canonical.get(key)
        if name is None:
            if key not in shape.elsewhere and key not in shape.silent:
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
    folded = Items(value.source, value.start)
    for item, location in value.located():
        made = fold(item, shape, findings) if isinstance(item, Map) else item
        folded.put(made, (location.line, location.column))
    return folded


def _report_unknown(data: Map, key: str, shape: Shape, findings: Findings) -> None:
    location = data.key_location(key)
    if key in shape.refused:
        problem, advice = shape.refused[key]
        findings.error(location, f"`{key}` {problem}", advice)
        return
    known = (*shape.canonical, *shape.elsewhere)
    problem = f"the field `{key}` of this {shape.what} is unknown".replace("this `", "`")
    if shape.closed and key not in REMARKS:
        advice = did_you_mean(key, known, f"write {one_of(shape.fields)}")
        findings.error(location, problem, advice)
        return
    spare = next((name for name in ("metadata", "config") if name in shape.fields), None)
    remove = f"remove it, or put it in `{spare}`" if spare else "remove it"
    if findings.has_enough_warnings:
        known = ()
    findings.warn(location, problem, did_you_mean(key, known, remove))


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
