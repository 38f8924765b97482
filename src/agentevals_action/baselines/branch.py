"""Results of the base or an ancestor that runs of the default branch stored on a branch."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import ClassVar

from agentevals_action.baselines.ancestry import Ancestry
from agentevals_action.baselines.base import Found, ResultStore, StoredBaseline, origin_of
from agentevals_action.baselines.stored_run import complete_run
from agentevals_action.model.history import PastAnswer, PastSample, Remembered, Series, SuiteHistory
from agentevals_action.model.result import Fingerprint, SampleResult, TestResult, TraceSummary
from agentevals_action.model.suite import Suite
from agentevals_action.results.trace_summary import stored_work

#: Ancestors since which the suite has changed, after which the search ends: earlier ones have the
#: same change after them, unless it was reverted, and each may cost a request to the host.
_CHANGED = 3
#: Commits whose results are read, at most, to find one that has all tests.
_CONSIDERED = 10


@dataclass(frozen=True)
class BranchBaseline(StoredBaseline):
    """Results of the base, or of the nearest ancestor since which nothing that affects the suite
    changed; the samples of the ancestors before it are its history. `branch` is the name that
    messages show; `changed_since` gives the reason why results of an ancestor do not hold for a
    suite, empty if they hold."""

    source: ClassVar[str] = "branch"

    store: ResultStore
    branch: str
    ancestry: Ancestry
    changed_since: Callable[[str, str], str]

    def _find(self, suites: Mapping[str, Suite]) -> Mapping[str, Found]:
        remembered = self.store.read(sorted({suite.path for suite in suites.values()}))
        return {path: self._of(suite, remembered) for path, suite in suites.items()}

    def _of(self, suite: Suite, remembered: Remembered) -> Found:
        if suite.path in remembered.damaged:
            return f"its file on `{self.branch}` is damaged: {remembered.damaged[suite.path]}"
        if suite.path not in remembered.histories:
            return f"`{self.branch}` has no results of it"
        return self._nearest(suite, remembered.histories[suite.path])

    def _nearest(self, suite: Suite, history: SuiteHistory) -> Found:
        """The run of the nearest commit that has all tests as the base has them, else the reason of
        the nearest commit."""
        lineage = self.ancestry.lineage
        stored = {sample.commit for sample in history.samples()}
        commits = [commit for commit in lineage.distances if commit in stored]
        if not commits:
            problem = f" ({lineage.problem})" if lineage.problem else ""
            return (
                f"`{self.branch}` has no results of the base or a commit shortly before it{problem}"
            )
        expected = self.tree.expected(suite)
        reasons: list[str] = []
        changed = 0
        for number, commit in enumerate(commits[:_CONSIDERED]):
            run = complete_run(suite, results_of(history, expected, commit), expected)
            if not isinstance(run, str) and (reason := self._changed(commit, suite)):
                run, changed = reason, changed + 1
            if not isinstance(run, str):
                earlier = takewhile(
                    lambda other: not self._changed(other, suite), commits[number + 1 :]
                )
                results = results_of(history, expected, commit, set(earlier))
                run = complete_run(suite, results, expected)
            if not isinstance(run, str):
                distance = lineage.distances[commit]
                return run, origin_of(self.source, run, commit, distance, self.freshness)
            reasons.append(f"of {commit[:12]}: {run}")
            if changed == _CHANGED:
                break
        return f"the results on `{self.branch}` {reasons[0]}"

    def _changed(self, commit: str, suite: Suite) -> str:
        is_base = self.ancestry.lineage.distances[commit] == 0
        return "" if is_base else self.changed_since(commit, suite.path)


def results_of(
    history: SuiteHistory,
    expected: Mapping[str, Fingerprint],
    commit: str,
    others: Collection[str] = (),
) -> tuple[TestResult, ...]:
    """The tests that have samples of a commit, with those samples and the samples of `others`,
    oldest first; only the latest answer is stored.

    Of a test that ran with several fingerprints at that commit, the expected one counts, else any:
    the caller reports the difference."""
    found = []
    for name, several in history.tests.items():
        of_commit = [
            series
            for series in several
            if any(sample.commit == commit for sample in series.samples)
        ]
        if of_commit:
            wanted = (one for one in of_commit if one.fingerprint == expected.get(name))
            series = next(wanted, of_commit[0])
            found.append(_result(history, name, series, {commit, *others}))
    return tuple(found)


def _result(
    history: SuiteHistory, name: str, series: Series, commits: Collection[str]
) -> TestResult:
    samples = [sample for sample in series.samples if sample.commit in commits]
    answers = {series.answer.at: series.answer} if series.answer else {}
    return TestResult(
        timestamp=samples[-1].time,
        eval_id=name,
        dataset=history.name,
        score=None,
        verdict=None,
        eval_path=history.path,
        samples=tuple(_sample(sample, answers.get(sample.at)) for sample in samples),
        fingerprint=series.fingerprint,
    )


def _sample(past: PastSample, answer: PastAnswer | None) -> SampleResult:
    is_known = past.cost_usd is not None or past.duration_ms is not None
    summary = TraceSummary(cost_usd=past.cost_usd, duration_ms=past.duration_ms)
    sample = SampleResult(
        score=past.score,
        verdict=past.verdict,
        gates_failed=past.gates_failed,
        cached=past.cached,
        trace_summary=summary if is_known else None,
    )
    if answer is None:
        return sample
    answered = replace(
        sample,
        output_messages=answer.output_messages,
        file_changes=answer.file_changes,
        trace_summary=answer.trace_summary or sample.trace_summary,
    )
    return replace(answered, candidate_answer=stored_work(answered).trace.output)
