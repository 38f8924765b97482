"""What decides about tests besides the agent: the judges' files, and what a change edits.

A broken agent passes if the same change replaces its target or relaxes what scores it. Each such
edit is found by name, so that a report can list it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from agentevals_action.evaluators.code_judge.evaluator import CodeJudge
from agentevals_action.execution.fingerprint import NAMING, Fingerprints
from agentevals_action.model.edits import Edit, EditKind, SuiteEdits
from agentevals_action.model.suite import Evaluator, NamedFile, Suite, Test
from agentevals_action.model.target import Target


def code_judges(suite: Suite) -> Sequence[Evaluator]:
    """The code judges of a suite, one that several tests share once."""
    found = (inside for test in suite.tests for inside in _walk(test.evaluators).values())
    judges = (each for each in found if isinstance(each.options, CodeJudge))
    return tuple({(each.location.path, each.options): each for each in judges}.values())


def imported_files(suite: Suite) -> tuple[NamedFile, ...]:
    """The files of the repository that the suite's judges import, besides those that the
    suite names."""
    paths = (
        path.relative_to(suite.root).as_posix()
        for evaluator in code_judges(suite)
        if isinstance(options := evaluator.options, CodeJudge)
        for path in options.imported_files(_absolute_files(suite, evaluator), suite.root)
    )
    return tuple(NamedFile(path, "imported by a judge") for path in dict.fromkeys(paths))


class EditFinder:
    """Finds the edits of suites that both sides have. Each file is read once."""

    def __init__(self, fingerprints: Fingerprints) -> None:
        self._fingerprints = fingerprints

    def find(self, head: Suite, base: Suite) -> SuiteEdits:
        """The edits of the tests that both sides have. Equal edits of several tests are one."""
        found: dict[tuple[EditKind, str, str], tuple[Edit, list[str]]] = {}
        rescored: set[str] = set()
        by_program: set[str] = set()
        tests_on_base = {test.id: test for test in base.tests}
        for test in head.tests:
            before = tests_on_base.get(test.id)
            if before is None:
                continue
            edits = tuple(self._edits_of_test(head, test, base, before))
            for edit in edits:
                key = (edit.kind, edit.name, edit.action)
                found.setdefault(key, (edit, []))[1].append(test.id)
            now, then = self._fingerprints.of(head, test), self._fingerprints.of(base, before)
            if now.grading != then.grading and now.question == then.question:
                rescored.add(test.id)
                if any(each.type == "code_judge" for each in _walk(before.evaluators).values()):
                    by_program.add(test.id)
        grouped = [replace(edit, tests=tuple(tests)) for edit, tests in found.values()]
        order = list(EditKind)
        return SuiteEdits(
            tuple(sorted(grouped, key=lambda edit: order.index(edit.kind))),
            frozenset(rescored),
            frozenset(by_program),
        )

    def _edits_of_test(self, head: Suite, test: Test, base: Suite, before: Test) -> Iterator[Edit]:
        evaluators, on_base = _walk(test.evaluators), _walk(before.evaluators)
        gates, base_gates = ({gate.name for gate in each.gates} for each in (test, before))
        for path, evaluator in {**on_base, **evaluators}.items():
            kind = EditKind.EVALUATOR
            if _is_part_of_gate(path, gates | base_gates):
                kind = EditKind.GATE
            above = path.rpartition("/")[0]
            if path in evaluators and path in on_base:
                # That a gate is none any more is listed as a removed gate.
                was_gate = path in base_gates - gates
                now = self._describe(head, evaluator, was_gate)
                if now != self._describe(base, on_base[path], was_gate):
                    yield Edit(kind, path, "changed", evaluator.location)
                yield from self._edits_of_target(
                    head,
                    self._judge(head, test, evaluator),
                    base,
                    self._judge(base, before, on_base[path]),
                )
            elif above and (above in evaluators) != (above in on_base):
                continue  # the evaluator around it is listed
            elif path in evaluators:
                yield Edit(kind, path, "added", evaluator.location)
            elif kind is EditKind.EVALUATOR:  # a removed gate is listed as such
                yield Edit(kind, path, "removed", evaluator.location)
        yield from self._edits_of_target(head, head.agent_of(test), base, base.agent_of(before))
        if self._references(head, test) != self._references(base, before):
            yield Edit(EditKind.TEST, test.id, "changed", test.location)

    def _judge(self, suite: Suite, test: Test, evaluator: Evaluator) -> Target | None:
        return self._fingerprints.judge(suite, evaluator, suite.agent_of(test))

    def _edits_of_target(
        self, head: Suite, now: Target | None, base: Suite, before: Target | None
    ) -> Iterator[Edit]:
        if now is None or before is None:
            return  # one side needs none, or its tests end in that error
        if self._describe_target(head, now) != self._describe_target(base, before):
            yield Edit(EditKind.TARGET, now.name, "changed", now.location)

    def _describe(self, suite: Suite, evaluator: Evaluator, was_gate: bool) -> str:
        options = evaluator.options
        files = map(self._fingerprints.content, _absolute_files(suite, evaluator))
        fields = {
            "type": evaluator.type,
            "required": None if was_gate else evaluator.threshold,
            "negate": evaluator.negate,
            "weight": evaluator.weight,
            "config": dict(evaluator.config),
            "files": sorted([*files, *self._fingerprints.imports(suite, evaluator).values()]),
            **options.model_dump(exclude={options.children_field}),
        }
        return _json(fields, suite.root)

    def _describe_target(self, suite: Suite, target: Target) -> str:
        fields = {name: each for name, each in target.definition.items() if name not in NAMING}
        values = self._fingerprints.values(suite, target.definition)
        return _json([target.name, target.provider, fields, values], suite.root)

    def _references(self, suite: Suite, test: Test) -> str:
        """What the evaluators compare an answer with."""
        references = dict(self._fingerprints.references(suite, test))
        options = (evaluator.options for evaluator in _walk(test.evaluators).values())
        if all(each.deterministic and not each.needs_judge() for each in options):
            references = {"expected_output": references["expected_output"]}
        return _json(references, suite.root)


def _absolute_files(suite: Suite, evaluator: Evaluator) -> tuple[Path, ...]:
    return tuple(suite.root / file.path for file in evaluator.files)


def _walk(evaluators: Sequence[Evaluator], above: str = "") -> Mapping[str, Evaluator]:
    """Evaluators and all inside them by their paths, in suite order."""
    found: dict[str, Evaluator] = {}
    for evaluator in evaluators:
        path = f"{above}{evaluator.name}"
        found |= {path: evaluator, **_walk(evaluator.options.children(), f"{path}/")}
    return found


def _is_part_of_gate(path: str, gates: set[str]) -> bool:
    """Whether an evaluator is a gate, contains one, or is inside one."""
    return any(
        gate == path or gate.startswith(f"{path}/") or path.startswith(f"{gate}/") for gate in gates
    )


def _json(value: Any, root: Path) -> str:
    """A value as JSON, the same in every folder."""

    def plain(value: object) -> Any:
        if isinstance(value, PurePath):
            return value.relative_to(root).as_posix() if value.is_relative_to(root) else value.name
        if isinstance(value, Mapping):
            return dict(value)
        return sorted(value, key=repr) if isinstance(value, set | frozenset) else repr(value)

    return json.dumps(value, sort_keys=True, default=plain, ensure_ascii=False)
