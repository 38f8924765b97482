"""Compares the answers of head with those of base to the same questions, where a suite of head has
pairwise evaluators."""

import asyncio
from dataclasses import replace

from agentevals_action.model.result import Key, SampleResult, TestResult
from agentevals_action.model.usage import total_spending
from agentevals_action.reports.terminal.progress import Progress
from agentevals_action.review.inputs.inputs import ReviewInputs
from agentevals_action.review.run.head_and_base import Rows
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
        progress.compare(len(pairs), done)
        spent = total_spending((head[key].spent, pair.spent))
        return replace(head[key], pairs=(pair,), spent=spent)

    async with asyncio.TaskGroup() as tasks:
        running = {key: tasks.create_task(compare(key)) for key in pairs}
    return {**head, **{key: task.result() for key, task in running.items()}}


def _ask_the_same(head: TestResult, base: TestResult) -> bool:
    now, before = head.fingerprint, base.fingerprint
    return bool(now and before and now.question == before.question)


def _first_answer(row: TestResult) -> SampleResult | None:
    """The first sample with an answer. Which one is no choice by the verdict."""
    return next((sample for sample in row.main_samples if sample.output_messages), None)
