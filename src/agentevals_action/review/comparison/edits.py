"""Edits: the definitions of tests on head compared with those on base. Pure.

A broken agent passes if the same change replaces its target or relaxes what scores it. Each such
edit is found, so that a report can name it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from agentevals_action.model.edits import (
    Edit,
    EditKind,
    EvaluatorDefinition,
    FieldEdit,
    SuiteEdits,
    TargetDefinition,
    TestDefinition,
)

#: Fields of a target whose values are shown. Others may contain a key.
_SHOWN_TARGET_FIELDS = ("provider", "model", "deployment")


def find_edits(pairs: Iterable[tuple[TestDefinition, TestDefinition]]) -> SuiteEdits:
    """The edits of the tests of one suite, each as a pair of head and base. Edits of several tests
    that differ only by their location are one."""
    found: dict[tuple[object, ...], tuple[Edit, list[str]]] = {}
    rescored: set[str] = set()
    by_program: set[str] = set()
    for head, base in pairs:
        edits = tuple(_edits_of_test(head, base))
        for edit in edits:
            key = (edit.kind, edit.name, edit.action, edit.fields, edit.files)
            found.setdefault(key, (edit, []))[1].append(head.id)
        now, before = head.fingerprint, base.fingerprint
        is_rescored = now.grading != before.grading or any(
            edit.kind is not EditKind.TARGET for edit in edits
        )
        if is_rescored and now.question == before.question:
            rescored.add(head.id)
            if base.has_program:
                by_program.add(head.id)
    order = list(EditKind)
    grouped = [replace(edit, tests=tuple(tests)) for edit, tests in found.values()]
    grouped.sort(key=lambda edit: order.index(edit.kind))
    return SuiteEdits(tuple(grouped), frozenset(rescored), frozenset(by_program))


def _edits_of_test(head: TestDefinition, base: TestDefinition) -> Iterator[Edit]:
    gates = head.gates | base.gates
    added = head.evaluators.keys() - base.evaluators.keys()
    removed = base.evaluators.keys() - head.evaluators.keys()
    for path, evaluator in {**base.evaluators, **head.evaluators}.items():
        kind = EditKind.GATE if _is_part_of_gate(path, gates) else EditKind.EVALUATOR
        if path not in added | removed:
            was_gate = path in base.gates - head.gates
            yield from _edits_of_evaluator(kind, evaluator, base.evaluators[path], was_gate)
        elif path.rpartition("/")[0] in added | removed:
            continue  # the evaluator around it is listed
        elif path in added:
            yield Edit(kind, path, "added", evaluator.location)
        elif kind is EditKind.EVALUATOR:  # a removed gate is listed as such
            yield Edit(kind, path, "removed", evaluator.location)
    yield from _edits_of_target(EditKind.TARGET, head.agent, base.agent)
    for field in _edited_fields(head.references, base.references):
        yield Edit(EditKind.REFERENCE, field.name, "changed", head.location, (field,))


def _edits_of_evaluator(
    kind: EditKind, head: EvaluatorDefinition, base: EvaluatorDefinition, was_gate: bool
) -> Iterator[Edit]:
    # Fields that only one of two types has say nothing more than the type.
    names = head.fields.keys() & base.fields.keys()
    # That a gate is none any more is listed as a removed gate.
    ignored = {"required"} if was_gate else set()
    fields = tuple(
        field for field in _edited_fields(head.fields, base.fields) if field.name in names - ignored
    )
    files = _edited_files(head.files, base.files)
    if fields or files:
        yield Edit(kind, head.path, "changed", head.location, fields, files)
    yield from _edits_of_target(EditKind.JUDGE, head.judge, base.judge)


def _edits_of_target(
    kind: EditKind, head: TargetDefinition | None, base: TargetDefinition | None
) -> Iterator[Edit]:
    if head is None or base is None:
        return  # one side needs none, or its tests end in that error
    fields = _edited_fields({"name": head.name}, {"name": base.name})
    if head.provider != base.provider:
        fields += (FieldEdit("provider", base.provider, head.provider),)
    else:
        fields += tuple(
            field if field.name in _SHOWN_TARGET_FIELDS else FieldEdit(field.name)
            for field in _edited_fields(head.fields, base.fields)
        )
    if fields:
        yield Edit(kind, head.name, "changed", head.location, fields)


def _edited_fields(head: Mapping[str, str], base: Mapping[str, str]) -> tuple[FieldEdit, ...]:
    names = dict.fromkeys((*base, *head))
    return tuple(
        FieldEdit(name, base.get(name), head.get(name))
        for name in names
        if base.get(name) != head.get(name)
    )


def _edited_files(head: Mapping[str, str], base: Mapping[str, str]) -> tuple[str, ...]:
    """The paths whose content is another one, or only on one side; a renamed file is none."""
    changed = [path for path in head if path in base and head[path] != base[path]]
    added = [path for path in head if path not in base and head[path] not in base.values()]
    removed = [path for path in base if path not in head and base[path] not in head.values()]
    return tuple(sorted((*changed, *added, *removed)))


def _is_part_of_gate(path: str, gates: Iterable[str]) -> bool:
    """Whether an evaluator is a gate, contains one, or is inside one."""
    return any(
        gate == path or gate.startswith(f"{path}/") or path.startswith(f"{gate}/") for gate in gates
    )
