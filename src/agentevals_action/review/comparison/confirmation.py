"""Suspects are sampled again, on head and where base is thin on base, until each is a regression,
is not, or stays undecided."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agentevals_action.errors import AttemptError
from agentevals_action.model.comparison import Evidence, Finding
from agentevals_action.model.result import SampleResult, TestResult, Verdict
from agentevals_action.review.comparison.decision_rule import (
    LOOK,
    RAISED,
    THICK,
    Held,
    Known,
    Plan,
    Step,
    next_step,
    steadiest,
)
from agentevals_action.review.comparison.statistics import Prior, failures_needed, fit_prior, tail

#: Fresh samples that may end in an error before a suspect is given up, beside those that are
#: needed.
_SPARE = 2


class Sampler(Protocol):
    """Runs one test again; samples that could not be told come back as errors."""

    async def head(self, suite: str, test: str, count: int) -> Sequence[SampleResult]:
        """So many fresh samples of head."""
        ...

    async def base(self, suite: str, test: str, count: int) -> Sequence[SampleResult]:
        """So many fresh samples of base, graded as head grades; AttemptError when base cannot be
        run."""
        ...

    def base_open(self, suite: str, test: str) -> bool:
        """Whether base can be sampled again."""
        ...

    def settled(self, suite: str, test: str) -> None:
        """What became of the test is known: no more of it is asked for."""
        ...


@dataclass(frozen=True)
class Suspect:
    """A test whose verdict fell; `held` is what it lost. `certain` says that every answer is known
    to be the same each time, so that one is enough. `head` and `base` are the results that raised
    the suspicion."""

    suite: str
    head: TestResult
    base: TestResult
    held: Held
    certain: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The suite's path on head and the test's id."""
        return self.suite, self.head.eval_id


#: What confirmation came to, by suite path and test id.
Evidences = Mapping[tuple[str, str], Evidence]


def to_sample(suspects: Sequence[Suspect], horizon: int) -> Sequence[Suspect]:
    """Those of the suspects of which there is something to learn from fresh samples, `horizon` of
    them at most."""
    return [suspect for suspect in suspects if not suspect.certain and horizon]


async def confirm(
    suspects: Sequence[Suspect],
    bases: Mapping[str, Sequence[TestResult]],
    horizon: int,
    alpha: float,
    sampler: Sampler,
) -> Evidences:
    """What becomes of each suspect. `bases` are all base results of each suite, for what is usual
    there; `horizon` fresh samples of head at most for each; `alpha` the chance (0-1) of one false
    regression among all of them. With a horizon of 0 a fall is a regression."""
    open_ = to_sample(suspects, horizon)
    plan = Plan(horizon, alpha / max(len(open_), 1))
    prior = _Priors(bases)
    async with asyncio.TaskGroup() as tasks:
        running = {
            suspect.key: tasks.create_task(_Inquiry(suspect, plan, prior, sampler).run())
            for suspect in open_
        }
    return {
        suspect.key: running[suspect.key].result()
        if suspect.key in running
        else _told_by_one(suspect)
        for suspect in suspects
    }


def _told_by_one(suspect: Suspect) -> Evidence:
    return Evidence(
        Finding.REGRESSED,
        suspect.held.among(suspect.base.samples),
        suspect.held.among(suspect.head.samples),
    )


class _Priors:
    """What is usual in a suite: how often its tests reach a class of verdict on base."""

    def __init__(self, bases: Mapping[str, Sequence[TestResult]]) -> None:
        self._bases = bases
        self._known: dict[tuple[str, Verdict], Prior] = {}

    def of(self, suite: str, verdict: Verdict) -> Prior:
        if (suite, verdict) not in self._known:
            held = Held(verdict, frozenset())
            self._known[suite, verdict] = fit_prior(
                held.among(result.samples) for result in self._bases.get(suite, ())
            )
        return self._known[suite, verdict]


class _Inquiry:
    """One suspect on its way."""

    def __init__(self, suspect: Suspect, plan: Plan, priors: _Priors, sampler: Sampler) -> None:
        self._suspect, self._plan, self._sampler = suspect, plan, sampler
        self._priors = priors
        self._head: list[SampleResult] = []
        self._base: list[SampleResult] = []
        self._notes: list[str] = []
        self._weigh(suspect.base.samples, sampler.base_open(*suspect.key))

    async def run(self) -> Evidence:
        evidence = await self._inquired()
        self._sampler.settled(*self._suspect.key)
        return evidence

    async def _inquired(self) -> Evidence:
        while (step := next_step(self._plan, self._prior, self._known)) in (
            Step.SAMPLE_HEAD,
            Step.SAMPLE_BASE,
        ):
            problem = await (
                self._sample_head() if step is Step.SAMPLE_HEAD else self._sample_base()
            )
            if problem:
                return self._evidence(Finding.ERROR, problem)
        if (
            step is Step.UNDECIDED and self._notes
        ):  # what could have decided it could not be had: that is no answer
            return self._evidence(Finding.ERROR)
        return self._evidence(Finding(step.value))

    def _weigh(self, base: Sequence[SampleResult], base_open: bool) -> None:
        """Takes these samples of base as its history. What must be kept is chosen by them alone, so
        that head has no say in it."""
        suspect = self._suspect
        self._held = steadiest(suspect.held, suspect.head, base)
        self._history = base
        self._prior = self._priors.of(suspect.suite, self._held.verdict)
        self._known = Known(self._held.among(base), RAISED, self._held.among(self._head), base_open)

    async def _sample_head(self) -> str:
        """More of head; why there can be none."""
        count = max(min(LOOK, self._plan.horizon) - self._known.head.trials, 1)
        fresh = await self._sampler.head(*self._suspect.key, count)
        self._head.extend(fresh)
        self._known = replace(self._known, head=self._held.among(self._head))
        failed = [sample for sample in self._head if sample.verdict is None]
        if len(failed) <= _SPARE and any(sample.verdict for sample in fresh):
            return ""
        return (
            failed[-1].error.message if failed and failed[-1].error else "no sample could be told"
        )

    async def _sample_base(self) -> str:
        """Base anew, those before left aside; where it cannot be had what there is has to do, and a
        note says so."""
        try:
            fresh = await self._sampler.base(*self._suspect.key, THICK)
        except AttemptError as error:
            self._notes.append(f"base could not be sampled again: {error}")
            fresh = ()
        self._base.extend(fresh)
        if self._held.among(fresh).trials >= THICK:
            self._weigh(fresh, base_open=False)
        else:
            self._weigh((*self._history, *fresh), base_open=False)
            self._notes += [f"base: {sample.error.message}" for sample in fresh if sample.error][:1]
        return ""

    def _evidence(self, finding: Finding, problem: str = "") -> Evidence:
        known = self._known
        history = known.base + known.raised
        return Evidence(
            finding=finding,
            base=known.base,
            head=known.head,
            head_samples=tuple(self._head),
            base_samples=tuple(self._base),
            needed=failures_needed(history, self._prior, self._plan.horizon, self._plan.level),
            chance=tail(history, self._prior, known.head.trials, known.head.failures)
            if known.head.trials
            else None,
            reason="; ".join((*([problem] if problem else ()), *self._notes)),
        )
