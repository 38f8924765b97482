"""What grades a test: declared evaluators checked against their types, named, gated, and put in
order (specification, section 2)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from typing import Any, get_args

from pydantic import BaseModel

from agentevals_action.entries.entry import Entry
from agentevals_action.entries.reading import fields_of, read_entry, types_of
from agentevals_action.evaluators import base
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import PASS_SCORE
from agentevals_action.model.suite import Evaluator, Gate, NamedFile, Origin
from agentevals_action.suites import dialects
from agentevals_action.suites.files.diagnostics import Findings, kind, nearest, one_of
from agentevals_action.suites.files.positions import Items, Map, plain
from agentevals_action.suites.schema_models import EvaluatorEntry
from agentevals_action.system.paths import Folder

#: Characters of a name that was made from type and value.
_GENERATED_NAME = 40

Types = Mapping[str, type[base.EvaluatorOptions]]


@dataclass(frozen=True)
class Declared:
    """A declared evaluator that is valid; `gates_inside` by their names below it, with their places
    where they are known."""

    name: str
    type: str
    options: base.EvaluatorOptions
    location: Location
    weight: float = 1.0
    threshold: float | None = None
    negate: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None
    target_location: Location | None = None
    gates_inside: tuple[tuple[str, Location | None], ...] = ()
    files: tuple[NamedFile, ...] = ()
    children: tuple["Declared", ...] = ()

    def every(self) -> Iterator["Declared"]:
        """This one and all inside it, at any depth, in file order."""
        yield self
        for child in self.children:
            yield from child.every()


def read_evaluators(
    entries: Iterable[tuple[Any, Location]],
    types: Types,
    folder: Folder,
    findings: Findings,
    origin: Origin,
) -> tuple[Declared, ...]:
    """The declared evaluators; one that is not valid is a fault, never left out in silence.
    `folder` is that of the declaring file."""
    wanted = takewhile(lambda entry: not findings.are_enough(entry[1]), entries)
    read = (
        _read_evaluator(entry, place, types, folder, findings, origin) for entry, place in wanted
    )
    return tuple(declared for declared in read if declared is not None)


def read_rubrics(data: Map, types: Types, folder: Folder, findings: Findings) -> Declared | None:
    """A test's `rubrics` as one evaluator of type `rubric`."""
    options = types["rubric"]
    entry = Map(data.source, data.place)
    entry.adopt(data, "rubrics", "rubrics")
    _warn_nested(options, entry, findings)
    valid = findings.read(options, entry, "test", folder)
    if valid is None:
        return None
    return _declared("rubrics", valid, data.value_location("rubrics"), folder, findings)


def default_judge(types: Types, folder: Folder, location: Location) -> Declared:
    """The judge that grades `criteria` where a suite declares nothing."""
    options = read_entry(types["llm_judge"], {}, folder)
    return Declared("criteria", options.type, options, location)


def _read_evaluator(
    entry: Any, place: Location, types: Types, folder: Folder, findings: Findings, origin: Origin
) -> Declared | None:
    if isinstance(entry, dialects.Texts):
        _refuse_types(entry, types, findings)
        entry = entry.rubric()
    if not isinstance(entry, Map):
        findings.error(place, f"an evaluator is {kind(entry)}", "write an object with a `type`")
        return None
    options = _options_of(entry, types, findings)
    if options is None:
        return None
    lists = (
        [key for key in entry if key in dialects.EVALUATOR_LISTS] if options.children_field else []
    )
    data = dialects.fold(entry, _shape(options), findings, tuple(lists))
    before = findings.error_count
    children = read_evaluators(
        dialects.listed_in(entry, lists, findings), types, folder, findings, origin
    )
    # Where one of them is faulty there is no more to say of the list, and names in the aggregator
    # cannot be looked up.
    told = options.children_field if findings.error_count > before else ""
    if lists and not told:
        data.adopt(entry, lists[0], options.children_field)
        data.replace(options.children_field, _named_inside(children, origin, data.location))
    _refuse_special(entry, findings)
    _warn_nested(options, data, findings)
    common = findings.read(EvaluatorEntry, _common(data, options), "evaluator")
    valid = findings.read(options, data, "evaluator", folder, told)
    if common is None or valid is None:
        return None
    for field_name, problem, advice in valid.warnings():
        findings.warn(
            data.value_location(field_name), f"`{data.written(field_name)}` {problem}", advice
        )
    threshold = _threshold(common, data, findings)
    name = common.name or _generated_name(valid)
    declared = _declared(name, valid, entry.location, folder, findings)
    if common.negate and declared.gates_inside:
        findings.error(
            data.key_location("negate"),
            "an evaluator with a gate inside cannot be negated",
            "remove `negate`, or the gate",
        )
    return replace(
        declared,
        weight=common.weight,
        threshold=threshold,
        negate=common.negate,
        config=plain(common.config or {}),
        target=common.target if options.asks_judge else None,
        target_location=data.value_location("target") if "target" in data else None,
        children=children,
    )


