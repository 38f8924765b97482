"""Reads the evaluators of a suite: validates them by type, names them, and orders them."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from agentevals_action.evaluators import EVALUATORS, EVALUATORS_BY_NAME, base
from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import PASS_SCORE
from agentevals_action.model.suite import Evaluator, Gate, NamedFile, Origin
from agentevals_action.model.validation.file_model import fields_of
from agentevals_action.suites import dialects
from agentevals_action.suites.files.diagnostics import Findings, did_you_mean
from agentevals_action.suites.files.positions import Items, Map, plain
from agentevals_action.suites.files.validation_errors import describe_value
from agentevals_action.suites.models import schema_models
from agentevals_action.system.files.paths import Folder

#: Characters of a name that is made from type and value.
_GENERATED_NAME = 40

#: Where a repository keeps programs for types of its own, and the suffixes of their files.
_ASSERTIONS, _ASSERTION_SUFFIXES = ".agentv/assertions", (".ts", ".js", ".mts", ".mjs")
_FILE_NAME = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True)
class Declared:
    """A valid evaluator as declared: its name is not yet unique, and its gates are missing.
    `gates_inside` are those below it by name, with their locations where they are known."""

    evaluator: Evaluator
    gates_inside: tuple[tuple[str, Location | None], ...] = ()
    target_location: Location | None = None
    children: tuple["Declared", ...] = ()

    def every(self) -> Iterator["Declared"]:
        """This evaluator and all inside it, at any depth, in file order."""
        yield self
        for child in self.children:
            yield from child.every()


@dataclass(frozen=True)
class EvaluatorReader:
    """Reads the evaluators of one file in `folder`; an invalid one is an error, it is never left
    out silently."""

    folder: Folder
    findings: Findings
    origin: Origin

    def read(self, entries: Iterable[tuple[Any, Location]]) -> tuple[Declared, ...]:
        """The evaluators of these entries."""
        read = (self._read_one(entry, location) for entry, location in entries)
        return tuple(declared for declared in read if declared is not None)

    def read_rubrics(self, data: Map) -> Declared | None:
        """The `rubrics` of a test as one evaluator of type `rubric`."""
        entry = Map(data.source, data.start)
        entry.adopt(data, "rubrics", "rubrics")
        options = EVALUATORS_BY_NAME["rubric"]
        _report_inside(options, entry, self.findings)
        valid = self.findings.read(options, entry, "test", self.folder)
        location = data.value_location("rubrics")
        return self._declare("rubrics", valid, location) if valid else None

    def _read_one(self, entry: Any, location: Location) -> Declared | None:
        findings = self.findings
        if not isinstance(entry, Map):
            problem = f"an evaluator is {describe_value(entry)}"
            findings.error(location, problem, "write an object with a `type`")
            return None
        entry = self._with_program(entry)
        options = _options_of(entry, findings)
        if options is None:
            return None
        shape = dialects.evaluator_shape(options)
        passed = dialects.passed_fields(entry, shape) if options.passes_fields else {}
        # `value` of `llm-rubric` is refused below.
        refused = ("value",) if _is_llm_rubric(entry) else ()
        data = dialects.fold(entry.without(*passed, *refused), shape, findings)
        before = findings.error_count
        children = self._read_children(entry, options, data)
        # Names in an aggregator cannot be checked where a child is invalid.
        skipped = options.children_field if findings.error_count > before else ""
        _refuse_special(entry, findings)
        _report_inside(options, data, findings)
        # `target` is a field of its own in some types.
        shared = data.without("target") if "target" in fields_of(options) else data
        common = findings.read(schema_models.Evaluator, shared, "evaluator")
        valid = findings.read(options, data, "evaluator", self.folder, skipped)
        if common is None or valid is None:
            return None
        for name, problem, advice in valid.warnings():
            findings.warn(data.value_location(name), f"`{data.spelling(name)}` {problem}", advice)
        label = " ".join(valid.label().split())
        generated = (f"{valid.type}-{label}" if label else valid.type)[:_GENERATED_NAME].rstrip()
        declared = self._declare(common.name or generated, valid, entry.location)
        if common.negate and declared.gates_inside:
            problem = "an evaluator with a gate inside cannot be negated"
            findings.error(data.key_location("negate"), problem, "remove `negate`, or the gate")
        evaluator = replace(
            declared.evaluator,
            weight=common.weight,
            threshold=_threshold(common, data, findings),
            negate=common.negate,
            config=plain({**passed, **(common.config or {})}),
            target=common.target if options.asks_judge else None,
        )
        target = data.value_location("target") if "target" in data else None
        return replace(declared, evaluator=evaluator, target_location=target, children=children)

    def _with_program(self, entry: Map) -> Map:
        """An evaluator of a type of the repository's own, as the program that it stands for: the
        file `.agentv/assertions/<type>.ts` in the folder or one above it, as AgentV runs it."""
        written = entry.get("type")
        if not isinstance(written, str) or dialects.type_key(written) in EVALUATORS_BY_NAME:
            return entry
        if _FILE_NAME.fullmatch(written) is None:
            return entry
        inside = self.folder.path.relative_to(self.folder.root)
        for above in (inside, *inside.parents):
            for suffix in _ASSERTION_SUFFIXES:
                try:
                    path = self.folder.resolve(f"/{above}/{_ASSERTIONS}/{written}{suffix}")
                except ValueError:  # too long, or a link that leaves the repository: no such type
                    return entry
                if path.is_file():
                    script = os.path.relpath(path, self.folder.path)
                    program = entry.without("type")
                    program.update(type="code-grader", script=["bun", "run", script])
                    program.setdefault("name", written)
                    return program
        return entry

    def _read_children(
        self, entry: Map, options: type[base.EvaluatorOptions], data: Map
    ) -> tuple[Declared, ...]:
        """The evaluators inside, which `data` gets as `Evaluator`s unless one is invalid."""
        lists = [key for key in entry if key in dialects.EVALUATOR_LISTS]
        if not lists or not options.children_field:
            return ()
        before = self.findings.error_count
        children = self.read(dialects.listed_evaluators(entry, lists, self.findings))
        if self.findings.error_count == before:
            named = Items(data.source, data.start)
            for child in effective([(self.origin, children)], None):
                named.put(child, (child.location.line, child.location.column))
            data.adopt(entry, lists[0], options.children_field, named)
        return children

    def _declare(self, name: str, options: base.EvaluatorOptions, location: Location) -> Declared:
        files: tuple[NamedFile, ...] = ()
        try:
            files = tuple(options.files(self.folder))
        except (OSError, ValueError) as error:
            problem = f"a file of this evaluator cannot be used: {error}"
            self.findings.error(location, problem, "name a file of the repository")
        evaluator = Evaluator(name, options.type, options, self.origin, location, files=files)
        return Declared(evaluator, tuple(options.inner_gates()))


def default_judge(folder: Folder, location: Location) -> Declared:
    """The judge that scores `criteria` where a suite declares nothing."""
    options = EVALUATORS_BY_NAME["llm_judge"].model_validate({}, context=folder)
    return Declared(Evaluator("criteria", options.type, options, "default", location))


def _options_of(entry: Map, findings: Findings) -> type[base.EvaluatorOptions] | None:
    written = entry.get("type")
    known = f"write one of {one_of(sorted(EVALUATORS))}"
    location = entry.value_location("type") if "type" in entry else entry.location
    if not isinstance(written, str) or not written:
        problem, advice = "this evaluator has no `type`", known
        if "include" in entry:
            problem, advice = "`include` of AgentV is not supported", "write the evaluators out"
        elif "type" in entry:
            problem = f"`type` is {describe_value(written)}"
            advice = "write the type of an evaluator, as `contains`"
        findings.error(location, problem, advice)
        return None
    key = dialects.type_key(written)
    if key in EVALUATORS_BY_NAME:
        return EVALUATORS_BY_NAME[key]
    positive = EVALUATORS_BY_NAME.get(key.removeprefix("not_"))
    if key.startswith("not_") and positive:
        problem = f"the evaluator type `{written}` of AgentV is not supported"
        findings.error(location, problem, f"write `type: {positive.type}` with `negate: true`")
    else:
        problem = f"the evaluator type `{written}` is unknown"
        findings.error(location, problem, did_you_mean(key, EVALUATORS_BY_NAME, known))
    return None


def _is_llm_rubric(entry: Map) -> bool:
    return dialects.type_key(entry["type"]) == "llm_rubric"


def _refuse_special(entry: Map, findings: Findings) -> None:
    """Refuses two forms that mean something else in AgentV, or that a reader takes for it."""
    if _is_llm_rubric(entry) and "value" in entry:
        problem = "`llm-rubric` with a `value` is not supported"
        advice = "write it as `type: rubric` with `rubrics`"
        findings.error(entry.key_location("value"), problem, advice)
    if not isinstance(entry, dialects.PlainCriteria):
        return
    for text, location in entry["rubrics"].located():
        # A judge's opinion must not replace an evaluator.
        if dialects.type_key(text.strip()) in EVALUATORS_BY_NAME:
            problem = f"`{text.strip()}` alone is the type of an evaluator and not a criterion"
            findings.error(location, problem, "write an object with a `type`")


def _threshold(common: schema_models.Evaluator, data: Map, findings: Findings) -> float | None:
    required, least = common.required, common.min_score
    location = data.key_location("min_score")
    if isinstance(required, bool) or required is None:
        if not required and least is not None:
            problem = "`min_score` without `required` is not a gate"
            findings.warn(location, problem, "add `required: true`")
        return (least if least is not None else PASS_SCORE) if required else None
    if least is not None and least != required:
        problem = "`required` and `min_score` are both thresholds and differ"
        findings.error(location, problem, "keep one of them")
    return required


def _report_inside(model: type[BaseModel], data: Map, findings: Findings) -> None:
    """Reports the unknown fields of the objects inside the options of an evaluator."""
    for name, shape in inner_shapes(model):
        values = data.get(name)
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, Map):
                dialects.fold(value, shape, findings)


@cache
def inner_shapes(model: type[BaseModel]) -> tuple[tuple[str, dialects.Shape], ...]:
    """The shapes of the objects inside the options of an evaluator, by field."""
    found = ((name, _model_in(field.annotation)) for name, field in fields_of(model).items())
    return tuple(
        (name, dialects.model_shape(inner.__name__.lower(), inner))
        for name, inner in found
        if inner
    )


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((inner for part in get_args(annotation) if (inner := _model_in(part))), None)


def effective(
    groups: Iterable[tuple[Origin, Iterable[Declared]]], test: Location | None
) -> tuple[Evaluator, ...]:
    """Evaluators in order, with unique names and the locations of annotations; `test` is where
    those of a suite's gates go (None inside another evaluator)."""
    taken: set[str] = set()
    made = []
    for origin, group in groups:
        for declared in group:
            number, name = 1, declared.evaluator.name
            while name in taken:
                number += 1
                name = f"{declared.evaluator.name}-{number}"
            taken.add(name)
            own = test if origin == "suite" else None
            gates = tuple(_gates(declared, name, own))
            made.append(replace(declared.evaluator, name=name, origin=origin, gates=gates))
    return tuple(made)


def _gates(declared: Declared, name: str, test: Location | None) -> Iterator[Gate]:
    evaluator = declared.evaluator
    if evaluator.threshold is not None:
        yield Gate(name, test or evaluator.location)
    for inner, inside in declared.gates_inside:
        if inner or evaluator.threshold is None:
            yield Gate(base.gate_path(name, inner), test or inside or evaluator.location)
