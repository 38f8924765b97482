"""What runs of the default branch stored of their results on a branch of the repository: the base's
own, or an ancestor's."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from agentevals_action.baselines.base import BaseTree, Freshness, origin, sorted_out
from agentevals_action.baselines.stored_run import whole_run
from agentevals_action.errors import HostError
from agentevals_action.model.comparison import BaseRun, Origin, Selection
from agentevals_action.model.history import PastAnswer, PastSample, Remembered, Series, SuiteHistory
from agentevals_action.model.past import Lineage
from agentevals_action.model.result import (
    Fingerprint,
    SampleResult,
    SuiteRun,
    TestResult,
    TraceSummary,
)
from agentevals_action.model.suite import Suite
from agentevals_action.results.build import stored_work

#: Ancestors of which it may turn out that the suite has changed since, before no more are looked
#: at: those further back have the same change before them, unless it was taken back, and to know it
#: of one may be a request to the host.
_REFUSALS = 3
#: Commits whose results are looked into at most, to find one that has all tests.
_LOOKED_AT = 10


class Memory(Protocol):
    """Where results of earlier runs are remembered."""

    def read(self, suites: Collection[str]) -> Remembered:
        """What is there of these suites; HostError, in words, when it cannot be read."""
        ...


@dataclass(frozen=True)
class BranchStore:
    """Results of the base, or of the nearest commit before it with nothing changed since that
    touches the suite, and the samples of those before that as its history. `branch` is the name to
    be told; `lineage` gives the base's ancestors, `untouched` says True of an ancestor and a suite,
    or why not."""

    tree: BaseTree
    freshness: Freshness
    memory: Memory
    branch: str
    lineage: Callable[[], Lineage]
    untouched: Callable[[str, str], bool | str]

    reruns: ClassVar[bool] = False

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        return await asyncio.to_thread(self._results, selections)

    def _results(self, selections: Sequence[Selection]) -> BaseRun:
        info = replace(self.tree.info, source="branch")
        found = sorted_out(self.tree.suites, selections)
        if not found.wanted:
            return BaseRun(info, missing=found.missing)
        try:
            remembered = self.memory.read(sorted({suite.path for suite in found.wanted.values()}))
            lineage = self.lineage()
        except HostError as error:
            return BaseRun(
                info, missing=found.missing, problems=dict.fromkeys(found.wanted, str(error))
            )
        runs: dict[str, SuiteRun] = {}
        origins: dict[str, Origin] = {}
        problems: dict[str, str] = {}
        for path, suite in found.wanted.items():
            given = self._of(suite, remembered, lineage)
            if isinstance(given, str):
                problems[path] = given
            else:
                runs[path], origins[path] = given
        return BaseRun(info, runs, found.missing, problems, origins)

    def _of(
        self, suite: Suite, remembered: Remembered, lineage: Lineage
    ) -> tuple[SuiteRun, Origin] | str:
        if suite.path in remembered.damaged:
            return f"its file on `{self.branch}` is damaged: {remembered.damaged[suite.path]}"
        if suite.path not in remembered.histories:
            return f"`{self.branch}` has no results of it"
        return _Past(self, suite, remembered.histories[suite.path], lineage).run()


@dataclass
class _Past:
    """One suite's commits, from the base back."""

    store: BranchStore
    suite: Suite
    history: SuiteHistory
    lineage: Lineage
    refusals: list[str] = field(default_factory=list)

    def run(self) -> tuple[SuiteRun, Origin] | str:
        """The run of the nearest commit that has all tests as the base has them; the nearest one's
        reason why there is none."""
        there = {sample.commit for sample in self.history.samples()}
        commits = [commit for commit in self.lineage.distances if commit in there]
        expected = self.store.tree.expected(self.suite)
        reasons = [self._none()] if not commits else []
        for number, commit in enumerate(commits[:_LOOKED_AT]):
            whole = whole_run(self.suite, results(self.history, expected, commit), expected)
            if isinstance(whole, str):
                reasons.append(f"of {commit[:12]}: {whole}")
            elif self._holds(commit):
                # All of it again, now with what lies before.
                before = self._before(commits[number + 1 :])
                whole = whole_run(
                    self.suite, results(self.history, expected, commit, before), expected
                )
                if not isinstance(whole, str):
                    distance = self.lineage.distances[commit]
                    return _told(whole), origin(
                        "branch", whole, commit, distance, self.store.freshness
                    )
                reasons.append(f"of {commit[:12]}: {whole}")
            else:
                reasons.append(f"of {commit[:12]}: {self.refusals[-1]}")
            if len(self.refusals) >= _REFUSALS:
                break
        return (
            f"`{self.store.branch}` {reasons[0]}"
            if not commits
            else f"the results on `{self.store.branch}` {reasons[0]}"
        )

    def _none(self) -> str:
        cut = f" ({self.lineage.problem})" if self.lineage.problem else ""
        return f"has no results of the base or a commit shortly before it{cut}"

    def _before(self, commits: Iterable[str]) -> set[str]:
        """The stored commits from which the base follows with the suite left alone, up to the first
        that is none."""
        found: set[str] = set()
        for commit in commits:
            if not self._holds(commit):
                break
            found.add(commit)
        return found

    def _holds(self, commit: str) -> bool:
        answer = (
            self.store.untouched(commit, self.suite.path)
            if self.lineage.distances[commit]
            else True
        )
        if answer is not True:
            self.refusals.append(
                answer if isinstance(answer, str) else "the base has changed it since"
            )
        return answer is True


def results(
    history: SuiteHistory,
    expected: Mapping[str, Fingerprint],
    commit: str,
    others: Collection[str] = (),
) -> tuple[TestResult, ...]:
    """The tests that have samples of a commit, with those and the ones of `others`, oldest first;
    of the answers the latest alone is there.

    Of a test that was run with several fingerprints at that commit the expected one counts, else
    any: whoever asks tells the difference."""
    found = []
    for name, kept in history.tests.items():
        there = [
            series for series in kept if any(sample.commit == commit for sample in series.samples)
        ]
        if there:
            series = next((one for one in there if one.fingerprint == expected.get(name)), there[0])
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
    known = past.cost_usd is not None or past.duration_ms is not None
    figures = TraceSummary(cost_usd=past.cost_usd, duration_ms=past.duration_ms) if known else None
    sample = SampleResult(
        score=past.score,
        verdict=past.verdict,
        gates_failed=past.gates_failed,
        cached=past.cached,
        trace_summary=figures,
    )
    if answer is None:
        return sample
    whole = replace(
        sample,
        output_messages=answer.output_messages,
        file_changes=answer.file_changes,
        trace_summary=answer.trace_summary or figures,
    )
    return replace(whole, candidate_answer=stored_work(whole).trace.output)


def _told(run: SuiteRun) -> SuiteRun:
    """The run with the answer that is there shown for each test whose verdict it has."""
    return replace(run, results=tuple(_with_answer(result) for result in run.results))


def _with_answer(result: TestResult) -> TestResult:
    last = next(
        (
            sample
            for sample in result.samples
            if sample.output_messages and sample.verdict == result.verdict
        ),
        None,
    )
    return replace(result, candidate_answer=last.candidate_answer) if last else result
