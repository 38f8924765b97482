"""Runs the suites of head, and those of base that have no stored results."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime

from agentevals_action.baselines.stored import origin_of
from agentevals_action.errors import AttemptError, OutputError
from agentevals_action.execution.conversations import with_earlier_turns
from agentevals_action.execution.engine import Engine
from agentevals_action.execution.runner import Event
from agentevals_action.model.baseline import BaseResults, BaseSuite
from agentevals_action.model.result import Key, TestResult
from agentevals_action.model.run import Run
from agentevals_action.model.suite import Suite, Test
from agentevals_action.reports.progress import Progress
from agentevals_action.results.jsonl import ResultsWriter
from agentevals_action.review.inputs import ReviewInputs
from agentevals_action.review.runner_suites import run_on_base, run_on_head
from agentevals_action.runners.program import RunnerPrograms

#: Results by the suite's path on head and the test's id.
Rows = Mapping[Key, TestResult]


async def run_head(
    inputs: ReviewInputs, engine: Engine, programs: RunnerPrograms, progress: Progress
) -> Rows:
    """The results of the suites of head, apart from those that an earlier run has; each is added to
    the results file at once. If its tree cannot be prepared, all tests are errors."""
    kept = inputs.kept
    suites = [
        suite.with_tests(test for test in suite.tests if (suite.path, test.id) not in kept)
        for suite in inputs.part.head.values()
    ]
    side = "tests" if inputs.request.run else "head"  # `run` has one side
    writer = _open_writer(inputs)
    globs = inputs.request.run.globs if inputs.request.run else ()
    with closing(writer) if writer else nullcontext():
        async with asyncio.TaskGroup() as tasks:
            own = [suite for suite in suites if not suite.runner]
            running = tasks.create_task(_run(engine, own, side, progress, writer))
            others = [suite for suite in suites if suite.runner]
            of_runners = await run_on_head(programs, others, globs, side, progress)
    rows = {row.key: row for row in (*kept.values(), *running.result())}
    found: dict[Key, TestResult] = {}
    for suite in inputs.part.head.values():
        reported = of_runners.get(suite.path, [rows[suite.path, test.id] for test in suite.tests])
        found |= {row.key: row for row in reported}
    return found


async def run_base(
    inputs: ReviewInputs,
    engine: Engine,
    programs: RunnerPrograms,
    stored: BaseResults,
    progress: Progress,
) -> BaseResults:
    """Base's results, with those of the suites that have no stored ones, which run on base now."""
    suites = {
        path: inputs.part.base[path]
        for path, suite in stored.suites.items()
        if not (suite.origin or suite.is_new or suite.broken)
    }
    if not suites or inputs.request.settings.baseline not in ("auto", "rerun"):
        return _with_common_facts(stored)
    of_runners = {path: suite for path, suite in suites.items() if suite.runner}
    own = {path: suite for path, suite in suites.items() if path not in of_runners}
    commit = stored.info.commit
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(_run_own_base(inputs, engine, own, commit, progress))
        reported = await run_on_base(programs, of_runners, commit, progress)
    return _with_common_facts(_with_suites(stored, {**running.result(), **reported}))


async def _run_own_base(
    inputs: ReviewInputs,
    engine: Engine,
    suites: Mapping[str, Suite],
    commit: str | None,
    progress: Progress,
) -> Mapping[str, BaseSuite]:
    """Base's results of these suites, by their path on head."""
    shared = {path: _ask_same_service(inputs, path, suite) for path, suite in suites.items()}
    found = {path: BaseSuite(same_service=tuple(sorted(names))) for path, names in shared.items()}
    running = {}
    for path, suite in suites.items():
        if tests := _tests_to_run(suite, shared[path]):
            running[path] = suite.with_tests(tests)
    rows: Sequence[TestResult] = ()
    problem = ""
    if running:
        try:
            await engine.prepare(next(iter(running.values())).root)
        except AttemptError as error:
            problem = f"for the base, {error.sentence}"
        else:
            rows = await _run(engine, tuple(running.values()), "base", progress)
    for path, suite in running.items():
        own = tuple(
            row for row in rows if row.eval_path == suite.path and row.eval_id not in shared[path]
        )
        origin = origin_of("rerun", own, commit) if own else None
        found[path] = replace(found[path], rows=own, origin=origin, problem=problem)
    return found


