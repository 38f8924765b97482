"""Confirmation: suspects are sampled again, on head and if necessary on base, until each is a
regression, is cleared, or stays undecided."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from agentevals_action.errors import AttemptError
from agentevals_action.execution.executor import run_at_once
from agentevals_action.model.baseline import SAME_SERVICE
from agentevals_action.model.comparison import Finding
from agentevals_action.model.result import ErrorInfo, Key, SampleResult, TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.reports.terminal.progress import Progress
from agentevals_action.results.build import extended, with_suite_samples
from agentevals_action.results.scoring import MIN_MAJORITY
from agentevals_action.review.comparison.decision_rule import (
    FIRST_SAMPLES,
    MIN_HISTORY,
    ConfirmationPlan,
    FreshSamples,
    Priors,
    Step,
    Suspect,
    as_head_scores,
    assess,
    compute_priors,
    next_step,
    samples_for_majority,
    weigh,
)
from agentevals_action.review.comparison.states import find_suspects
from agentevals_action.review.inputs.inputs import ReviewInputs
from agentevals_action.review.run.head_and_base import Rows, by_suite, same_service
from agentevals_action.runners.executor import Executors

#: Fresh samples of a suspect that may end in an error before its confirmation ends in an error.
_MAX_ERRORS = 2

#: Takes a number of fresh samples of a test. A sample that could not be scored has an error.
TakeSamples = Callable[[Key, int], Awaitable[Sequence[SampleResult]]]
#: Samples of head, and of base.
BothSides = tuple[Sequence[SampleResult], Sequence[SampleResult]]


async def confirm(
    inputs: ReviewInputs,
    executors: Executors,
    head: Rows,
    base: Rows,
    progress: Progress,
) -> tuple[Rows, Rows]:
    """The results of both sides with the fresh samples of the confirmation: of suspects, and of
    tests that block by themselves. A shard takes all samples that may be needed, because
    it does not know the number of all suspects."""
    settings = inputs.request.settings
    if not settings.confirm:
        return head, base
    on_base = by_suite(base)
    suspects = {suspect.key: suspect for suspect in find_suspects(by_suite(head), on_base)}
    blocking = _blocking(head, inputs.request.policy.fail_on)
    # Fresh samples of steady tests reveal nothing.
    steady = {(suite.path, test) for suite in inputs.facts.suites for test in suite.steady}
    suspects = {key: suspect for key, suspect in suspects.items() if key not in steady}
    blocking = [key for key in blocking if key not in steady]
    if not suspects and not blocking:
        return head, base
    tests, subject = len({*suspects, *blocking}), "whose verdict dropped"
    sampler = Sampler(inputs, executors, head, base, tests, progress, subject)
    level = None if settings.shard else inputs.request.policy.level / max(len(suspects), 1)
    fresh = await sample_again(
        suspects.values(),
        blocking,
        ConfirmationPlan(settings.confirm, level),
        compute_priors(on_base),
        sampler.head,
        # Stored results alone are of another day: samples of today would hide the difference.
        sampler.base if inputs.base.sha else None,
        sampler.settle,
    )
    return _with_fresh(head, base, fresh)


class Sampler:
    """Takes fresh samples of tests, whose results are `head` and `base`, and shows the progress for
    `tests` tests, which the `subject` describes."""

    def __init__(
        self,
        inputs: ReviewInputs,
        executors: Executors,
        head: Rows,
        base: Rows,
        tests: int,
        progress: Progress,
        subject: str,
    ) -> None:
        self._subject, self._has_tree = subject, bool(inputs.base.sha)
        self._part, self._executors = inputs.part, executors
        self._head, self._base = head, base
        self._same_service = cache(partial(same_service, inputs))
        self._progress, self._tests, self._settled, self._samples = progress, tests, 0, 0
        self._count(0)

    async def head(self, key: Key, count: int) -> Sequence[SampleResult]:
        """Fresh samples of head."""
        return await self._sample(self._part.head[key[0]], key, count)

    async def base(self, key: Key, count: int) -> Sequence[SampleResult]:
        """Fresh samples of base, scored by head's evaluators. Raises AttemptError when base cannot
        run."""
        path, test = key
        samples = await self._sample(self.suite_on_base(key), key, count)
        on_head, on_base = self._head[key].fingerprint, self._base[key].fingerprint
        if on_head and on_base and on_head.grading != on_base.grading:
            return await self._executors.of(self._part.head[path]).score(test, samples)
        return samples

    def suite_on_base(self, key: Key) -> Suite:
        """The suite of a test on base. Raises AttemptError when base cannot run."""
        path, test = key
        if not self._has_tree:
            raise AttemptError("configuration", "base has stored results alone")
        suite = self._part.base.get(path)
        if suite is None:
            raise AttemptError("configuration", "the test is not on base")
        if test in self._same_service(path):
            raise AttemptError("configuration", SAME_SERVICE)
        return suite

    async def both(self, key: Key, count: int) -> BothSides:
        """`count` fresh samples of head and of base, at the same time, because a vendor is slower
        at some times; an error in their place if base cannot run."""

        async def take(side: TakeSamples) -> Sequence[SampleResult]:
            try:
                self.suite_on_base(key)
                return await side(key, count)
            except AttemptError as error:
                return [SampleResult(error=ErrorInfo(kind=error.kind, message=error.sentence))]

        head, base = await asyncio.gather(take(self.head), take(self.base))
        self.settle()
        return head, base

    def settle(self) -> None:
        """Counts a test that has all its samples."""
        self._settled += 1
        self._count(0)

    async def _sample(self, suite: Suite, key: Key, count: int) -> Sequence[SampleResult]:
        samples = await self._executors.of(suite).sample(key[1], count)
        self._count(count)
        return samples

    def _count(self, samples: int) -> None:
        self._samples += samples
        self._progress.confirm(self._tests, self._settled, self._samples, self._subject)


def _blocking(head: Rows, fail_on: Collection[str]) -> list[Key]:
    """The tests of head that block by themselves under `fail_on` (`gates`, `failures`) after fewer
    samples than a majority needs."""
    return [
        key
        for key, row in head.items()
        if len(row.main_samples) < MIN_MAJORITY
        and (
            ("gates" in fail_on and row.gates_failed)
            or ("failures" in fail_on and row.verdict == "fail")
        )
    ]


def _with_fresh(head: Rows, base: Rows, fresh: Mapping[Key, FreshSamples]) -> tuple[Rows, Rows]:
    """The results with fresh samples. Fresh samples of base are scored as on head, so they do not
    belong to a result that base scored differently."""
    on_head, on_base = dict(head), dict(base)
    for key, samples in fresh.items():
        on_head[key] = extended(head[key], samples.head, samples.problem)
        if row := base.get(key):
            scored = extended(as_head_scores(row), samples.base, samples.base_problem)
            on_base[key] = replace_scored(row, scored)
    return on_head, on_base


def replace_scored(base: TestResult, scored: TestResult) -> TestResult:
    """A result of base, of which `scored` replaces the result as head scores it."""
    return replace(base, by_head=scored) if base.by_head else scored


def with_both(
    head: TestResult, base: TestResult, taken: BothSides
) -> tuple[TestResult, TestResult]:
    """The results of both sides with the samples `taken` for a condition on their suite."""
    scored = with_suite_samples(as_head_scores(base), taken[1])
    return with_suite_samples(head, taken[0]), replace_scored(base, scored)


async def sample_again(
    suspects: Iterable[Suspect],
    blocking: Collection[Key],
    plan: ConfirmationPlan,
    priors: Priors,
    sample_head: TakeSamples,
    sample_base: TakeSamples | None,
    on_settled: Callable[[], None] = lambda: None,
) -> Mapping[Key, FreshSamples]:
    """The fresh samples of suspects, and of tests that block by themselves: as many of each as the
    plan needs. All are sampled at the same time, because the tests of a runner's suite share its
    starts.

    `sample_base`, which scores by head's evaluators, raises AttemptError if base cannot run, and is
    None if base has no tree. `on_settled` is called when a test has all its samples."""
    by_key = {suspect.key: suspect for suspect in suspects}

    async def sample_test(key: Key) -> FreshSamples:
        fresh, suspect, is_decided = FreshSamples(), by_key.get(key), False
        if suspect:
            fresh = await _sample_suspect(suspect, plan, priors, sample_head, sample_base)
            finding = assess(suspect, fresh, plan, priors).finding
            is_decided = finding in (Finding.REGRESSED, Finding.ERROR)
        if key in blocking and not is_decided:
            head = await _sample_failure(key, fresh.head, plan.horizon, sample_head)
            fresh = replace(fresh, head=head)
        on_settled()
        return fresh

    return await run_at_once(sample_test, dict.fromkeys((*by_key, *blocking)))


async def _sample_suspect(
    suspect: Suspect,
    plan: ConfirmationPlan,
    priors: Priors,
    sample_head: TakeSamples,
    sample_base: TakeSamples | None,
) -> FreshSamples:
    """The fresh samples of a suspect, until they decide or cannot decide."""
    fresh, base_open = FreshSamples(), sample_base is not None
    while not fresh.problem:
        requirement, samples = weigh(suspect, fresh, base_open)
        step = next_step(plan, priors(suspect.suite, requirement.verdict), samples)
        if step is Step.SAMPLE_BASE and sample_base:
            fresh, base_open = await _add_base(suspect, fresh, sample_base), False
        elif step is Step.SAMPLE_HEAD:
            wanted = plan.horizon
            if plan.level is not None or samples.head.trials < FIRST_SAMPLES:
                wanted = max(min(FIRST_SAMPLES, plan.horizon), samples.head.trials + 1)
            taken = await sample_head(suspect.key, wanted - samples.head.trials)
            fresh = _add_head(fresh, taken)
        else:
            break
    return fresh


def _add_head(fresh: FreshSamples, taken: Sequence[SampleResult]) -> FreshSamples:
    """Adds samples of head, and the reason if too many could not be scored."""
    fresh = replace(fresh, head=(*fresh.head, *taken))
    failed = [sample for sample in fresh.head if sample.verdict is None]
    if len(failed) <= _MAX_ERRORS and any(sample.verdict for sample in taken):
        return fresh
    error = failed[-1].error if failed else None
    return replace(fresh, problem=error.message if error else "no sample could be scored")


async def _add_base(
    suspect: Suspect, fresh: FreshSamples, sample_base: TakeSamples
) -> FreshSamples:
    """Adds samples of base, and the reason if some are missing."""
    try:
        taken = tuple(await sample_base(suspect.key, MIN_HISTORY))
    except AttemptError as error:
        return replace(fresh, base_problem=f"base could not be sampled again: {error.sentence}")
    problems = [f"base: {sample.error.message}" for sample in taken if sample.error]
    return replace(fresh, base=taken, base_problem="".join(problems[:1]))


async def _sample_failure(
    key: Key, taken: Sequence[SampleResult], horizon: int, sample_head: TakeSamples
) -> tuple[SampleResult, ...]:
    """The fresh samples of a test of head that fails, until their majority is known. A test that is
    no regression (it is new, or base fails too) blocks by them, not by one unlucky sample.

    `taken` are the fresh samples so far, `horizon` is their maximum number. If fewer than three
    could be scored, nothing is added: the failure stands."""
    fresh = [sample for sample in taken if sample.verdict]
    limit = horizon - len(taken) + len(fresh)
    while count := samples_for_majority(_count_failures(fresh), len(fresh), limit):
        more = await sample_head(key, count)
        scored = [sample for sample in more if sample.verdict]
        limit -= len(more) - len(scored)
        fresh += scored
    return tuple(fresh) if len(fresh) >= MIN_MAJORITY else tuple(taken)


def _count_failures(samples: Sequence[SampleResult]) -> int:
    return sum(sample.verdict == "fail" for sample in samples)
