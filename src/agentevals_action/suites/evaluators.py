"""Reads the evaluators of a suite: validates them by type, names them, and orders them."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from agentevals_action.evaluators import EVALUATORS, EVALUATORS_BY_NAME
from agentevals_action.evaluators.base import gate_path
from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.files import NamedFile
from agentevals_action.model.suite import Evaluator, Gate, Origin
from agentevals_action.model.validation.field_errors import describe_value, did_you_mean, nearest
from agentevals_action.model.validation.file_model import spellings_of
from agentevals_action.suites.reading import (
    EVALUATOR_LISTS,
    MISSPELLED,
    FileReader,
    is_exempt,
    type_key,
)
from agentevals_action.system.files.paths import Folder

#: Characters of a name that is made from type and value.
_GENERATED_NAME = 40
#: Features of AgentV that a code judge does not get as a part of its `config`.
_NEVER_PASSED = (*EVALUATOR_LISTS, "include", "preprocessors", "transform")
#: Where a repository keeps programs for types of its own, and the suffixes of their files.
_ASSERTIONS, _ASSERTION_SUFFIXES = ".agentv/assertions", (".ts", ".js", ".mts", ".mjs")
_NO_TYPE = "this evaluator has no `type`"
#: The pattern of such a type, which is the name of its file.
OWN_TYPE = r"\w[\w.-]*"

#: An evaluator as written, and its location.
Entry = tuple[Any, Location]


def declared_evaluators(data: dict[str, Any], reader: FileReader) -> Iterator[Entry]:
    """The evaluators of a suite or a test as written, in file order."""
    for key, value in data.items():
        if key in EVALUATOR_LISTS:
            yield from _listed(data, key, reader)
        elif key == "execution" and isinstance(value, dict):
            if "evaluators" in value:
                problem = "`evaluators` under `execution` is the earlier spelling of `assert`"
                reader.warn(reader.positions.key(value, "evaluators"), problem, "write `assert`")
            for name in value:
                if name in EVALUATOR_LISTS:
                    yield from _listed(value, name, reader)


def _listed(data: dict[str, Any], key: str, reader: FileReader) -> Iterator[Entry]:
    """The evaluators of one list. Its plain strings are one rubric, at the location of the
    first."""
    values, positions = data[key], reader.positions
    if not isinstance(values, list):
        problem = f"`{key}` is {describe_value(values)}"
        reader.error(positions.value(data, key), problem, "write a list of evaluators")
        return
    texts = [value for value in values if isinstance(value, str)]
    types = [text for text in texts if type_key(text.strip()) in EVALUATORS_BY_NAME]
    first = values.index(texts[0]) if texts else 0
    for index, value in enumerate(values):
        location = positions.value(values, index)
        if not isinstance(value, str):
            yield value, location
        elif value in types:  # a judge's opinion must not replace an evaluator
            problem = f"`{value.strip()}` alone is the type of an evaluator and not a criterion"
            reader.error(location, problem, "write an object with a `type`")
        elif not types and index == first:
            rubric = {"type": "rubric", "rubrics": texts}
            positions.add(rubric, (location.line, location.column), {})
            yield rubric, location


@dataclass(frozen=True)
class EvaluatorReader:
    """Reads the evaluators of one file; an invalid one is an error, it is never left out
    silently."""

    reader: FileReader
    origin: Origin

    def read(self, entries: Iterable[Entry]) -> tuple[Evaluator, ...]:
        """The evaluators of these entries; names are not yet unique, and gates are missing."""
        read = (self._read_one(entry, location) for entry, location in entries)
        return tuple(evaluator for evaluator in read if evaluator is not None)

    def read_rubrics(self, data: dict[str, Any]) -> tuple[Evaluator, ...]:
        """The `rubrics` of a test as one evaluator of type `rubric`, if they are valid."""
        before = self.reader.diagnostics.error_count
        entry = self.reader.only(data, ("rubrics",))
        valid = self.reader.validate(EVALUATORS_BY_NAME["rubric"], entry)
        location = self.reader.positions.value(data, "rubrics")
        if valid is None or self.reader.diagnostics.error_count > before:
            return ()
        return (self._completed(valid, location=location, name="rubrics"),)

    def _read_one(self, written: Any, location: Location) -> Evaluator | None:
        reader = self.reader
        if not isinstance(written, dict):
            problem = f"an evaluator is {describe_value(written)}"
            reader.error(location, problem, "write an object with a `type`")
            return None
        entry = self._with_program(written)
        model = _type_of(entry, reader)
        if model is None:
            return None
        passed = _passed_fields(entry, model)
        before = reader.diagnostics.error_count
        children = self._read_children(entry, model)
        # Names in an aggregator cannot be checked where a child is invalid.
        skipped = model.children_field if reader.diagnostics.error_count > before else ""
        data = reader.without(entry, *passed, *_refused_value(entry, reader))
        if lists := [key for key in data if model.children_field and key in EVALUATOR_LISTS]:
            data = reader.without(data, *lists)
            if not skipped:
                data[lists[0]] = children
        evaluator = reader.validate(model, data, f"`{entry['type']}`", skipped)
        if evaluator is None or reader.diagnostics.error_count > before:
            return None
        names = spellings_of(model)
        keys = {names[key]: key for key in reversed(data) if key in names}
        for name, problem, advice in evaluator.warnings():
            reader.warn(
                reader.positions.value(data, keys[name]), f"`{keys[name]}` {problem}", advice
            )
        changes: dict[str, Any] = {}
        if not evaluator.name:
            label = " ".join(evaluator.label().split())
            generated = f"{evaluator.type}-{label}" if label else evaluator.type
            changes["name"] = generated[:_GENERATED_NAME].rstrip()
        if passed:
            changes["config"] = {**passed, **evaluator.config}
        if evaluator.judge_name() is not None:
            changes["target_location"] = reader.positions.value(data, "target")
        return self._completed(evaluator, **changes)

    def _completed(self, evaluator: Evaluator, **changes: Any) -> Evaluator:
        """The evaluator with its origin, its files and changes."""
        files: tuple[NamedFile, ...] = ()
        try:
            files = tuple(evaluator.named_files(self.reader))
        except (OSError, ValueError) as error:
            problem = f"a file of this evaluator cannot be used: {error}"
            self.reader.error(evaluator.location, problem, "name a file of the repository")
        return evaluator.model_copy(update={"origin": self.origin, "files": files, **changes})

    def _with_program(self, entry: dict[str, Any]) -> dict[str, Any]:
        """An evaluator of a type of the repository's own, as the program that it stands for: the
        file `.agentv/assertions/<type>.ts` in the folder or one above it, as AgentV runs it."""
        written, folder = entry.get("type"), self.reader
        if not isinstance(written, str) or type_key(written) in EVALUATORS_BY_NAME:
            return entry
        if re.fullmatch(OWN_TYPE, written) is None:
            return entry
        inside = folder.path.relative_to(folder.root)
        for above in (inside, *inside.parents):
            for suffix in _ASSERTION_SUFFIXES:
                try:
                    path = folder.resolve(f"/{above}/{_ASSERTIONS}/{written}{suffix}")
                except ValueError:  # too long, or a link that leaves the repository: no such type
                    return entry
                if path.is_file():
                    script = os.path.relpath(path, folder.path)
                    program = folder.without(entry)
                    program |= {"type": "code-grader", "script": ["bun", "run", script]}
                    program.setdefault("name", written)
                    return program
        return entry

    def _read_children(self, entry: dict[str, Any], model: type[Evaluator]) -> list[Evaluator]:
        """The evaluators inside, with unique names and their gates."""
        if not model.children_field:
            return []
        lists = [key for key in entry if key in EVALUATOR_LISTS]
        entries = (child for key in lists for child in _listed(entry, key, self.reader))
        return list(resolve_evaluators([(self.origin, self.read(entries))], None))


def default_judge(folder: Folder, location: Location) -> Evaluator:
    """The judge that scores `criteria` where a suite declares nothing."""
    judge = EVALUATORS_BY_NAME["llm_judge"].model_validate({"name": "criteria"}, context=folder)
    return judge.model_copy(update={"origin": "default", "location": location})


def _passed_fields(entry: dict[str, Any], model: type[Evaluator]) -> dict[str, Any]:
    """The fields of a code judge that are passed on as part of `config`, as AgentV does. One that
    resembles a known field is none of them: `requird` would silently remove a gate."""
    if not model.passes_fields:
        return {}
    known = spellings_of(model)
    return {
        key: value
        for key, value in entry.items()
        if key not in known
        and key not in _NEVER_PASSED
        and not is_exempt(key)
        and nearest(key, known, MISSPELLED) is None
    }


def _type_of(entry: dict[str, Any], reader: FileReader) -> type[Evaluator] | None:
    written = entry.get("type")
    key = type_key(written) if isinstance(written, str) else ""
    if key in EVALUATORS_BY_NAME:
        return EVALUATORS_BY_NAME[key]
    known = f"write one of {one_of(sorted(EVALUATORS))}"
    location = reader.positions.value(entry, "type")
    positive = EVALUATORS_BY_NAME.get(key.removeprefix("not_"))
    misspelled = next((name for name in entry if nearest(name, ("type",), MISSPELLED)), None)
    if "type" not in entry and "include" in entry:
        reader.refuse_feature(location, "`include`")
    elif misspelled and "type" not in entry:
        problem = f"the field `{misspelled}` of this evaluator is unknown"
        reader.error(reader.positions.key(entry, misspelled), problem, "did you mean `type`?")
    elif not key:
        problem = f"`type` is {describe_value(written)}" if "type" in entry else _NO_TYPE
        named = next((type_key(name) for name in entry if type_key(name) in EVALUATORS_BY_NAME), "")
        meant = f"write `type: {EVALUATORS_BY_NAME[named].type}`" if named else known
        reader.error(location, problem, meant)
    elif positive:
        problem = f"the evaluator type `{written}` of AgentV is not supported"
        reader.error(location, problem, f"write `type: {positive.type}` with `negate: true`")
    else:
        problem = f"the evaluator type `{written}` is unknown"
        reader.error(location, problem, did_you_mean(key, EVALUATORS_BY_NAME, known))
    return None


def _refused_value(entry: dict[str, Any], reader: FileReader) -> tuple[str, ...]:
    """The field `value` of an `llm-rubric`, which means something else in AgentV: an error."""
    if type_key(entry["type"]) != "llm_rubric" or "value" not in entry:
        return ()
    reader.refuse_feature(reader.positions.key(entry, "value"), "`llm-rubric` with a `value`")
    return ("value",)


def resolve_evaluators(
    groups: Iterable[tuple[Origin, Iterable[Evaluator]]], test: Location | None
) -> tuple[Evaluator, ...]:
    """Evaluators in order, with unique names and the locations of annotations; `test` is where
    those of a suite's gates go (None inside another evaluator)."""
    taken: set[str] = set()
    resolved = []
    for origin, group in groups:
        for evaluator in group:
            number, name = 1, evaluator.name
            while name in taken:
                number += 1
                name = f"{evaluator.name}-{number}"
            taken.add(name)
            own = test if origin == "suite" else None
            gates = tuple(_gates(evaluator, name, own))
            update = {"name": name, "origin": origin, "gates": gates}
            resolved.append(evaluator.model_copy(update=update))
    return tuple(resolved)


def _gates(evaluator: Evaluator, name: str, test: Location | None) -> Iterator[Gate]:
    if evaluator.gate_threshold is not None:
        yield Gate(name, test or evaluator.location)
    for gate, location in evaluator.inner_gates():
        if gate or evaluator.gate_threshold is None:
            yield Gate(gate_path(name, gate), test or location or evaluator.location)
