"""Runs the suites of head, and those of base that have no stored results."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime

from agentevals_action.baselines.stored import describe_origin
from agentevals_action.errors import OutputError
from agentevals_action.execution.executor import (
    Emit,
    Event,
    SuiteExecutor,
    SuiteResults,
    run_at_once,
)
from agentevals_action.model.baseline import BaseResults, BaseSuite
from agentevals_action.model.path_patterns import selected_name
from agentevals_action.model.result import SKIPPED, ErrorInfo, Key, TestResult
from agentevals_action.model.run import Level, Run, notes
from agentevals_action.model.suite import Suite
from agentevals_action.reports.terminal.progress import Progress
from agentevals_action.results.jsonl import ResultsWriter
from agentevals_action.review.inputs.inputs import ReviewInputs
from agentevals_action.review.inputs.notices import unmatched_globs
from agentevals_action.runners.executor import Executors

#: Results by the suite's path on head and the test's id.
Rows = Mapping[Key, TestResult]


async def run_head(
    inputs: ReviewInputs, executors: Executors, progress: Progress
) -> Mapping[str, SuiteResults]:
    """The results of the suites of head by path, apart from those that an earlier run has. Each
    result is added to the results file as soon as it is known."""
    side = "tests" if inputs.request.run else "head"  # `run` has one side
    writer = _open_writer(inputs)

    def emit(event: Event) -> None:
        if writer and isinstance(event, TestResult):
            with suppress(OutputError):  # all rows are written at the end
                writer.add(event)
        progress.handle(side, event)

    kept = by_suite(inputs.kept)
    with closing(writer) if writer else nullcontext():
        suites = inputs.part.head
        return await run_at_once(
            lambda path: executors.of(suites[path]).run(emit, kept.get(path, ())), suites
        )


def head_rows(
    inputs: ReviewInputs, executors: Executors, results: Mapping[str, SuiteResults], base: Rows
) -> Rows:
    """The results of head, in the order of the suites and their tests."""
    by_key: dict[Key, TestResult] = {}
    globs = inputs.request.run.globs if inputs.request.run else ()
    kept, on_base = by_suite(inputs.kept), by_suite(base)
    for path, suite in inputs.part.head.items():
        executor, rows = executors.of(suite), results[path].rows
        if executor.tests is None:
            known_later = _known_later(executor, results[path], globs, on_base.get(path, {}))
            by_key |= {row.key: row for row in known_later}
        else:
            by_id = {**{row.eval_id: row for row in rows}, **kept.get(path, {})}
            by_key |= {(path, name): by_id[name] for name in executor.tests}
    return by_key


def by_suite(rows: Rows) -> Mapping[str, Mapping[str, TestResult]]:
    """Results by the suite's path on head, and then by the test's id."""
    by_path: defaultdict[str, dict[str, TestResult]] = defaultdict(dict)
    for (path, name), row in rows.items():
        by_path[path][name] = row
    return by_path


def _known_later(
    executor: SuiteExecutor,
    results: SuiteResults,
    globs: Sequence[str],
    base: Mapping[str, TestResult],
) -> Iterator[TestResult]:
    """The results of a suite whose tests are known only when it has run, for ids that match one of
    the `globs` (empty: all). If the suite ends in an error, each test of base has this error: no
    test was deleted. A required test that base scored and that skipped itself on head could not be
    scored."""
    if results.error:
        error = next(row.error for row in results.rows if row.error)
        names = list(base)
        yield from [executor.error_row(name, error) for name in names] or results.rows
        return
    for row in results.rows:
        if not globs:
            yield row
        elif selected_name(row.eval_id, globs):
            # Without fingerprints, a part of a suite is never taken for all of it.
            yield replace(row, fingerprint=None)
    for name, reason in results.skipped.items():
        on_base = base.get(name)
        if on_base and on_base.gates and on_base.verdict:
            problem = f"this required test skipped itself, and base scored it: {reason}"
            yield executor.error_row(name, ErrorInfo(kind=SKIPPED, message=problem))


async def run_base(
    inputs: ReviewInputs, executors: Executors, stored: BaseResults, progress: Progress
) -> BaseResults:
    """Base's results; suites without stored results run on base now."""
    paths = [
        path
        for path, suite in stored.suites.items()
        if not (suite.origin or suite.is_new or suite.broken)
    ]
    can_run = inputs.base.sha and inputs.request.settings.baseline in ("auto", "rerun")
    if not paths or not can_run:
        return _with_common_facts(stored)

    def emit(event: Event) -> None:
        progress.handle("base", event)

    results = await run_at_once(
        lambda path: _run_suite_of_base(inputs, executors, path, stored.info.commit, emit), paths
    )
    suites, rows = dict(stored.suites), dict(stored.rows)
    for path, suite_and_rows in results.items():
        suites[path], rows[path] = suite_and_rows
    return _with_common_facts(replace(stored, suites=suites, rows=rows))


