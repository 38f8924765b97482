"""The three dialects of suites into one: the only place that knows a second spelling of
anything."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agentevals_action.model.diagnostic import Location
from agentevals_action.suites.files.diagnostics import Findings, kind, nearest, one_of
from agentevals_action.suites.files.positions import Items, Map

#: Fields that hold evaluators, in every dialect, at the root, on tests, and under `execution` of
#: both.
EVALUATOR_LISTS = ("assert", "assertions", "evaluators")

#: Spellings of the format's earlier form that its present one has replaced: read as ever, and told
#: of once a file.
EARLIER = frozenset(
    ("evalcases", "eval_cases", "expected_outcome", "input_messages", "expected_messages")
)

#: Fields that nothing is meant to be done by, wherever they stand.
REMARKS = ("name", "description", "note", "comment")

_IN_EXECUTION = ("stands in the wrong place", "write it under `execution`")
_SAMPLES = ("of AgentV is not supported", "run every test several times with the input `samples`")
_GATES = (
    "of AgentV is not supported",
    "mark evaluators as `required`, or use the input `min-pass-rate`",
)
_BUDGET = ("of AgentV is not supported", "remove it")

#: Known features that could change a verdict and are not there: what is said about each.
_REFUSED: Mapping[str, tuple[str, str]] = {
    "threshold": _GATES,
    "repeat": _SAMPLES,
    "trials": _SAMPLES,
    "turns": ("of AgentV is not supported", "write the conversation as messages of `input`"),
    "imports": ("of AgentV is not supported", "name the files in `tests`"),
    "include": (
        "of AgentV is not supported",
        "name a file of tests in `tests`, and write evaluators out",
    ),
    "input_files": ("of AgentV is not supported", "write blocks of `type: file` in `input`"),
    "depends_on": ("of AgentV is not supported", "write tests that stand on their own"),
    "default_test": (
        "of AgentV is not supported",
        "write evaluators and `execution` at the root of the suite",
    ),
    "preprocessors": (
        "of AgentV is not supported",
        "let the agent give the text that is to be graded",
    ),
    "environment": (
        "of AgentV is not supported",
        "run the agent through a target of provider `cli`",
    ),
}
_REFUSED_IN_EXECUTION: Mapping[str, tuple[str, str]] = {
    **_REFUSED,
    "workspace": ("stands in the wrong place", "write it beside `execution`"),
    "targets": (
        "of AgentV is not supported",
        "name one `target`; run the suite again with the input `target` for another",
    ),
    "budget_usd": _BUDGET,
    "total_budget_usd": _BUDGET,
}
_NOT_PASSED_ON = (
    "is not passed on to the evaluators inside",
    "write it at each of them that is to be judged by it",
)
_JUDGE = (
    "of AgentV is not supported here",
    "describe the model as a target and name it with `target`",
)
_REFUSED_IN_EVALUATORS: Mapping[str, tuple[str, str]] = {
    "include": ("of AgentV is not supported", "write the evaluators out"),
    "preprocessors": (
        "of AgentV is not supported",
        "let the agent give the text that is to be graded",
    ),
    "transform": ("is not supported", "let the agent give the text that is to be graded"),
    "threshold": (
        "is not known to this type of evaluator",
        "write `required: 0.7` for a gate at 0.7",
    ),
    "rubrics": ("is not known to this type of evaluator", "write an evaluator of `type: rubric`"),
    **dict.fromkeys(
        EVALUATOR_LISTS,
        ("is not known to this type of evaluator", "write an evaluator of `type: composite`"),
    ),
    "model": _JUDGE,
    "temperature": _JUDGE,
    "max_steps": _JUDGE,
}


@dataclass(frozen=True)
class Shape:
    """The fields of one kind of object: canonical names with their other spellings, what is refused
    by name, what is passed over.

    Of a `closed` one an unknown field is a fault, unless it is a remark: what it was meant to do
    would be left out."""

    what: str
    fields: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    closed: bool = False

    @cached_property
    def canonical(self) -> Mapping[str, str]:
        """Canonical name by every spelling."""
        return {
            spelling: name for name, others in self.fields.items() for spelling in (name, *others)
        }


_EXECUTION: Mapping[str, tuple[str, ...]] = {"target": (), "timeout_seconds": ()}
SUITE = Shape(
    "suite",
    {
        "name": (),
        "version": (),
        "description": (),
        "metadata": (),
        "execution": (),
        "input": ("input_messages",),
        "workspace": (),
        "tests": ("evalcases", "eval_cases"),
    },
    {**_REFUSED, "target": _IN_EXECUTION, "timeout_seconds": _IN_EXECUTION},
    frozenset(("$schema", "author", "license", "tags", "requires")),
)
SUITE_EXECUTION = Shape("`execution`", _EXECUTION, _REFUSED_IN_EXECUTION)
TEST = Shape(
    "test",
    {
        "id": (),
        "criteria": ("expected_outcome",),
        "input": ("input_messages",),
        "expected_output": ("expected_messages",),
        "rubrics": (),
        "execution": (),
        "workspace": (),
        "description": (),
        "conversation_id": (),
        "note": (),
        "metadata": (),
    },
    {**_REFUSED, **dict.fromkeys(("target", "timeout_seconds", "skip_defaults"), _IN_EXECUTION)},
)
TEST_EXECUTION = Shape("`execution`", {**_EXECUTION, "skip_defaults": ()}, _REFUSED_IN_EXECUTION)
MESSAGE = Shape(
    "message", {"role": (), "content": (), "name": (), "tool_call_id": (), "tool_calls": ()}
)
BLOCK = Shape("block", {"type": (), "value": ("text",)})
_MACHINE = ("of AgentV is not supported", "let `template`, `repos` and `hooks` make the folder")
WORKSPACE = Shape(
    "workspace",
    {"template": (), "isolation": (), "scope": (), "repos": (), "hooks": ()},
    {
        **dict.fromkeys(("mode", "path", "pool", "static", "static_path"), _MACHINE),
        "docker": (
            "of AgentV is not supported",
            "run the agent in the container through a target of provider `cli`",
        ),
        "env": ("of AgentV is not supported", "check for programs in a hook `before_all`"),
        "workspace": (
            "stands in a file of its own already",
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
        "reset": ("stands in the wrong place", "write it under `hooks.after_each`"),
        **dict.fromkeys(
            ("before_all", "before_each", "after_each", "after_all"),
            ("stands in the wrong place", "write it under `hooks`"),
        ),
    },
)
HOOKS = Shape(
    "`hooks`",
    dict.fromkeys(("enabled", "before_all", "before_each", "after_each", "after_all"), ()),
    closed=True,
)
_HOOK: Mapping[str, tuple[str, ...]] = {"command": ("script",), "cwd": (), "timeout_ms": ()}
HOOK = Shape(
    "hook",
    _HOOK,
    {"reset": ("is known to `before_each` and `after_each` alone", "write it there")},
    closed=True,
)
RESETTING_HOOK = Shape("hook", {**_HOOK, "reset": ()}, closed=True)
_ACQUISITION = (
    "of AgentV is not supported",
    "name the repository by `repo`, and its commit by `commit`",
)
REPO = Shape(
    "repository",
    {"path": (), "repo": (), "commit": ("base_commit",), "ancestor": (), "sparse": ()},
    dict.fromkeys(("source", "type", "checkout", "clone", "resolver"), _ACQUISITION),
)
_EVALUATOR_FIELDS: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("name", "type", "weight", "required", "min_score", "negate", "config"), ()
)


@dataclass(frozen=True)
class Folded:
    """An object by canonical names, and the evaluators that it declares anywhere, in file order,
    each with its place."""

    data: Map
    evaluators: tuple[tuple[Any, Location], ...] = ()


@dataclass(frozen=True)
class Texts:
    """The plain strings of one list of evaluators, each with its place: at least one."""

    found: tuple[tuple[str, Location], ...]

    def rubric(self) -> Map:
        """The evaluator that they stand for, where the first of them stands."""
        first = self.found[0][1]
        at = (first.line, first.column)
        rubric, criteria = Map(first.path, at), Items(first.path, at)
        for text, place in self.found:
            criteria.put(text, (place.line, place.column))
        rubric.put("type", "rubric", (at, at))
        rubric.put("rubrics", criteria, (at, at))
        return rubric


def type_key(name: str) -> str:
    """A type's name as it is looked up: `-` and `_` are equal."""
    return name.replace("-", "_")


