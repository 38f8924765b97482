"""Runs the suites of other runners on head and base, those of a side one after another: each runner
has a concurrency of its own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from agentevals_action.baselines.stored import origin_of
from agentevals_action.errors import AttemptError
from agentevals_action.formatting import list_paths
from agentevals_action.model.baseline import BaseSuite
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.path_patterns import selected, selected_name
from agentevals_action.model.result import SKIPPED, ErrorInfo, Key, TestResult
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.reports.progress import Progress
from agentevals_action.review.inputs import ReviewInputs
from agentevals_action.runners.program import RunnerPrograms
from agentevals_action.runners.rows import error_row


async def run_on_head(
    programs: RunnerPrograms,
    suites: Iterable[Suite],
    globs: Sequence[str],
    side: str,
    progress: Progress,
) -> Mapping[str, Sequence[TestResult]]:
    """The results of suites by path, of the tests whose ids match one of the `globs` (empty: all).
    A suite whose runner ends in an error has one row, which is that error."""
    found: dict[str, Sequence[TestResult]] = {}
    for suite in suites:
        try:
            rows = await _run(programs, suite, side, progress)
        except AttemptError as error:
            found[suite.path] = [_error_of_suite(suite, error)]
            progress.found(side, found[suite.path])
            continue
        if globs:  # without fingerprints, a part of a suite is never taken for all of it
            chosen = (row for row in rows if selected_name(row.eval_id, globs))
            rows = tuple(replace(row, fingerprint=None) for row in chosen)
        found[suite.path] = rows
    return found


async def run_on_base(
    programs: RunnerPrograms, suites: Mapping[str, Suite], commit: str | None, progress: Progress
) -> Mapping[str, BaseSuite]:
    """Base's results of suites, by their path on head."""
    found = {}
    for path, suite in suites.items():
        try:
            rows = await _run(programs, suite, "base", progress)
        except AttemptError as error:
            found[path] = BaseSuite(problem=f"on base, {error.sentence}")
        else:
            found[path] = BaseSuite(rows, origin_of("rerun", rows, commit))
    return found


def with_errors(
    programs: RunnerPrograms,
    head: Mapping[Key, TestResult],
    base: Mapping[Key, TestResult],
    suites: Mapping[str, Suite],
) -> Mapping[Key, TestResult]:
    """The results of head, with the error of a runner as that of each test that base has: no test
    was deleted. A required test that base scored and that skipped itself on head could not be
    scored."""
    found = dict(head)
    for path, suite in suites.items():
        row = head.get((path, _id_of_error(suite)))
        is_alone = sum(suite_path == path for suite_path, _ in head) == 1
        names = [name for suite_path, name in base if suite_path == path]
        if row and row.error and is_alone and suite.runner and names:
            del found[row.key]
            found |= {(path, name): error_row(suite, name, row.error) for name in names}
        skipped = programs.of(suite).skipped if suite.runner else {}
        for name, reason in skipped.items():
            before = base.get((path, name))
            if before and before.gates and before.verdict:
                problem = f"this required test skipped itself, and base scored it: {reason}"
                info = ErrorInfo(kind=SKIPPED, message=problem)
                found[path, name] = error_row(suite, name, info)
    return found


def unmatched_globs(inputs: ReviewInputs, head: Mapping[Key, TestResult]) -> Iterator[Diagnostic]:
    """A warning for each glob of gates or of the quarantine that no test matches. Not where tests
    are unknown that it may match: those of other jobs, of a broken suite, and of a runner's suite
    that did not run, or ended in an error."""
    run, folder = inputs.request.run, inputs.request.settings.working_directory
    if folder != "." or (run and (run.paths or run.globs)):
        return
    rows: dict[str, list[TestResult]] = {}
    for (path, _), row in head.items():
        rows.setdefault(path, []).append(row)
    names = {suite.path: _names(suite, rows.get(suite.path, ())) for suite in inputs.suites}
    of_runners = [each for each in inputs.suites if isinstance(each, Suite) and each.runner]
    runners = {each.runner.location: each.runner for each in of_runners if each.runner}
    declared = []
    for runner in runners.values():
        paths = [suite.path for suite in of_runners if suite.runner == runner]
        role = f"`required` of the runner `{runner.name}`"
        declared.append((runner.location, runner.required, role, paths))
    for entry in inputs.facts.quarantines.head:
        paths = [path for path in names if not entry.suites or selected(path, entry.suites)]
        declared.append((entry.location, entry.tests, "in quarantine", paths))
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
    if not suite.runner:
        return [test.id for test in suite.tests]
    is_known = rows and not any(row.error for row in rows)
    return [row.eval_id for row in rows] if is_known else None


def never_replayed(suites: Iterable[Suite], cache: str) -> Iterator[str]:
    """A sentence about the suites whose runners ask the agent although replies are replayed."""
    paths = [suite.path for suite in suites if suite.runner]
    if cache == "replay" and paths:
        yield f"nothing of {list_paths(paths)} is replayed or recorded: runners ask the agent"


async def _run(
    programs: RunnerPrograms, suite: Suite, side: str, progress: Progress
) -> tuple[TestResult, ...]:
    with progress.running(side, suite.path, _id_of_error(suite)):
        rows = await programs.of(suite).run()
    progress.found(side, rows)
    return rows


def _id_of_error(suite: Suite) -> str:
    """The id of the row of a suite that ended in an error: the name of its runner."""
    return suite.runner.name if suite.runner else suite.name


def _error_of_suite(suite: Suite, error: AttemptError) -> TestResult:
    info = ErrorInfo(kind=error.kind, message=error.sentence)
    return error_row(suite, _id_of_error(suite), info)