def _ask_same_service(inputs: ReviewInputs, path: str, base: Suite) -> frozenset[str]:
    """The ids of the tests of a suite of base that would ask the same service as head. In a replay
    no service is asked."""
    if inputs.request.cache == "replay":
        return frozenset()
    head = inputs.part.head[path]
    on_head = {test.id: test for test in head.tests}
    return frozenset(
        test.id
        for test in base.tests
        if (now := on_head.get(test.id))
        and inputs.fingerprints.ask_same_service(head, now, base, test)
    )


def _tests_to_run(base: Suite, shared: Collection[str]) -> Sequence[Test]:
    """The tests without those that ask the same service (`shared`), apart from the earlier turns
    of others: these run for their conversation, and have no result."""
    return with_earlier_turns(base, lambda test: test.id not in shared)


def base_rows(base: BaseResults, suites: Mapping[str, Suite]) -> Rows:
    """The results of base, of the tests of these suites."""
    return {
        (path, row.eval_id): row
        for path, suite in base.suites.items()
        if suite.rows
        for names in [{test.id for test in suites[path].tests}]
        for row in suite.rows
        if row.eval_id in names or suites[path].runner
    }


def completed_facts(facts: Run, head: Rows, base: BaseResults, notices: Sequence[str]) -> Run:
    """The facts of a run that is done, with the tests that runners reported, those of base's
    results and its `notices`."""
    duration = datetime.now(UTC) - datetime.fromisoformat(facts.time)
    unknown = BaseSuite(problem=base.info.problem if base.info.wanted else "")
    suites = []
    for suite in facts.suites:
        known = base.suites.get(suite.path, unknown)
        suites.append(
            replace(
                suite,
                tests=suite.tests or tuple(name for path, name in head if path == suite.path),
                problem=known.problem,
                is_new=known.is_new,
                broken=known.broken,
                same_service=known.same_service,
                origin=known.origin,
            )
        )
    return facts.model_copy(
        update={
            "suites": tuple(suites),
            "baseline": base.info,
            "notices": (*facts.notices, *notices),
            "duration_ms": duration.total_seconds() * 1000,
        }
    )


def _open_writer(inputs: ReviewInputs) -> ResultsWriter | None:
    """The writer of the results file. A review does without it if the file cannot be written, which
    is reported at the end; `run` raises OutputError."""
    request = inputs.request
    try:
        return ResultsWriter(request.results_file, inputs.kept.values())
    except OutputError:
        if request.run:
            raise
        return None


async def _run(
    engine: Engine,
    suites: Sequence[Suite],
    side: str,
    progress: Progress,
    writer: ResultsWriter | None = None,
) -> Sequence[TestResult]:
    progress.expect(side, sum(len(suite.tests) for suite in suites))

    def on_event(event: Event) -> None:
        if event.result is None:
            progress.start(side, event.suite.path, event.test.id)
            return
        if writer:
            with suppress(OutputError):  # all rows are written at the end
                writer.add(event.result)
        progress.advance(side, event.result)

    return await engine.execute(suites, on_event)


def _with_suites(base: BaseResults, suites: Mapping[str, BaseSuite]) -> BaseResults:
    return replace(base, suites={**base.suites, **suites})


def _with_common_facts(base: BaseResults) -> BaseResults:
    """With the source or the problem that all suites share as that of the baseline."""
    sources = {suite.origin.source for suite in base.suites.values() if suite.origin}
    if len(sources) == 1:
        return replace(base, info=replace(base.info, source=sources.pop()))
    problems = {suite.problem for suite in base.suites.values()}
    if len(problems) == 1 and "" not in problems:
        return BaseResults(replace(base.info, problem=problems.pop()))
    return base
