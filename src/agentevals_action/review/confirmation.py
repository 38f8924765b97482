"""Confirmation: suspects are sampled again, on head and if necessary on base, until each is a
regression, is cleared, or stays undecided."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Protocol

from agentevals_action.errors import AttemptError
from agentevals_action.model.comparison import Evidence, Finding
from agentevals_action.model.result import SampleResult, TestResult, Verdict
from agentevals_action.results.scoring import MIN_MAJORITY
from agentevals_action.review.comparison.decision_rule import (
    FIRST_SAMPLES,
    MIN_HISTORY,
    SUSPICION,
    ConfirmationPlan,
    Evidences,
    Kept,
    Key,
    Known,
    Step,
    Suspect,
    next_step,
    samples_for_majority,
    steadiest,
    to_sample,
)
from agentevals_action.review.comparison.statistics import Prior, failures_needed, fit_prior, tail

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
    bases: Mapping[str, Sequence[TestResult]],
    horizon: int,
    alpha: float,
    sampler: Sampler,
    on_base: Collection[Key],
    on_settled: Callable[[], None] = lambda: None,
) -> Evidences:
    """The evidence about each suspect.

    `bases` are all base results of each suite, for the prior. `horizon` is the maximum number of
    fresh samples of head for each suspect; with 0 a fall is a regression. `alpha` is the
    probability (0–1) of one false regression among all suspects. `on_base` are the tests that base
    can run again. `on_settled` is called when a suspect is decided.
    """
    sampled = to_sample(suspects, horizon)
    plan = ConfirmationPlan(horizon, alpha / max(len(sampled), 1))

    @cache
    def prior(suite: str, verdict: Verdict) -> Prior:
        kept = Kept(verdict, frozenset())
        return fit_prior(kept.history(result.samples) for result in bases.get(suite, ()))

    async def confirm_one(suspect: Suspect) -> Evidence:
        can_sample_base = suspect.key in on_base
        evidence = await _Confirmation(suspect, plan, prior, sampler, can_sample_base).run()
        on_settled()
        return evidence

    async with asyncio.TaskGroup() as tasks:
        running = {suspect.key: tasks.create_task(confirm_one(suspect)) for suspect in sampled}
    return {
        suspect.key: running[suspect.key].result() if suspect.key in running else _certain(suspect)
        for suspect in suspects
    }


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


def _certain(suspect: Suspect) -> Evidence:
    base, head = (suspect.kept.history(side.samples) for side in (suspect.base, suspect.head))
    return Evidence(Finding.REGRESSED, base, head)


class _Confirmation:
    """The confirmation of one suspect."""

    def __init__(
        self,
        suspect: Suspect,
        plan: ConfirmationPlan,
        prior: Callable[[str, Verdict], Prior],
        sampler: Sampler,
        can_sample_base: bool,
    ) -> None:
        self._suspect, self._plan, self._priors = suspect, plan, prior
        self._sampler = sampler
        self._head: list[SampleResult] = []
        self._base: list[SampleResult] = []
        self._notes: list[str] = []
        self._set_history(suspect.base.samples, can_sample_base)

    async def run(self) -> Evidence:
        samplers = {Step.SAMPLE_HEAD: self._sample_head, Step.SAMPLE_BASE: self._sample_base}
        while sample := samplers.get(step := next_step(self._plan, self._prior, self._known)):
            if problem := await sample():
                return self._evidence(Finding.ERROR, problem)
        if step is Step.UNDECIDED and self._notes:
            # Samples that could have decided it are missing: an error, not a result.
            return self._evidence(Finding.ERROR)
        return self._evidence(Finding(step.value))

    def _set_history(self, base: Sequence[SampleResult], can_sample_base: bool) -> None:
        """Uses these samples as the history of base. They alone determine what must be kept, so
        that head has no influence on it."""
        suspect = self._suspect
        self._kept = steadiest(suspect.kept, suspect.head, base)
        self._history = base
        self._prior = self._priors(suspect.suite, self._kept.verdict)
        histories = self._kept.history(base), self._kept.history(self._head)
        self._known = Known(histories[0], SUSPICION, histories[1], can_sample_base)

    async def _sample_head(self) -> str:
        """Takes samples of head; the reason if too many could not be scored."""
        count = max(min(FIRST_SAMPLES, self._plan.horizon) - self._known.head.trials, 1)
        fresh = await self._sampler.head(*self._suspect.key, count)
        self._head.extend(fresh)
        self._known = replace(self._known, head=self._kept.history(self._head))
        failed = [sample for sample in self._head if sample.verdict is None]
        if len(failed) <= _MAX_ERRORS and any(sample.verdict for sample in fresh):
            return ""
        error = failed[-1].error if failed else None
        return error.message if error else "no sample could be scored"

    async def _sample_base(self) -> str:
        """Takes samples of base that replace the earlier ones. If there are too few, the earlier
        ones stay and a note says so."""
        try:
            fresh = await self._sampler.base(*self._suspect.key, MIN_HISTORY)
        except AttemptError as error:
            self._notes.append(f"base could not be sampled again: {error}")
            fresh = ()
        self._base.extend(fresh)
        if self._kept.history(fresh).trials >= MIN_HISTORY:
            self._set_history(fresh, can_sample_base=False)
        else:
            self._set_history((*self._history, *fresh), can_sample_base=False)
            self._notes += [f"base: {sample.error.message}" for sample in fresh if sample.error][:1]
        return ""

    def _evidence(self, finding: Finding, problem: str = "") -> Evidence:
        known = self._known
        history = known.base + known.raised
        chance = None
        if known.head.trials:
            chance = tail(history, self._prior, known.head.trials, known.head.failures)
        return Evidence(
            finding=finding,
            base=known.base,
            head=known.head,
            head_samples=tuple(self._head),
            base_samples=tuple(self._base),
            needed=failures_needed(history, self._prior, self._plan.horizon, self._plan.level),
            chance=chance,
            reason="; ".join(filter(None, (problem, *self._notes))),
        )
