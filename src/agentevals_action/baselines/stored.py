"""Results of earlier runs: the newest run whose fingerprints are those of base."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from agentevals_action.baselines.base import BaseTree, Freshness, origin_of, split_selections
from agentevals_action.baselines.run_files import without_messages
from agentevals_action.baselines.stored_run import complete_run
from agentevals_action.model.baseline import BaselineOrigin, BaseRun, StoredRun
from agentevals_action.model.result import Fingerprint, SampleResult, SuiteRun, TestResult
from agentevals_action.model.review import Selection
from agentevals_action.model.suite import Suite
from agentevals_action.results.trace_summary import stored_work

#: Samples of a test that count, at most: the latest ones.
SAMPLES = 50


@dataclass(frozen=True)
class StoredBaseline:
    """The results in `runs`, newest first, which are `at` a branch or file (as messages show it).
    `problem` is the reason why runs are missing. `is_ancestor` tells whether a commit is base or
    before it, None if unknown."""

    source: str
    at: str
    tree: BaseTree
    freshness: Freshness
    runs: Sequence[StoredRun]
    problem: str
    is_ancestor: Callable[[str], Awaitable[bool | None]]
    reruns: ClassVar[bool] = False

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        suites, missing = split_selections(self.tree.suites, selections)
        runs: dict[str, SuiteRun] = {}
        origins: dict[str, BaselineOrigin] = {}
        problems: dict[str, str] = {}
        for path, suite in suites.items():
            found = await asyncio.to_thread(self._newest, suite)
            if isinstance(found, str):
                problems[path] = found
            else:
                runs[path], origins[path] = found[0], await self._origin(*found)
        info = replace(self.tree.info, source=self.source)
        return BaseRun(info, runs, missing, problems, origins)

    def _newest(self, suite: Suite) -> tuple[SuiteRun, StoredRun] | str:
        """The newest run with all tests of a suite as base has them, with the samples of the other
        runs as its history; else the reason why the newest run is none."""
        stored = {test.id: self.tree.stored_fingerprint(suite, test) for test in suite.tests}
        compared = {test.id: self.tree.fingerprint(suite, test) for test in suite.tests}
        reason = ""
        for run in self.runs:
            rows = _rows_of(run, suite)
            if not rows:
                continue
            found = complete_run(suite, rows, stored, compared)
            if not isinstance(found, str):
                rows = self._with_history(suite, rows, stored)
                found = complete_run(suite, rows, stored, compared)
            if not isinstance(found, str):
                return found, run
            of_run = f"the results of {run.commit[:12]}: " if run.commit else ""
            reason = reason or f"{self.at}: {of_run}{found}"
        return "; ".join(filter(None, [self.problem, reason])) or f"{self.at} has no results of it"

    async def _origin(self, found: SuiteRun, run: StoredRun) -> BaselineOrigin:
        origin = origin_of(self.source, found, run.commit)
        time = run.time or origin.time
        return replace(
            origin,
            is_ancestor=await self.is_ancestor(run.commit) if run.commit else None,
            time=time,
            stale=self.freshness.is_stale(time),
        )

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


def _latest_answer(samples: Sequence[SampleResult]) -> int | None:
    """The index of the latest sample with an answer that can be scored again."""
    for index in reversed(range(len(samples))):
        try:
            if samples[index].output_messages and stored_work(samples[index]):
                return index
        except ValueError:  # somebody edited the file
            continue
    return None


def _latest(
    samples: Iterable[SampleResult], newest: Sequence[SampleResult]
) -> tuple[SampleResult, ...]:
    """The latest samples, of which the last that has an answer keeps it. A cached answer was given
    before: cached samples count only if there is no other, and then only those of the newest run,
    else one answer would look like many."""
    fresh = [sample for sample in samples if not sample.cached and sample.error is None]
    kept = (fresh or list(newest))[-SAMPLES:]
    answered = _latest_answer(kept)
    return tuple(
        sample if index == answered else without_messages(sample)
        for index, sample in enumerate(kept)
    )