def evaluator_shape(
    fields: Mapping[str, tuple[str, ...]], takes_target: bool, holds_others: bool = False
) -> Shape:
    """The shape of one type of evaluator: its own fields beside the common ones."""
    own = {**_EVALUATOR_FIELDS, **fields, **({"target": ()} if takes_target else {})}
    refused = {**_REFUSED_IN_EVALUATORS, **({"target": _NOT_PASSED_ON} if holds_others else {})}
    return Shape(
        "evaluator", own, {name: said for name, said in refused.items() if name not in own}
    )


def fold_suite(data: Map, findings: Findings) -> Folded:
    """The root of a suite by canonical names."""
    return _fold_declaring(data, SUITE, SUITE_EXECUTION, findings)


def fold_test(data: Map, findings: Findings) -> Folded:
    """One test by canonical names."""
    return _fold_declaring(data, TEST, TEST_EXECUTION, findings)


def _fold_declaring(data: Map, shape: Shape, execution: Shape, findings: Findings) -> Folded:
    folded = fold(data, shape, findings, EVALUATOR_LISTS)
    evaluators: list[tuple[Any, Location]] = []
    for key, value in data.items():
        if key in EVALUATOR_LISTS:
            evaluators.extend(listed_in(data, (key,), findings))
        elif key == "execution" and isinstance(value, Map):
            folded.replace(key, fold(value, execution, findings, EVALUATOR_LISTS))
            if "evaluators" in value:
                problem = "`evaluators` under `execution` is the earlier spelling of `assert`"
                findings.warn_once(value.key_location("evaluators"), problem, "write `assert`")
            evaluators.extend(
                listed_in(value, [name for name in value if name in EVALUATOR_LISTS], findings)
            )
    return Folded(folded, tuple(evaluators))


