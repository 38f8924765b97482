"""Confirmation: suspects are sampled again, on head and if necessary on base, until each is a
regression, is cleared, or stays undecided."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from agentevals_action.errors import AttemptError
from agentevals_action.model.result import Key, SampleResult
from agentevals_action.results.scoring import MIN_MAJORITY
from agentevals_action.review.comparison.decision_rule import (
    FIRST_SAMPLES,
    MIN_HISTORY,
    ConfirmationPlan,
    FreshSamples,
    Priors,
    Step,
    Suspect,
    next_step,
    samples_for_majority,
    weigh,
)

#: Fresh samples of a suspect that may end in an error before its confirmation ends in an error.
_MAX_ERRORS = 2


class Sampler(Protocol):
    """Runs one test again. A sample that could not be scored is returned as an error."""

    async def head(self, suite: str, test: str, count: int) -> Sequence[SampleResult]:
        """Fresh samples of head."""
        ...

    async def base(self, suite: str, test: str, count: int) -> Sequence[SampleResult]:
        """Fresh samples of base, scored by head's evaluators. Raises AttemptError when base cannot
        run."""
        ...


async def confirm(
    suspects: Sequence[Suspect],
    plan: ConfirmationPlan,
    priors: Priors,
    sampler: Sampler,
    on_base: Collection[Key],
    on_settled: Callable[[], None] = lambda: None,
) -> Mapping[Key, FreshSamples]:
    """The fresh samples of each suspect, as many as the plan needs. `on_base` are the tests that
    base can run again. `on_settled` is called when a suspect has all its samples."""

    async def confirm_one(suspect: Suspect) -> FreshSamples:
        fresh, base_open = FreshSamples(), suspect.key in on_base
        while not fresh.problem:
            kept, known = weigh(suspect, fresh, base_open)
            step = next_step(plan, priors(suspect.suite, kept.verdict), known)
            if step is Step.SAMPLE_BASE:
                fresh, base_open = await _sample_base(suspect, fresh, sampler), False
            elif step is Step.SAMPLE_HEAD:
                wanted = plan.horizon
                if plan.level is not None or known.head.trials < FIRST_SAMPLES:
                    wanted = max(min(FIRST_SAMPLES, plan.horizon), known.head.trials + 1)
                fresh = await _sample_head(suspect, fresh, sampler, wanted - known.head.trials)
            else:
                break
        on_settled()
        return fresh

    async with asyncio.TaskGroup() as tasks:
        running = {suspect.key: tasks.create_task(confirm_one(suspect)) for suspect in suspects}
    return {key: task.result() for key, task in running.items()}


async def _sample_head(
    suspect: Suspect, fresh: FreshSamples, sampler: Sampler, count: int
) -> FreshSamples:
    """With more samples of head, and the reason if too many could not be scored."""
    taken = await sampler.head(*suspect.key, count)
    failed = [sample for sample in (*fresh.head, *taken) if sample.verdict is None]
    fresh = replace(fresh, head=(*fresh.head, *taken))
    if len(failed) <= _MAX_ERRORS and any(sample.verdict for sample in taken):
        return fresh
    error = failed[-1].error if failed else None
    return replace(fresh, problem=error.message if error else "no sample could be scored")


async def _sample_base(suspect: Suspect, fresh: FreshSamples, sampler: Sampler) -> FreshSamples:
    """With samples of base, and the reason if some are missing."""
    try:
        taken = tuple(await sampler.base(*suspect.key, MIN_HISTORY))
    except AttemptError as error:
        return replace(fresh, base_problem=f"base could not be sampled again: {error}")
    problems = [f"base: {sample.error.message}" for sample in taken if sample.error]
    return replace(fresh, base=taken, base_problem="".join(problems[:1]))


async def sample_failures(
    failing: Mapping[Key, Sequence[SampleResult]],
    horizon: int,
    sampler: Sampler,
    on_settled: Callable[[], None] = lambda: None,
) -> Mapping[Key, Sequence[SampleResult]]:
    """The fresh samples of tests of head that fail, until their majority is known. A test that is
    no regression (it is new, or base fails too) blocks by them, not by one unlucky sample.

    `failing` has the fresh samples so far, `horizon` is their maximum number for each test. A test
    with fewer than three that could be scored is left out: its failure stands. `on_settled` is
    called when a test is decided."""

    async def sample_one(key: Key) -> Sequence[SampleResult]:
        fresh = [sample for sample in failing[key] if sample.verdict]
        limit = horizon - len(failing[key]) + len(fresh)
        while count := samples_for_majority(_count_failures(fresh), len(fresh), limit):
            taken = await sampler.head(*key, count)
            scored = [sample for sample in taken if sample.verdict]
            limit -= len(taken) - len(scored)
            fresh += scored
        on_settled()
        return fresh

    async with asyncio.TaskGroup() as tasks:
        running = {key: tasks.create_task(sample_one(key)) for key in failing}
    found = {key: task.result() for key, task in running.items()}
    return {key: fresh for key, fresh in found.items() if len(fresh) >= MIN_MAJORITY}


def _count_failures(samples: Sequence[SampleResult]) -> int:
    return sum(sample.verdict == "fail" for sample in samples)
