"""The plan of a run: the tests that can run, the suites that run on head and base, and the part of
a shard."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted, distinct, list_paths, plural
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import Quarantines
from agentevals_action.model.run import Selection, Shard
from agentevals_action.model.skill import name_suite
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.results.shards import reduce_suite, select_part
from agentevals_action.review.inputs.base_tree import Base
from agentevals_action.review.inputs.changed_files import Head
from agentevals_action.review.inputs.request import LocalRun, ReviewRequest, Suites
from agentevals_action.review.inputs.selection import SelectedSuites
from agentevals_action.suites.target_use import undeclared_target
from agentevals_action.suites.variants import undecidable_conditions
from agentevals_action.targets.variables import Variables, missing_error


@dataclass(frozen=True)
class Plan:
    """What runs: the suites of head by path with the reasons, and the same suites on base by their
    path on head. `missing` are diagnostics of suites that cannot run."""

    selections: tuple[Selection, ...]
    head: Mapping[str, Suite]
    base: Mapping[str, Suite]
    missing: tuple[Diagnostic, ...]

    @property
    def arms(self) -> tuple[Suite, ...]:
        """The suites of head in each of their variants."""
        return tuple(arm for suite in self.head.values() for arm in suite.arms)


def find_plan(
    selected: SelectedSuites,
    suites: Suites,
    base: Base,
    request: ReviewRequest,
    variables: Variables,
) -> Plan:
    """The selected suites that can run. A suite whose targets need an unset variable cannot run,
    unless the job has no secrets: then its tests end in errors."""
    by_path = {suite.path: suite for suite in suites if isinstance(suite, Suite)}
    on_base = {suite.path: suite for suite in base.suites if isinstance(suite, Suite)}
    missing = {
        selection.path: _target_errors(by_path[selection.path], request, variables)
        for selection in (() if request.job.without_secrets else selected.selections)
    }
    ready = tuple(selection for selection in selected.selections if not missing.get(selection.path))
    base_paths = {selection.path: selection.base_path or selection.path for selection in ready}
    return Plan(
        ready,
        {path: by_path[path] for path in base_paths},
        {path: on_base[there] for path, there in base_paths.items() if there in on_base},
        distinct(missing.values()),
    )


def _target_errors(
    suite: Suite, request: ReviewRequest, variables: Variables
) -> tuple[Diagnostic, ...]:
    """A diagnostic for each target that the suite uses and that is not declared, or needs an unset
    variable, and for each condition that cannot be decided. A replay needs no variable."""
    set_variables = variables(suite.root, suite.folder)
    undeclared = undeclared_target(suite)
    diagnostics = [undeclared] if undeclared else []
    diagnostics += undecidable_conditions(suite, request.settings)
    for target in (suite.targets.targets[name] for name in suite.used_targets):
        names = [name for name in target.variables if name not in set_variables]
        if names and request.cache != "replay":
            problem = f"the target `{target.name}` needs {', '.join(names)}"
            problem = f"{problem}, which {'is' if len(names) == 1 else 'are'} not set"
            diagnostics.append(Diagnostic(target.location, problem, missing_error(names).hint))
    return tuple(diagnostics)


def select_tests(run: LocalRun, plan: Plan, quarantines: Quarantines) -> Plan:
    """The tests that the command `run` selects. InvalidInput if a target or the quarantine cannot
    be used."""
    if plan.missing:
        errors = tuple(map(str, plan.missing))
        raise InvalidInput("targets cannot be used, nothing was run", errors=errors)
    if quarantines.errors:
        errors = tuple(map(str, quarantines.errors))
        number = counted(len(errors), "error")
        raise InvalidInput(f"{number} in the quarantine, nothing was run", errors=errors)
    head = {suite.path: suite for suite in run.select(tuple(plan.head.values()))}
    selections = tuple(selection for selection in plan.selections if selection.path in head)
    return replace(plan, selections=selections, head=head)


def part_of_shard(plan: Plan, shard: Shard) -> Plan:
    """The tests of a shard, and the suites that have some of them."""
    sides = (plan.head, plan.base)
    tests = {
        path: tuple(test for side in sides if path in side for test in side[path].tests)
        for path in plan.head
    }
    names = select_part(tests, shard)

    def reduced(suites: Mapping[str, Suite]) -> Mapping[str, Suite]:
        return {
            path: reduce_suite(suite, names[path], shard.total)
            for path, suite in suites.items()
            if path in names
        }

    return replace(
        plan,
        selections=tuple(selection for selection in plan.selections if selection.path in names),
        head=reduced(plan.head),
        base=reduced(plan.base),
    )


def leave_out_unusable(head: Head, base: Base, *, has_base: bool) -> tuple[Head, Base]:
    """Both sides without the tests whose files are missing, and a notice about the tests of head. A
    test of head whose files base has, or may have, stays: it ends in an error."""
    kept, left_out = _split(head.suites, base.root)
    if not kept or (has_base and base.root is None):
        return head, base
    on_base, _ = _split(base.suites, None)
    has = plural(len(left_out), "needs", "need")
    notice = (
        f"{counted(len(left_out), 'test')} {has} files that the repository does not have, and did "
        f"not run: {list_paths(left_out)}; add the files, or correct `files`"
    )
    head = replace(head, suites=kept, notice=notice if left_out else "")
    return head, replace(base, suites=tuple(on_base))


def _split(suites: Suites, other: Path | None) -> tuple[Suites, Sequence[str]]:
    """The suites with the tests that can run, or could in the tree `other`, and the other tests."""
    kept, left_out = list[Suite | BrokenSuite](), list[str]()
    for suite in suites:
        lost: dict[str, list[str]] = {}
        for test in suite.tests if isinstance(suite, Suite) else ():
            if missing := list(_missing(test, other)):
                lost[test.id] = missing
        left_out += [
            f"{name_suite(suite.path)}: {test} ({', '.join(files)})" for test, files in lost.items()
        ]
        if not lost or isinstance(suite, BrokenSuite):
            kept.append(suite)
        elif tests := [test for test in suite.tests if test.id not in lost]:
            kept.append(suite.with_tests(tests))
    return kept, left_out


def _missing(test: Test, other: Path | None) -> Iterator[str]:
    for fixture in test.fixtures:
        if fixture.source is None and not (other and fixture.exists_in(other)):
            yield fixture.name
