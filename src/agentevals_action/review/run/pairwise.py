"""Compares the answers of head with those of base to the same questions, where a suite of head has
pairwise evaluators; and fresh answers of both, where head's are worse and must not be."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from agentevals_action.model.result import ErrorInfo, Key, SampleResult, TestResult
from agentevals_action.model.usage import total_spending
from agentevals_action.reports.terminal.progress import Progress
from agentevals_action.review.comparison.pairwise import find_comparisons, needs_confirmation
from agentevals_action.review.comparison.waivers import find_quarantine
from agentevals_action.review.inputs.inputs import ReviewInputs
from agentevals_action.review.run.confirmation import Sampler, with_both
from agentevals_action.review.run.head_and_base import Rows, by_suite
from agentevals_action.runners.executor import Executors


async def compare_answers(
    inputs: ReviewInputs, executors: Executors, head: Rows, base: Rows, progress: Progress
) -> Rows:
    """The results of head, with the comparisons of their answers and what these cost."""
    suites, done = inputs.part.head, 0
    pairs = {
        key: (now, before)
        for path, suite in suites.items()
        for test in suite.tests
        if test.comparing and (key := (path, test.id)) in base
        if _ask_the_same(head[key], base[key])
        if (now := _first_answer(head[key])) and (before := _first_answer(base[key]))
    }

    async def compare(key: Key) -> TestResult:
        nonlocal done
        pair = await executors.of(suites[key[0]]).compare(key[1], pairs[key])
        done += 1
        progress.count("pairs of answers", done, len(pairs))
        spent = total_spending((head[key].spent, pair.spent))
        return replace(head[key], pairs=(pair,), spent=spent)

    async with asyncio.TaskGroup() as tasks:
        running = {key: tasks.create_task(compare(key)) for key in pairs}
    return {**head, **{key: task.result() for key, task in running.items()}}


async def confirm_answers(
    inputs: ReviewInputs, executors: Executors, head: Rows, base: Rows, progress: Progress
) -> tuple[Rows, Rows]:
    """The results of both sides with a fresh answer of both to each question of the suites whose
    answers are worse, and with the comparisons of these. They are those of no test."""
    keys = _find_worse(inputs, head)
    if not keys or not inputs.request.settings.confirm:
        return head, base
    subject = "whose suite has worse answers"
    sampler = Sampler(inputs, executors, head, base, len(keys), progress, subject)

    async def compare(key: Key) -> tuple[TestResult, TestResult]:
        taken = await sampler.both(key, 1)
        now, before = with_both(head[key], base[key], taken)
        fresh = tuple(side[0] for side in taken)
        missing = next((each for each in fresh if not each.output_messages), None)
        if missing is None:
            executor = executors.of(inputs.part.head[key[0]])
            pair = await executor.compare(key[1], (fresh[0], fresh[1]), 1)
        else:
            error = missing.error or ErrorInfo(kind="evaluator", message="there is no answer")
            results = now.pairs[0].evaluator_results
            without = partial(replace, score=None, evaluator_results=(), error=error)
            pair = SampleResult(evaluator_results=tuple(map(without, results)))
        pairs = (*now.pairs, replace(pair, role="fresh"))
        return replace(now, pairs=pairs, spent=total_spending((now.spent, pair.spent))), before

    async with asyncio.TaskGroup() as tasks:
        running = {key: tasks.create_task(compare(key)) for key in keys}
    on_head, on_base = dict(head), dict(base)
    for key, task in running.items():
        on_head[key], on_base[key] = task.result()
    return on_head, on_base


def _find_worse(inputs: ReviewInputs, head: Rows) -> Sequence[Key]:
    """The tests with pairs of the suites whose answers are worse and must not be."""
    quarantines, rows = inputs.facts.quarantines, by_suite(head)
    suites = [
        [
            row
            for name, row in rows.get(suite.path, {}).items()
            if row.pairs and not find_quarantine(quarantines, suite, name)
        ]
        for suite in inputs.facts.suites
    ]
    found = find_comparisons(suites, inputs.request.policy)
    is_part = bool(inputs.request.settings.shard)
    return [
        row.key
        for own, compared in zip(suites, found, strict=True)
        if any(needs_confirmation(each, is_part=is_part) for each in compared)
        for row in own
    ]


def _ask_the_same(head: TestResult, base: TestResult) -> bool:
    now, before = head.fingerprint, base.fingerprint
    return bool(now and before and now.question == before.question)


def _first_answer(row: TestResult) -> SampleResult | None:
    """The first sample with an answer. Which one is no choice by the verdict."""
    return next((sample for sample in row.main_samples if sample.output_messages), None)