async def _run_suite_of_base(
    inputs: ReviewInputs, executors: Executors, path: str, commit: str | None, emit: Emit
) -> tuple[BaseSuite, tuple[TestResult, ...]]:
    """Base's results of a suite, without the tests that ask the same service as head: they run only
    as turns of their conversation."""
    shared = same_service(inputs, path)
    results = await executors.of(inputs.part.base[path]).run(emit, shared)
    suite = BaseSuite(same_service=tuple(sorted(shared)))
    if results.error:
        return replace(suite, problem=f"on base, {results.error.sentence}"), ()
    origin = describe_origin("rerun", results.rows, commit) if results.rows else None
    return replace(suite, origin=origin), results.rows


def same_service(inputs: ReviewInputs, path: str) -> frozenset[str]:
    """The ids of the tests of a suite of base that would ask the same service as head. In a replay
    no service is asked."""
    if inputs.request.cache == "replay":
        return frozenset()
    head, base = inputs.part.head[path], inputs.part.base[path]
    on_head = {test.id: test for test in head.tests}
    return frozenset(
        test.id
        for test in base.tests
        if (of_head := on_head.get(test.id))
        and inputs.fingerprints.ask_same_service(head, of_head, base, test)
    )


def base_rows(base: BaseResults, executors: Executors, suites: Mapping[str, Suite]) -> Rows:
    """The results of base of the tests of these suites."""
    kept: dict[Key, TestResult] = {}
    for path, rows in base.rows.items():
        tests = executors.of(suites[path]).tests
        names = None if tests is None else frozenset(tests)
        kept |= {(path, row.eval_id): row for row in rows if names is None or row.eval_id in names}
    return kept


def completed_facts(
    inputs: ReviewInputs, head: Rows, base: BaseResults, notices: Iterable[str]
) -> Run:
    """The facts of a completed run, with the tests that are known only now, the facts of base's
    results, and the `notices`."""
    facts = inputs.facts
    if inputs.request.is_of_all_tests:
        unmatched = unmatched_globs(inputs.suites, facts.quarantines.head, by_suite(head))
        notices = (*notices, *map(str, unmatched))
    duration = datetime.now(UTC) - datetime.fromisoformat(facts.time)
    stored = {(*row.key, row.variant) for row in base.variants}
    unknown = BaseSuite(problem=base.info.problem if base.info.wanted else "")
    suites = [
        replace(
            suite,
            tests=suite.tests or tuple(name for path, name in head if path == suite.path),
            base=base.suites.get(suite.path, unknown),
            variants=tuple(
                replace(
                    run_variant,
                    stored=tuple(
                        name
                        for name in run_variant.tests
                        if (suite.path, name, run_variant.variant.name) in stored
                    ),
                )
                for run_variant in suite.variants
            ),
        )
        for suite in facts.suites
    ]
    return facts.model_copy(
        update={
            "suites": tuple(suites),
            "baseline": base.info,
            "notes": (*facts.notes, *notes(Level.NOTICE, notices)),
            "duration_ms": duration.total_seconds() * 1000,
        }
    )


def _open_writer(inputs: ReviewInputs) -> ResultsWriter | None:
    """The writer of the results file; None if a review cannot write the file, which is reported at
    the end; the command `run` raises OutputError."""
    request = inputs.request
    try:
        return ResultsWriter(request.results_file, inputs.kept.values())
    except OutputError:
        if request.run:
            raise
        return None


def _with_common_facts(base: BaseResults) -> BaseResults:
    """The results, whose baseline has the source or the problem that all suites share."""
    sources = {suite.origin.source for suite in base.suites.values() if suite.origin}
    if len(sources) == 1:
        return replace(base, info=replace(base.info, source=sources.pop()))
    problems = {suite.problem for suite in base.suites.values()}
    if len(problems) == 1 and "" not in problems:
        info = replace(base.info, problem=problems.pop())
        return replace(base, info=info, suites={}, rows={})
    return base
