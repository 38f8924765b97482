"""Runs the variants of head that have no stored results, and samples both arms again where the
suite as declared is worse and must not be."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from agentevals_action.errors import AttemptError
from agentevals_action.execution.executor import run_at_once
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.model.trace import total_spending
from agentevals_action.reports.terminal.progress import Progress
from agentevals_action.results.build import extended
from agentevals_action.review.comparison.variants import compare_variant
from agentevals_action.review.inputs.inputs import ReviewInputs
from agentevals_action.review.run.head_and_base import Rows, by_suite
from agentevals_action.runners.executor import Executors


async def run_variants(
    inputs: ReviewInputs,
    executors: Executors,
    stored: Sequence[TestResult],
    head: Rows,
    progress: Progress,
) -> tuple[TestResult, ...]:
    """The results of the variants, in the order of their suites: those that are `stored`, and those
    that run now; with the fresh samples of a confirmation."""
    arms, declared = inputs.part.arms, by_suite(head)
    results = await run_at_once(
        lambda number: _run(arms[number], executors, stored, progress), range(len(arms))
    )
    rows_of_all: list[TestResult] = []
    for number, rows in results.items():
        arm = arms[number]
        suspects = _find_suspects(inputs, arm, declared.get(arm.path, {}), rows)
        fresh = await _sample_again(inputs, executors, arm, suspects, rows, progress)
        rows_of_all += {**rows, **fresh}.values()
    return tuple(rows_of_all)


async def _run(
    arm: Suite, executors: Executors, stored: Sequence[TestResult], progress: Progress
) -> Mapping[str, TestResult]:
    """The results of a variant by test id."""
    of_arm = (row for row in stored if (row.eval_path, row.variant) == (arm.path, arm.variant))
    rows = {row.eval_id: row for row in of_arm}
    if any(test.id not in rows for test in arm.tests):
        results = await executors.of(arm).run(partial(progress.handle, arm.variant), rows)
        rows |= {row.eval_id: row for row in results.rows}
    return {test.id: rows[test.id] for test in arm.tests}


def _find_suspects(
    inputs: ReviewInputs, arm: Suite, head: Mapping[str, TestResult], rows: Mapping[str, TestResult]
) -> Sequence[str]:
    """The ids of the tests to sample again in both arms: all that are scored in both, or none."""
    settings = inputs.request.settings
    suite = next(suite for suite in inputs.facts.suites if suite.path == arm.path)
    run = next(run for run in suite.variants if run.variant.name == arm.variant)
    compared = compare_variant(run, head, rows, settings.alpha)
    if not settings.confirm or not compared.needs_confirmation(is_part=bool(settings.shard)):
        return ()
    return [test.id for test in compared.tests if test.passes is not None]


async def _sample_again(
    inputs: ReviewInputs,
    executors: Executors,
    arm: Suite,
    tests: Sequence[str],
    rows: Mapping[str, TestResult],
    progress: Progress,
) -> Mapping[str, TestResult]:
    """The results of these tests with fresh samples of both arms, and what they cost."""
    count, settled = inputs.request.settings.confirm, 0
    sides = executors.of(inputs.part.head[arm.path]), executors.of(arm)
    subject = f"in both arms of `{arm.variant}`"

    async def sample(name: str) -> TestResult:
        nonlocal settled
        taken: list[Sequence[SampleResult]] = []
        problem = ""
        try:
            taken = [await side.sample(name, count) for side in sides]
        except AttemptError as error:
            problem = error.sentence
        errors = (sample.error for samples in taken for sample in samples)
        problem = problem or next((error.message for error in errors if error), "")
        settled += 1
        progress.confirm(len(tests), settled, 2 * count * settled, subject)
        declared, fresh = taken if len(taken) == len(sides) else ((), ())
        row = extended(rows[name], fresh, problem)
        spent = total_spending((row.spent, *(sample.spent for sample in declared)))
        return replace(row, declared=tuple(declared), spent=spent)

    if tests:
        progress.confirm(len(tests), 0, 0, subject)
    return await run_at_once(sample, tests)
