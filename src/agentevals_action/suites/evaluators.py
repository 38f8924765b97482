"""Brings the evaluators of a suite or a test into one list, each in the form that is read."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

from agentevals_action.evaluators import EVALUATORS
from agentevals_action.model.diagnostic import Location
from agentevals_action.suites.reading import EVALUATOR_LISTS, FileReader
from agentevals_action.validation.field_errors import describe_value
from agentevals_action.validation.file_model import list_spellings

#: Where a repository keeps programs for types of its own, and the suffixes of their files.
_ASSERTIONS, _SUFFIXES = ".agentv/assertions", (".ts", ".js", ".mts", ".mjs")
#: The pattern of such a type, which is the name of its file.
OWN_TYPE = r"\w[\w.-]*"


def gather_evaluators(data: dict[str, Any], reader: FileReader) -> dict[str, Any]:
    """An object with all its evaluators in one list, in file order."""
    gathered: dict[str, Any] = {}
    entries: list[tuple[Any, Location]] = []
    key_of_list = ""
    for key, value in data.items():
        if key in EVALUATOR_LISTS:
            key_of_list = key_of_list or (key if isinstance(value, list) else "")
            entries += _listed(data, key, reader)
        elif key == "execution" and isinstance(value, dict):
            if "evaluators" in value:
                problem = "`evaluators` under `execution` is the earlier spelling of `assert`"
                reader.warn(reader.positions.key(value, "evaluators"), problem, "write `assert`")
            for name in value:
                entries += _listed(value, name, reader) if name in EVALUATOR_LISTS else ()
            gathered[key] = reader.without(value, *EVALUATOR_LISTS)
        else:
            gathered[key] = value
    if key_of_list or entries:
        merged = [_complete(entry, reader) for entry, _ in entries]
        places = [(place.line, place.column) for _, place in entries]
        reader.positions.add(merged, places[0] if places else (1, 1), places)
        gathered[key_of_list or "evaluators"] = merged
    reader.positions.copy(data, gathered)
    return gathered


def _listed(data: dict[str, Any], key: str, reader: FileReader) -> Iterator[tuple[Any, Location]]:
    """The evaluators of one list as written, and their locations. Its plain strings are one rubric,
    at the location of the first."""
    values, positions = data[key], reader.positions
    if not isinstance(values, list):
        problem = f"`{key}` is {describe_value(values)}"
        reader.error(positions.value(data, key), problem, "write a list of evaluators")
        reader.set_reported(data, "evaluators")
        return
    criteria = [value for value in values if _is_criterion(value)]
    for index, value in enumerate(values):
        location = positions.value(values, index)
        if not _is_criterion(value):
            yield value, location
        elif criteria:
            rubric = {"type": "rubric", "rubrics": criteria}
            positions.add(rubric, (location.line, location.column), {})
            yield rubric, location
            criteria = []


def _is_criterion(value: Any) -> bool:
    return isinstance(value, str) and value.strip() not in EVALUATORS


def _complete(entry: Any, reader: FileReader) -> Any:
    """An evaluator in the form that its type reads."""
    if not isinstance(entry, dict):
        return entry
    entry = _with_program(entry, reader)
    model = EVALUATORS.get(entry.get("type"))
    has_others = model and "evaluators" in list_spellings(model)
    return gather_evaluators(entry, reader) if has_others else entry


def _with_program(entry: dict[str, Any], reader: FileReader) -> dict[str, Any]:
    """An evaluator of a type of the repository's own, as the program that it stands for: the file
    `.agentv/assertions/<type>.ts` in the folder or one above it, as AgentV runs it."""
    name = entry.get("type")
    if not isinstance(name, str) or name in EVALUATORS or not re.fullmatch(OWN_TYPE, name):
        return entry
    inside = reader.path.relative_to(reader.root)
    for folder, suffix in product((inside, *inside.parents), _SUFFIXES):
        with suppress(ValueError):  # there is no such file
            path = reader.file(f"/{folder}/{_ASSERTIONS}/{name}{suffix}")
            script = ["bun", "run", os.path.relpath(path, reader.path)]
            program = {"name": name, **entry, "type": "code-grader", "script": script}
            reader.positions.copy(entry, program)
            return program
    return entry