def _refuse_types(texts: dialects.Texts, types: Types, findings: Findings) -> None:
    """Notes a plain string that is the name of a type: it is no criterion, and no judge's opinion
    may take the evaluator's place."""
    for text, place in texts.found:
        if dialects.type_key(text.strip()) in types:
            findings.error(
                place,
                f"`{text.strip()}` alone is the type of an evaluator and no criterion",
                "write an object with a `type`",
            )


def _common(data: Map, options: type[base.EvaluatorOptions]) -> Map:
    """What of an evaluator is common to all: `target` is the type's own where it has such a
    field."""
    if "target" not in data or "target" not in fields_of(options):
        return data
    common = Map(data.source, data.place)
    for key in data.keys() - {"target"}:
        common.adopt(data, key, key)
    return common


def _options_of(entry: Map, types: Types, findings: Findings) -> type[base.EvaluatorOptions] | None:
    written = entry.get("type")
    if not isinstance(written, str) or not written:
        place = entry.value_location("type") if "type" in entry else entry.location
        if "include" in entry:
            problem, advice = "`include` of AgentV is not supported", "write the evaluators out"
        elif "type" in entry:
            problem, advice = (
                f"`type` is {kind(written)}",
                "write the type of an evaluator, as `contains`",
            )
        else:
            problem, advice = (
                "this evaluator has no `type`",
                f"write one of {one_of(sorted({o.type for o in types.values()}))}",
            )
        findings.error(place, problem, advice)
        return None
    key = dialects.type_key(written)
    if key in types:
        return types[key]
    place = entry.value_location("type")
    if key.startswith("not_") and key.removeprefix("not_") in types:
        positive = types[key.removeprefix("not_")].type
        findings.error(
            place,
            f"the evaluator type `{written}` of AgentV is not supported",
            f"write `type: {positive}` with `negate: true`",
        )
    else:
        meant = nearest(key, types)
        advice = (
            f"did you mean `{meant}`?"
            if meant
            else f"write one of {one_of(sorted({o.type for o in types.values()}))}"
        )
        findings.error(place, f"the evaluator type `{written}` is unknown", advice)
    return None


@cache
def _shape(options: type[base.EvaluatorOptions]) -> dialects.Shape:
    fields = {
        name: tuple(options.spellings.get(name, ()))
        for name in fields_of(options)
        if name != options.children_field
    }
    return dialects.evaluator_shape(fields, options.asks_judge, bool(options.children_field))


def _refuse_special(entry: Map, findings: Findings) -> None:
    if dialects.type_key(entry["type"]) == "llm_rubric" and "value" in entry:
        findings.error(
            entry.key_location("value"),
            "`llm-rubric` with a `value` is not supported",
            "write it as `type: rubric` with `rubrics`",
        )


