"""Results of earlier runs: the newest run whose fingerprints are those of base."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agentevals_action.baselines.base import Unavailable, is_stale, origin_of
from agentevals_action.baselines.run_files import latest_answer, without_messages
from agentevals_action.baselines.stored_run import complete_rows
from agentevals_action.model.baseline import BaseSuite, StoredRun
from agentevals_action.model.result import Fingerprint, SampleResult, TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.results.trace_summary import stored_work

#: Samples of a test that count, at most: the latest ones.
SAMPLES = 50


@dataclass(frozen=True)
class StoredSource:
    """The results in `runs`, newest first, which are `at` a branch or file (as messages show it).
    `problem` is the reason why runs are missing. A stored result must have the fingerprint
    `stored`, by base's rules of `watch`; `compared` is the one to compare it with head by. Results
    are stale `days` before `now`. `is_ancestor` gives whether a commit is base or before it, None
    if unknown."""

    name: str
    at: str
    runs: Sequence[StoredRun]
    problem: str
    stored: Callable[[Suite, Test], Fingerprint]
    compared: Callable[[Suite, Test], Fingerprint]
    now: datetime
    days: float
    is_ancestor: Callable[[str], Awaitable[bool | None]]

    async def find(self, suite: Suite) -> BaseSuite:
        """The results of a suite of base. Raises Unavailable."""
        rows, run = await asyncio.to_thread(self._newest, suite)
        origin = origin_of(self.name, rows, run.commit)
        time = run.time or origin.time
        return BaseSuite(
            rows,
            replace(
                origin,
                is_ancestor=await self.is_ancestor(run.commit) if run.commit else None,
                time=time,
                stale=is_stale(time, self.now, self.days),
            ),
        )

    def _newest(self, suite: Suite) -> tuple[tuple[TestResult, ...], StoredRun]:
        """The newest run with all tests of a suite as base has them, with the samples of the other
        runs as its history. Unavailable states why the newest run is none."""
        stored = {test.id: self.stored(suite, test) for test in suite.tests}
        compared = {test.id: self.compared(suite, test) for test in suite.tests}
        reason = ""
        for run in self.runs:
            rows = _rows_of(run, suite)
            if not rows:
                continue
            try:
                complete_rows(suite, rows, stored, compared)
                rows = self._with_history(suite, rows, stored)
                return complete_rows(suite, rows, stored, compared), run
            except Unavailable as unavailable:
                of_run = f"the results of {run.commit[:12]}: " if run.commit else ""
                reason = reason or f"{self.at}: {of_run}{unavailable}"
        known = "; ".join(filter(None, [self.problem, reason]))
        raise Unavailable(known or f"{self.at} has no results of it")

    def _with_history(
        self,
        suite: Suite,
        rows: Sequence[TestResult],
        fingerprints: Mapping[str, Fingerprint],
    ) -> Sequence[TestResult]:
        """The rows of the newest run with the samples of all runs that have the same fingerprints,
        oldest first."""
        history: defaultdict[str, list[SampleResult]] = defaultdict(list)
        for run in reversed(self.runs):
            for row in _rows_of(run, suite):
                if row.fingerprint == fingerprints.get(row.eval_id):
                    history[row.eval_id] += row.main_samples
        return [
            replace(row, samples=_latest(history[row.eval_id], row.main_samples), confirming=0)
            for row in rows
        ]


def _rows_of(run: StoredRun, suite: Suite) -> Sequence[TestResult]:
    return [result for result in run.results if result.eval_path == suite.path]


def _can_be_scored(sample: SampleResult) -> bool:
    try:
        stored_work(sample)
    except ValueError:  # somebody edited the file
        return False
    return True


def _latest(
    samples: Iterable[SampleResult], newest: Sequence[SampleResult]
) -> tuple[SampleResult, ...]:
    """The latest samples, of which the last that has an answer keeps it. A cached answer was given
    before: cached samples count only if there is no other, and then only those of the newest run,
    else one answer would look like many."""
    fresh = [sample for sample in samples if not sample.cached and sample.error is None]
    kept = (fresh or list(newest))[-SAMPLES:]
    answered = latest_answer(kept, _can_be_scored)
    return tuple(
        sample if index == answered else without_messages(sample)
        for index, sample in enumerate(kept)
    )
