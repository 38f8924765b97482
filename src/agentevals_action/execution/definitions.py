"""Definitions of tests: what decides about a test, as data whose differences are edits."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from agentevals_action.evaluators.code_judge.evaluator import CodeJudge
from agentevals_action.execution.fingerprint import NAMING, Fingerprints
from agentevals_action.model.edits import EvaluatorDefinition, TargetDefinition, TestDefinition
from agentevals_action.model.suite import Evaluator, NamedFile, Suite, Test
from agentevals_action.model.target import Target


def code_judges(suite: Suite) -> Sequence[Evaluator]:
    """The code judges of a suite, one that several tests share once."""
    found = (inside for test in suite.tests for _, inside in _walk(test.evaluators))
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


class Definitions:
    """Definitions of the tests of both sides. Each file is read once."""

    def __init__(self, fingerprints: Fingerprints) -> None:
        self._fingerprints = fingerprints

    def differing(
        self, head: Suite, base: Suite
    ) -> tuple[tuple[TestDefinition, TestDefinition], ...]:
        """The tests of both sides that differ, as pairs of head and base."""
        if self._sources(head) == self._sources(base):
            return ()  # without a look at the tests, which may be thousands of rows
        before = {test.id: self._fingerprints.of(base, test) for test in base.tests}
        ids = {
            test.id
            for test in head.tests
            if test.id in before and before[test.id] != self._fingerprints.of(head, test)
        }
        on_base = {test.id: self._define(base, test) for test in base.tests if test.id in ids}
        return tuple(
            (self._define(head, test), on_base[test.id]) for test in head.tests if test.id in ids
        )

    def _sources(self, suite: Suite) -> tuple[Mapping[str, Any], ...]:
        """All that definitions of tests are read from: files by path, and targets by name."""
        files = {
            file.path: self._fingerprints.content(suite.root / file.path)
            for file in suite.files
            if file.role != "target's command"  # the agent itself
        }
        for program in code_judges(suite):
            files |= self._fingerprints.imports(suite, program)
        return files, {
            name: self._define_target(suite, suite.targets.get(name)) for name in suite.used_targets
        }

    def _define(self, suite: Suite, test: Test) -> TestDefinition:
        agent = suite.agent_of(test)
        evaluators = dict(_walk(test.evaluators))
        references = self._fingerprints.references(suite, test)
        uses_text = any(map(_reads_criteria, evaluators.values()))
        return TestDefinition(
            id=test.id,
            location=test.location,
            fingerprint=self._fingerprints.of(suite, test),
            agent=self._define_target(suite, agent),
            evaluators={
                path: self._evaluator(suite, path, evaluator, agent)
                for path, evaluator in evaluators.items()
            },
            gates=frozenset(gate.name for gate in test.gates),
            references={
                name: _json(value, suite.root)
                for name, value in references.items()
                if uses_text or name == "expected_output"
            },
            has_program=any(one.type == "code_judge" for one in evaluators.values()),
        )

    def _evaluator(
        self, suite: Suite, path: str, evaluator: Evaluator, agent: Target | None
    ) -> EvaluatorDefinition:
        options = evaluator.options
        judge = self._fingerprints.judge(suite, evaluator, agent)
        fields = {
            "type": evaluator.type,
            "required": evaluator.threshold or False,
            "negate": evaluator.negate,
            "weight": evaluator.weight,
            "config": dict(evaluator.config),
            **options.model_dump(exclude={options.children_field}),
        }
        named = {
            file.path: self._fingerprints.content(suite.root / file.path)
            for file in evaluator.files
        }
        return EvaluatorDefinition(
            path=path,
            fields={name: _json(value, suite.root) for name, value in fields.items()},
            files={**named, **self._fingerprints.imports(suite, evaluator)},
            location=evaluator.location,
            judge=self._define_target(suite, judge),
        )

    def _define_target(self, suite: Suite, target: Target | None) -> TargetDefinition | None:
        if target is None:
            return None
        values = self._fingerprints.values(suite, target.definition)
        fields = {
            **{name: value for name, value in target.definition.items() if name not in NAMING},
            **{f"${{{{ {name} }}}}": value for name, value in values.items()},
        }
        return TargetDefinition(
            target.name,
            target.provider,
            {name: _json(value, suite.root) for name, value in fields.items()},
            target.location,
        )


def _absolute_files(suite: Suite, evaluator: Evaluator) -> tuple[Path, ...]:
    return tuple(suite.root / file.path for file in evaluator.files)


def _walk(evaluators: Sequence[Evaluator], above: str = "") -> Iterator[tuple[str, Evaluator]]:
    """Evaluators and all inside them with their paths, in suite order."""
    for evaluator in evaluators:
        path = f"{above}{evaluator.name}"
        yield path, evaluator
        yield from _walk(evaluator.options.children(), f"{path}/")


def _reads_criteria(evaluator: Evaluator) -> bool:
    """Whether an evaluator reads the criteria and the note of a test: a model or a program does."""
    options = evaluator.options
    return not options.deterministic or options.needs_judge()


def _json(value: Any, root: Path) -> str:
    """A value as JSON, the same in every folder."""

    def plain(value: object) -> Any:
        if isinstance(value, PurePath):
            return value.relative_to(root).as_posix() if value.is_relative_to(root) else value.name
        if isinstance(value, Mapping):
            return dict(value)
        return sorted(value, key=repr) if isinstance(value, set | frozenset) else repr(value)

    return json.dumps(value, sort_keys=True, default=plain, ensure_ascii=False)
