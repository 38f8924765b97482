"""Conditions on whole suites: the answers of head compared with those of base, and fresh samples of
both sides where head's answers are worse, or its cost or time rose by more than the limit."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agentevals_action.execution.executor import run_at_once
from agentevals_action.model.result import ErrorInfo, Key, SampleResult, TestResult
from agentevals_action.model.trace import total_spending
from agentevals_action.reports.terminal.progress import Progress
from agentevals_action.review.comparison.decision_rule import FIRST_SAMPLES, as_head_scores
from agentevals_action.review.comparison.increases import find_increases, is_replay, is_same_test
from agentevals_action.review.comparison.pairwise import find_comparisons
from agentevals_action.review.comparison.waivers import find_quarantine
from agentevals_action.review.inputs.inputs import ReviewInputs
from agentevals_action.review.run.confirmation import Sampler, with_both
from agentevals_action.review.run.head_and_base import Rows, by_suite
from agentevals_action.runners.executor import Executors


async def compare_answers(
    inputs: ReviewInputs, executors: Executors, head: Rows, base: Rows, progress: Progress
) -> Rows:
    """The results of head, with the comparisons of their answers and the cost of comparing."""
    suites, done = inputs.part.head, 0
    pairs = {
        key: (on_head, on_base)
        for path, suite in suites.items()
        for test in suite.tests
        if test.comparing and (key := (path, test.id)) in base
        if _ask_the_same(head[key], base[key])
        if (on_head := _first_answer(head[key])) and (on_base := _first_answer(base[key]))
    }

    async def compare(key: Key) -> TestResult:
        nonlocal done
        pair = await executors.of(suites[key[0]]).compare(key[1], pairs[key])
        done += 1
        progress.count("pairs of answers", done, len(pairs))
        spent = total_spending((head[key].spent, pair.spent))
        return replace(head[key], pairs=(pair,), spent=spent)

    return {**head, **await run_at_once(compare, pairs)}


async def confirm_answers(
    inputs: ReviewInputs, executors: Executors, head: Rows, base: Rows, progress: Progress
) -> tuple[Rows, Rows]:
    """The results of both sides, with a fresh answer of each to the questions of the suites whose
    answers are worse, and their comparisons. A fresh answer is no sample of its test."""
    keys = _find_worse(inputs, head)
    if not keys or not inputs.request.settings.confirm:
        return head, base
    subject = "whose suite has worse answers"
    sampler = Sampler(inputs, executors, head, base, len(keys), progress, subject)

    async def compare(key: Key) -> tuple[TestResult, TestResult]:
        taken = await sampler.both(key, 1)
        row, base_row = with_both(head[key], base[key], taken)
        fresh = tuple(side[0] for side in taken)
        missing = next((sample for sample in fresh if not sample.output_messages), None)
        if missing is None:
            executor = executors.of(inputs.part.head[key[0]])
            pair = await executor.compare(key[1], (fresh[0], fresh[1]), 1)
        else:
            error = missing.error or ErrorInfo(kind="evaluator", message="there is no answer")
            results = row.pairs[0].evaluator_results
            without = partial(replace, score=None, evaluator_results=(), error=error)
            pair = SampleResult(evaluator_results=tuple(map(without, results)))
        pairs = (*row.pairs, replace(pair, role="fresh"))
        spent = total_spending((row.spent, pair.spent))
        return replace(row, pairs=pairs, spent=spent), base_row

    return await _replace_rows(compare, keys, head, base)


async def confirm_increases(
    inputs: ReviewInputs, executors: Executors, head: Rows, base: Rows, progress: Progress
) -> tuple[Rows, Rows]:
    """The results of both sides with fresh samples of all tests that are compared in a suite whose
    cost or time rose by more than its limit."""
    keys, confirm = _find_risen(inputs, head, base), inputs.request.settings.confirm
    if not keys or not confirm:
        return head, base
    subject = "whose suite costs or takes more"
    sampler = Sampler(inputs, executors, head, base, len(keys), progress, subject)

    async def sample(key: Key) -> tuple[TestResult, TestResult]:
        taken = await sampler.both(key, min(FIRST_SAMPLES, confirm))
        return with_both(head[key], base[key], taken)

    return await _replace_rows(sample, keys, head, base)


async def _replace_rows(
    sample: Callable[[Key], Coroutine[Any, Any, tuple[TestResult, TestResult]]],
    keys: Sequence[Key],
    head: Rows,
    base: Rows,
) -> tuple[Rows, Rows]:
    """The results of both sides, with the results of some tests (`keys`) replaced by `sample`."""
    replaced = await run_at_once(sample, keys)
    on_head, on_base = ({key: row[side] for key, row in replaced.items()} for side in (0, 1))
    return {**head, **on_head}, {**base, **on_base}


def _find_risen(inputs: ReviewInputs, head: Rows, base: Rows) -> Sequence[Key]:
    """The tests with results on both sides of the suites whose rise has to be confirmed."""
    suites, policy = inputs.facts.suites, inputs.request.policy
    on_base, keys = by_suite(base), list[Key]()
    for path, rows in by_suite(head).items():
        pairs = {
            name: (row, as_head_scores(on_base[path][name]))
            for name, row in rows.items()
            if name in on_base.get(path, {}) and is_same_test(row, on_base[path][name])
        }
        suite = next(suite for suite in suites if suite.path == path)
        increases = find_increases(suite, pairs.values(), policy, len(suites))
        is_part = bool(inputs.request.settings.shard)
        is_suspect = any(increase.needs_confirmation(is_part=is_part) for increase in increases)
        if is_suspect and not is_replay(suite, pairs.values()):
            keys += [(path, name) for name in pairs]
    return keys


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
    comparisons = find_comparisons(suites, inputs.request.policy)
    is_part = bool(inputs.request.settings.shard)
    return [
        row.key
        for rows_of_suite, compared in zip(suites, comparisons, strict=True)
        if any(comparison.needs_confirmation(is_part=is_part) for comparison in compared)
        for row in rows_of_suite
    ]


def _ask_the_same(head: TestResult, base: TestResult) -> bool:
    on_head, on_base = head.fingerprint, base.fingerprint
    return bool(on_head and on_base and on_head.question == on_base.question)


def _first_answer(row: TestResult) -> SampleResult | None:
    """The first sample with an answer, whatever its verdict."""
    return next((sample for sample in row.main_samples if sample.output_messages), None)
