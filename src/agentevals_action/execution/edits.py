"""What a change edits: the differences between the descriptions of head and of base.

A broken agent passes if the same change replaces its target or relaxes what scores it. Each such
edit is found by name, so that a report can list it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.runner_description import answering
from agentevals_action.execution.tests_description import TestsDescription
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.evaluator import Evaluator, evaluators_by_path
from agentevals_action.model.run import Edit, EditKind, SuiteEdits
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.targets.calls.description import digest

#: Parts of an evaluator's description that are edits of their own.
_OF_THEIR_OWN = ("judge", "evaluators")


@dataclass(frozen=True)
class _Side:
    """A test on head or on base, its suite, and the description of the suite."""

    described: TestsDescription
    suite: Suite
    test: Test

    @property
    def agent(self) -> Target | None:
        """The target that answers."""
        return self.suite.find_agent(self.test)

    def evaluator(self, evaluator: Evaluator, *, was_gate: bool) -> str:
        """The digest of an evaluator without what is an edit of its own."""
        described = self.described.evaluator(evaluator, self.agent)
        if was_gate:  # the report lists a removed gate, not its threshold
            described["threshold"] = None
        kept = {name: part for name, part in described.items() if name not in _OF_THEIR_OWN}
        kept["judges"] = max(len(evaluator.judge_names()), 1)
        return digest(kept, is_ordered=False)

    def target(self, target: Target, *, is_judge: bool) -> str:
        """The digest of a target's name and definition, and of its files if it judges: the agent's
        files are what is under test."""
        files = self.described.target_digest(target) if is_judge else ""
        return digest([target.name, self.described.target(target), files], is_ordered=False)

    def references(self) -> str:
        """The digest of what the evaluators compare an answer with."""
        references = self.described.references(self.test)
        evaluators = evaluators_by_path(self.test.evaluators).values()
        if all(evaluator.deterministic and not evaluator.needs_judge() for evaluator in evaluators):
            references = {"expected_output": references["expected_output"]}
        return digest(references, is_ordered=False)


def find_edits(fingerprints: Fingerprints, head: Suite, base: Suite) -> SuiteEdits:
    """The edits of a suite that both sides have: of the tests that both sides have, or, if a runner
    has the tests, of its files and its entry."""
    if head.program or base.program:
        return SuiteEdits(tuple(_edits_of_runner(fingerprints, head, base)))
    return _edits_of_tests(fingerprints, head, base)


def _edits_of_runner(fingerprints: Fingerprints, head: Suite, base: Suite) -> Iterator[Edit]:
    """The files that the command of the runner names and that grade, and its entry."""
    if head.program and base.program:
        files, on_base = (fingerprints.of_runner(side).graders for side in (head, base))
        for path, content in files.items():
            if on_base.get(path, content) != content:
                yield Edit(EditKind.EVALUATOR, path, "changed", Location(path))
    runner, entries = head.runner or base.runner, [answering(head), answering(base)]
    if runner and entries[0] != entries[1]:
        action = "changed" if all(entries) else "added" if entries[0] else "removed"
        yield Edit(EditKind.RUNNER, runner.name, action, runner.location)


def _edits_of_tests(fingerprints: Fingerprints, head: Suite, base: Suite) -> SuiteEdits:
    """The edits of the tests that both sides have, equal edits of several tests as one."""
    by_edit: dict[tuple[EditKind, str, str], tuple[Edit, dict[str, None]]] = {}
    rescored: set[str] = set()
    by_program: set[str] = set()
    tests_on_base = {test.id: test for test in base.tests}
    for test in head.tests:
        base_test = tests_on_base.get(test.id)
        if base_test is None:
            continue
        sides = (
            _Side(fingerprints.of_tests(suite), suite, on_side)
            for suite, on_side in ((head, test), (base, base_test))
        )
        for edit in _edits_of_test(*sides):
            by_edit.setdefault((edit.kind, edit.name, edit.action), (edit, {}))[1][test.id] = None
        on_head, on_base = fingerprints.of(head, test), fingerprints.of(base, base_test)
        if on_head.grading != on_base.grading and on_head.question == on_base.question:
            rescored.add(test.id)
            if any(
                evaluator.type == "code_judge"
                for evaluator in evaluators_by_path(base_test.evaluators).values()
            ):
                by_program.add(test.id)
    grouped = [replace(edit, tests=tuple(tests)) for edit, tests in by_edit.values()]
    grouped += _edits_of_variants(fingerprints, head, base)
    order = list(EditKind)
    return SuiteEdits(
        tuple(sorted(grouped, key=lambda edit: order.index(edit.kind))),
        frozenset(rescored),
        frozenset(by_program),
    )


def _edits_of_variants(fingerprints: Fingerprints, head: Suite, base: Suite) -> Iterator[Edit]:
    """The variants that one side has, or whose condition, skill or target differs."""
    on_head, on_base = (
        {
            variant.name: [
                variant.must,
                variant.skill,
                target and fingerprints.of_tests(suite).target(target),
            ]
            for variant in suite.variants
            for target in [suite.targets.get(variant.target)]
        }
        for suite in (head, base)
    )
    places = {variant.name: variant.location for variant in (*base.variants, *head.variants)}
    for name, location in places.items():
        if name not in on_base:
            yield Edit(EditKind.VARIANT, name, "added", location)
        elif name not in on_head:
            yield Edit(EditKind.VARIANT, name, "removed", location)
        elif on_head[name] != on_base[name]:
            yield Edit(EditKind.VARIANT, name, "changed", location)


def _edits_of_test(head: _Side, base: _Side) -> Iterator[Edit]:
    evaluators, on_base = (evaluators_by_path(side.test.evaluators) for side in (head, base))
    gates, base_gates = ({gate.name for gate in side.test.gates} for side in (head, base))
    for path, evaluator in {**on_base, **evaluators}.items():
        kind = EditKind.EVALUATOR
        if _is_part_of_gate(path, gates | base_gates):
            kind = EditKind.GATE
        above = path.rpartition("/")[0]
        if path in evaluators and path in on_base:
            base_evaluator, was_gate = on_base[path], path in base_gates - gates
            digest_of_head = head.evaluator(evaluator, was_gate=was_gate)
            if digest_of_head != base.evaluator(base_evaluator, was_gate=was_gate):
                yield Edit(kind, path, "changed", evaluator.location)
            judges = head.suite.find_judges(evaluator, head.agent)
            base_judges = base.suite.find_judges(base_evaluator, base.agent)
            for judge, base_judge in zip(judges, base_judges, strict=False):
                yield from _edits_of_target(head, judge, base, base_judge, is_judge=True)
        elif above and (above in evaluators) != (above in on_base):
            continue  # the evaluator around it is listed
        elif path in evaluators:
            yield Edit(kind, path, "added", evaluator.location)
        elif kind is EditKind.EVALUATOR:  # a removed gate is listed as such
            yield Edit(kind, path, "removed", evaluator.location)
    yield from _edits_of_target(head, head.agent, base, base.agent, is_judge=False)
    if head.references() != base.references():
        yield Edit(EditKind.TEST, head.test.id, "changed", head.test.location)


def _edits_of_target(
    head: _Side, target: Target | None, base: _Side, base_target: Target | None, *, is_judge: bool
) -> Iterator[Edit]:
    # A side may need no target, or its tests end in the error that there is none.
    if target is None or base_target is None:
        return
    if head.target(target, is_judge=is_judge) != base.target(base_target, is_judge=is_judge):
        yield Edit(EditKind.TARGET, target.name, "changed", target.location)


def _is_part_of_gate(path: str, gates: set[str]) -> bool:
    """Whether an evaluator is a gate, contains a gate, or is inside a gate."""
    return any(
        gate == path or gate.startswith(f"{path}/") or path.startswith(f"{gate}/") for gate in gates
    )
