"""What a run that a maintainer requests changes: the suites and tests that it has, and whose
evaluators, targets and hooks apply to the pull request's questions."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from agentevals_action.errors import InvalidInput
from agentevals_action.evaluators.base import walk
from agentevals_action.evaluators.code_judge.evaluator import CodeJudge
from agentevals_action.execution.conversations import select_tests
from agentevals_action.formatting import joined, list_paths
from agentevals_action.github.events import Part
from agentevals_action.model.suite import BrokenSuite, Hook, Suite, Test, Workspace
from agentevals_action.model.target import TargetTable
from agentevals_action.review.change.selection import SelectedSuites

REQUESTED = "a maintainer requested this run"
_ADVICE = "read them, then set the input `trust-head: true` for the run, or merge them first"


def select_part(
    suites: Iterable[Suite | BrokenSuite], part: Part
) -> tuple[Suite | BrokenSuite, ...]:
    """The suites that a request names, with its tests alone."""
    named = [one for one in suites if not part.suites or _is_named(one, part.suites)]
    if not part.tests:
        return tuple(named)

    def is_selected(test: Test) -> bool:
        return any(fnmatchcase(test.id, glob) for glob in part.tests)

    found: list[Suite | BrokenSuite] = []
    for suite in named:
        if isinstance(suite, BrokenSuite):
            found.append(suite)
        elif tests := select_tests(suite, is_selected):
            found.append(replace(suite, tests=tests))
    return tuple(found)


def require_part(suites: Sequence[Suite | BrokenSuite], part: Part) -> None:
    """InvalidInput if a request selects nothing, or names a suite that does not exist. `suites` are
    those that it selects."""
    unknown = [name for name in part.suites if not any(_is_named(one, [name]) for one in suites)]
    if unknown:
        names = joined([f"`{name}`" for name in unknown])
        advice = "name the path of a suite, or of a folder with suites"
        raise InvalidInput(f"the request names {names}, where no selected suite is", advice)
    if not suites:
        raise InvalidInput("the request selects no test", "correct `--test`, or leave it out")


def _is_named(suite: Suite | BrokenSuite, names: Sequence[str]) -> bool:
    paths = [name.strip("/").removeprefix("./") for name in names]
    return any(suite.path == path or suite.path.startswith(f"{path}/") for path in paths)


def describe_left_out(affected: SelectedSuites, selected: SelectedSuites, part: Part) -> str:
    """What a request leaves out of the suites that the change affects, as a reason; else empty."""
    left = {one.path for one in affected.selections} - {one.path for one in selected.selections}
    if left:
        return f"the request leaves out {list_paths(sorted(left))}, which the change affects"
    return "the request selects tests by `--test`, and may leave out others" if part.tests else ""


def apply_base(
    suites: Sequence[Suite | BrokenSuite],
    base: Sequence[Suite | BrokenSuite],
    selected: SelectedSuites,
    digest: Callable[[Path], str],
) -> tuple[Suite | BrokenSuite, ...]:
    """The selected suites of head, scored by those of base (see `BaseScoring`), and the others."""
    scoring = BaseRules(base, digest)
    on_base = {one.path: one for one in base if isinstance(one, Suite)}
    base_paths = {one.path: one.base_path or one.path for one in selected.selections}
    return tuple(
        scoring.apply(suite, on_base.get(base_paths[suite.path]))
        if isinstance(suite, Suite) and suite.path in base_paths
        else suite
        for suite in suites
    )


class BaseRules:
    """Applies base's evaluators, references, targets and hooks to suites of head.

    Attack: a pull request makes its own judge pass everything, or a judge, a hook or a target of it
    spends or sends away what the requested run gives it. `digest` gives the content of a file."""

    def __init__(self, base: Iterable[Suite | BrokenSuite], digest: Callable[[Path], str]) -> None:
        self._digest = digest
        self._tables = {one.targets.path: one.targets for one in base}

    def apply(self, head: Suite, base: Suite | None) -> Suite:
        """A suite with head's questions, scored by base's suite. A test that base cannot score has
        a `problem`."""
        table = base.targets if base else self._tables.get(head.targets.path)
        known = {test.id: test for test in base.tests} if base else {}
        tests = tuple(
            self._test(head, test, base, known.get(test.id), table) for test in head.tests
        )
        names = {name for one in (head, base) if one for name in one.used_targets}
        table = table or TargetTable()
        return replace(
            head,
            tests=tests,
            targets=table,
            used_targets=tuple(sorted(names & table.targets.keys())),
            default_target=base.default_target if base else head.default_target,
            timeout_seconds=base.timeout_seconds if base else head.timeout_seconds,
        )

    def _test(
        self,
        head: Suite,
        test: Test,
        base: Suite | None,
        before: Test | None,
        table: TargetTable | None,
    ) -> Test:
        problem = test.problem or self._problem(head, test, base, before, table)
        if before is None:
            return replace(test, problem=problem)
        return replace(
            before,
            location=test.location,
            input=test.input,
            description=test.description,
            conversation_id=test.conversation_id,
            metadata=test.metadata,
            files=test.files,
            workspace=test.workspace,
            problem=problem,
            scorer=base,
        )

    def _problem(
        self,
        head: Suite,
        test: Test,
        base: Suite | None,
        before: Test | None,
        table: TargetTable | None,
    ) -> str:
        """The reason why the test cannot run without programs or targets that are head's alone."""
        if table is None:
            return f"base has no targets file `{head.targets.path}` for this suite; {_ADVICE}"
        evaluators = () if before else [one for each in test.evaluators for one in walk(each)]
        if names := [one.name for one in evaluators if isinstance(one.options, CodeJudge)]:
            listed = joined([f"`{name}`" for name in names])
            return (
                f"base has no such test, and {listed} would run programs of the change; {_ADVICE}"
            )
        own = self._hooks(head, test.workspace)
        if own != (self._hooks(base, before.workspace) if base and before else (None,) * len(own)):
            return f"the hooks of its workspace are not those of base; {_ADVICE}"
        return ""

    def _hooks(
        self, suite: Suite, workspace: Workspace | None
    ) -> tuple[tuple[object, Mapping[str, str]] | None, ...]:
        """What the hooks of a workspace run, the same in every folder."""
        found: tuple[Hook | None, ...] = (None,) * 4
        if workspace:
            found = (
                workspace.before_all,
                workspace.before_each,
                workspace.after_each,
                workspace.after_all,
            )
        return tuple(
            (
                (hook.command, os.path.relpath(hook.cwd, suite.root), hook.timeout_seconds),
                {file.path: self._digest(suite.root / file.path) for file in hook.files},
            )
            if hook
            else None
            for hook in found
        )
