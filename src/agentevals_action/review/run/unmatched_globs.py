"""Globs over tests that match no test: of the quarantine, and of the gates of runners."""

from collections.abc import Iterator, Sequence

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.path_patterns import selected, selected_name
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.inputs.inputs import ReviewInputs
from agentevals_action.review.run.head_and_base import Rows, by_suite
from agentevals_action.runners.suites import gate_globs


def unmatched_globs(inputs: ReviewInputs, head: Rows) -> Iterator[Diagnostic]:
    """A warning for each glob of gates or of the quarantine that no test matches. Not where tests
    are unknown that it may match: those of other jobs, of a broken suite, and of a suite that did
    not run, or ended in an error, whose tests are known when it has run."""
    run, folder = inputs.request.run, inputs.request.settings.working_directory
    if folder != "." or (run and (run.paths or run.globs)):
        return
    rows = by_suite(head)
    names = {
        suite.path: _names(suite, tuple(rows.get(suite.path, {}).values()))
        for suite in inputs.suites
    }
    valid = [suite for suite in inputs.suites if isinstance(suite, Suite)]
    declared: list[tuple[Location, Sequence[str], str, Sequence[str]]] = [*gate_globs(valid)]
    for entry in inputs.facts.quarantines.head:
        meant = [path for path in names if not entry.suites or selected(path, entry.suites)]
        declared.append((entry.location, entry.tests, "in quarantine", meant))
    for location, globs, role, paths in declared:
        known = [own for own in (names[path] for path in paths) if own is not None]
        for glob in globs if len(known) == len(paths) else ():
            matched = any(selected_name(name, [glob]) for own in known for name in own)
            if not glob.startswith("!") and not matched:
                problem = f"no test matches `{glob}`, which is {role}"
                yield Diagnostic(location, problem, "correct it")


def _names(suite: Suite | BrokenSuite, rows: Sequence[TestResult]) -> Sequence[str] | None:
    """The ids of the tests of a suite with these results; None if they are unknown."""
    if isinstance(suite, BrokenSuite):
        return None
    if suite.tests:
        return [test.id for test in suite.tests]
    is_known = rows and not any(row.error for row in rows)
    return [row.eval_id for row in rows] if is_known else None