def _declared(
    name: str,
    options: base.EvaluatorOptions,
    location: Location,
    folder: Folder,
    findings: Findings,
) -> Declared:
    try:
        files = tuple(options.files(folder))
    except (OSError, ValueError) as error:
        findings.error(
            location,
            f"a file of this evaluator cannot be used: {error}",
            "name a file of the repository",
        )
        files = ()
    return Declared(
        name,
        options.type,
        options,
        location,
        gates_inside=tuple(options.inner_gates()),
        files=files,
    )


def _threshold(common: EvaluatorEntry, data: Map, findings: Findings) -> float | None:
    required, least = common.required, common.min_score
    if isinstance(required, bool) or required is None:
        if not required:
            if least is not None:
                problem = "`min_score` without `required` gates nothing"
                findings.warn(
                    data.key_location("min_score"), problem, "write `required: true` beside it"
                )
            return None
        return least if least is not None else PASS_SCORE
    if least is not None and least != required:
        findings.error(
            data.key_location("min_score"),
            "`required` and `min_score` are both thresholds and differ",
            "keep one of them",
        )
    return required


def _generated_name(options: base.EvaluatorOptions) -> str:
    label = " ".join(options.label().split())
    return (f"{options.type}-{label}" if label else options.type)[:_GENERATED_NAME].rstrip()


Model = type[Entry] | type[BaseModel]


def _warn_nested(model: Model, data: Map, findings: Findings) -> None:
    for name, inner in _inner_models(model):
        values = data.get(name)
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, Map):
                dialects.fold(value, _inner_shape(inner), findings)


@cache
def _inner_models(model: Model) -> tuple[tuple[str, Model], ...]:
    found = ((name, _model_in(annotation)) for name, annotation in types_of(model).items())
    return tuple((name, inner) for name, inner in found if inner is not None)


def _model_in(annotation: Any) -> Model | None:
    if isinstance(annotation, type) and issubclass(annotation, Entry | BaseModel):
        return annotation
    return next((inner for part in get_args(annotation) if (inner := _model_in(part))), None)


@cache
def _inner_shape(model: Model) -> dialects.Shape:
    spellings = getattr(model, "spellings", {})
    name = model.__name__.lower()
    return dialects.Shape(
        name, {field: tuple(spellings.get(field, ())) for field in fields_of(model)}
    )


def effective(
    groups: Sequence[tuple[Origin, Sequence[Declared]]], test: Location
) -> tuple[Evaluator, ...]:
    """The evaluators of a test, in order, each with a name of its own and its gates where an
    annotation goes."""
    taken: set[str] = set()
    return tuple(
        _effective(declared, origin, test, taken) for origin, group in groups for declared in group
    )


def _effective(declared: Declared, origin: Origin, test: Location, taken: set[str]) -> Evaluator:
    name = _unique(declared.name, taken)
    taken.add(name)
    own = test if origin == "suite" else declared.location
    return Evaluator(
        name=name,
        type=declared.type,
        options=declared.options,
        origin=origin,
        location=declared.location,
        weight=declared.weight,
        threshold=declared.threshold,
        negate=declared.negate,
        config=declared.config,
        target=declared.target,
        gates=tuple(_gates(declared, name, own, origin)),
        files=declared.files,
    )


def _named_inside(children: Sequence[Declared], origin: Origin, place: Location) -> Items:
    """The evaluators inside another, as its options hold them: each with a name of its own among
    them."""
    taken: set[str] = set()
    named = Items(place.path, (place.line, place.column))
    for child in children:
        at = child.location
        named.put(_effective(child, origin, at, taken), (at.line, at.column))
    return named


def _unique(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    return next(
        f"{name}-{number}" for number in range(2, len(taken) + 3) if f"{name}-{number}" not in taken
    )


def _gates(declared: Declared, name: str, place: Location, origin: Origin) -> Iterator[Gate]:
    if declared.threshold is not None:
        yield Gate(name, place)
    for inner, location in declared.gates_inside:
        if inner or declared.threshold is None:
            yield Gate(
                base.gate_path(name, inner),
                location if location is not None and origin != "suite" else place,
            )