def listed_in(data: Map, keys: Iterable[str], findings: Findings) -> Iterator[tuple[Any, Location]]:
    """The evaluators of the lists under these keys, each with its place; the plain strings of a
    list stand where the first of them does."""
    for key in keys:
        yield from _listed(data, key, findings)


def _listed(data: Map, key: str, findings: Findings) -> Iterator[tuple[Any, Location]]:
    values = data[key]
    if not isinstance(values, list):
        findings.error(
            data.value_location(key), f"`{key}` is {kind(values)}", "write a list of evaluators"
        )
        return
    places = [
        values.item_location(index) if isinstance(values, Items) else data.value_location(key)
        for index in range(len(values))
    ]
    texts = [
        (value, place)
        for value, place in zip(values, places, strict=True)
        if isinstance(value, str)
    ]
    for value, place in zip(values, places, strict=True):
        if not isinstance(value, str):
            yield value, place
        elif texts:
            yield Texts(tuple(texts)), place
            texts = []


def fold(data: Map, shape: Shape, findings: Findings, elsewhere: tuple[str, ...] = ()) -> Map:
    """An object by canonical names; `elsewhere` are fields that the caller reads itself.

    An unknown field is a warning, or a fault where the shape is closed; one that is refused by name
    is a fault, and so are two spellings that say different things."""
    folded = Map(data.source, data.place)
    for key, value in data.items():
        name = shape.canonical.get(key)
        if name is None:
            if key not in elsewhere and key not in shape.silent:
                _unknown(data, key, shape, findings, elsewhere)
            continue
        if key != name and key in EARLIER:
            findings.warn_once(
                data.key_location(key),
                f"`{key}` is the earlier spelling of `{name}`",
                f"write `{name}`",
            )
        if name not in folded:
            folded.adopt(data, key, name)
        elif _expanded(name, folded[name]) != _expanded(name, value):
            findings.error(
                data.key_location(key),
                f"`{folded.written(name)}` and `{key}` are the same field and differ",
                "keep one of them",
            )
    return folded


def _unknown(
    data: Map, key: str, shape: Shape, findings: Findings, elsewhere: tuple[str, ...]
) -> None:
    if key in shape.refused:
        problem, advice = shape.refused[key]
        findings.error(data.key_location(key), f"`{key}` {problem}", advice)
        return
    meant = (
        None
        if findings.has_enough_warnings and not shape.closed
        else nearest(key, (*shape.canonical, *elsewhere))
    )
    problem = f"the field `{key}` of this {shape.what} is unknown".replace("this `", "`")
    if shape.closed and key not in REMARKS:
        findings.error(
            data.key_location(key),
            problem,
            f"did you mean `{meant}`?" if meant else f"write {one_of(shape.fields)}",
        )
        return
    spare = next((name for name in ("metadata", "config") if name in shape.fields), None)
    remove = f"remove it, or put it in `{spare}`" if spare else "remove it"
    advice = f"did you mean `{meant}`?" if meant else remove
    findings.warn(data.key_location(key), problem, advice)


def _expanded(name: str, value: Any) -> Any:
    # The long form of what may be written short, so that two spellings can be compared.
    if name not in ("input", "expected_output") or isinstance(value, list):
        return value
    if isinstance(value, Mapping) and "role" in value:
        return [value]
    content = value if isinstance(value, str) else [{"type": "json", "value": value}]
    return [{"role": "user" if name == "input" else "assistant", "content": content}]
