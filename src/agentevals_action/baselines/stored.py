"""Results of earlier runs as results of base: the newest run with base's fingerprints, with the
samples of the other runs as its history."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agentevals_action.baselines.run_files import latest_answer, without_messages
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.formatting import counted, plural
from agentevals_action.model.baseline import (
    STORED,
    BaselineInfo,
    BaselineOrigin,
    BaseResults,
    BaseSuite,
    IncompleteSource,
    StoredRun,
)
from agentevals_action.model.judge import ALL_DECIDE, JudgeRule
from agentevals_action.model.result import Fingerprint, SampleResult, TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.results import scoring
from agentevals_action.results.build import stand_again, without_cost
from agentevals_action.results.trace_summary import stored_work

#: Samples of a test that count, at most: the latest.
SAMPLES = 50
#: Suites whose reasons are listed one by one.
_SHOWN = 3
#: Stands for the fingerprint of a result without a fingerprint; no result has it.
_UNKNOWN = Fingerprint(question="", grading="", agent="")


class Unavailable(Exception):
    """The reason why a source has no results of a suite."""


@dataclass(frozen=True)
class StoredSource:
    """The results in `runs`, newest first, which are `at` a branch or file (as messages show it);
    `name` is as in the input `baseline`. `problem` is the reason why runs are missing. A stored
    result must have the fingerprint `stored`, by base's rules of `watch`; the fingerprint
    `compared` is compared with head's. Without `stored`, the newest results count, with their own
    fingerprints: the agent may be older. Results before `stale_before` are stale. `rule` states
    which judges decide now."""

    name: str
    at: str
    runs: Sequence[StoredRun]
    problem: str
    stored: Fingerprints | None
    compared: Fingerprints
    stale_before: datetime
    rule: JudgeRule = ALL_DECIDE

    async def find(self, suite: Suite) -> tuple[BaseSuite, tuple[TestResult, ...]]:
        """The results of a suite of base, and where they are from. Raises Unavailable."""
        rows, run = await asyncio.to_thread(self._newest, suite)
        origin = describe_origin(self.name, rows, run.commit)
        time = run.time or origin.time
        moment = parse_time(time)
        stale = moment is not None and moment < self.stale_before
        return BaseSuite(replace(origin, time=time, stale=stale)), rows

    def find_valid(self, arm: Suite, samples: int) -> Mapping[str, TestResult]:
        """The newest result of each test of a variant of head, by id, that has its fingerprint and
        at least `samples` samples. The result costs nothing now."""
        described, by_test = self.compared.describe(arm), dict[str, TestResult]()
        expected, judged = described.expected(()), _judged_tests(arm)
        for run in self.runs:
            for row in _read_rows(run, arm):
                sound = tuple(self._sound_samples(row, judged))
                if row.fingerprint == expected.get(row.eval_id) and len(sound) >= samples:
                    valid = without_cost(described.with_samples(row, sound))
                    by_test.setdefault(row.eval_id, valid)
        return by_test

    def _newest(self, suite: Suite) -> tuple[tuple[TestResult, ...], StoredRun]:
        """The newest run with all tests of a suite as base has them. Unavailable states why the
        newest run is not used.

        Every test must have one scored result with the three digests of the base's tree: a missing
        test would count as new on head, and hide its regression. Only the samples of a result are
        used (without those of a confirmation); everything else follows from them and the suite."""
        reason = ""
        for run in self.runs:
            rows = _read_rows(run, suite)
            expected = self._expected(suite, rows) if rows else {}
            if not expected:
                continue
            try:
                _require_all(rows, expected)
                return self._results(suite, rows, expected), run
            except Unavailable as unavailable:
                of_run = f"the results of {run.commit[:12]}: " if run.commit else ""
                reason = reason or f"{self.at}: {of_run}{unavailable}"
        reasons = "; ".join(filter(None, [self.problem, reason]))
        raise Unavailable(reasons or f"{self.at} has no results of it")

    def _expected(self, suite: Suite, rows: Sequence[TestResult]) -> Mapping[str, Fingerprint]:
        """The fingerprints by id that the stored results of the tests must have."""
        expected = (self.stored or self.compared).describe(suite).expected(rows)
        if self.stored:
            return expected
        kept = (row for row in rows if row.eval_id in expected)
        return {row.eval_id: row.fingerprint or _UNKNOWN for row in kept}

    def _results(
        self, suite: Suite, rows: Sequence[TestResult], expected: Mapping[str, Fingerprint]
    ) -> tuple[TestResult, ...]:
        """The results of the newest run, with the samples of all runs that have the same
        fingerprints, oldest first."""
        history: defaultdict[str, list[SampleResult]] = defaultdict(list)
        judged = _judged_tests(suite)
        for run in reversed(self.runs):
            for row in _read_rows(run, suite):
                if row.fingerprint == expected.get(row.eval_id):
                    history[row.eval_id] += self._sound_samples(row, judged)
        by_id = {row.eval_id: row for row in rows}
        described, results, errored = self.compared.describe(suite), [], []
        for name in expected:
            samples = _latest(history[name], self._sound_samples(by_id[name], judged))
            if not samples:
                errored.append(name)
                continue
            result = described.with_samples(by_id[name], samples)
            fingerprint = result.fingerprint if self.stored else expected[name]
            results.append(_shown(replace(result, fingerprint=fingerprint, suite_samples=())))
        if errored:
            raise Unavailable(f"{_names(errored)} ended in an error there")
        return tuple(results)

    def _sound_samples(self, row: TestResult, judged: Collection[str]) -> Sequence[SampleResult]:
        """The scored samples by the rule of judges whose score and verdict fit each other, without
        samples of a confirmation; if there are none, the samples about which no evaluator decides.
        A sample of a `judged` test without the result of its judge does not count."""
        is_known = not self.rule.floor or row.eval_id not in judged
        samples = (
            stand_again(stored, self.rule)
            for stored in row.main_samples
            if is_known or stored.is_judged
        )
        return scoring.deciding_samples(
            [sample for sample in samples if sample and (sample.is_advisory or _is_sound(sample))]
        )


async def find_stored(
    sources: Sequence[StoredSource], suites: Mapping[str, Suite], info: BaselineInfo
) -> BaseResults:
    """The results of each suite (of base, by its path on head) from the first source that has them,
    else with the last reason as its problem. With `baseline: auto`, the sources that
    lack a suite are listed as tried."""
    bases, rows = dict.fromkeys(suites, BaseSuite()), dict[str, tuple[TestResult, ...]]()
    tried = []
    for source in sources:
        problems = {}
        for path in [path for path, base in bases.items() if base.origin is None]:
            try:
                bases[path], rows[path] = await source.find(suites[path])
            except Unavailable as reason:
                problems[path] = str(reason)
                bases[path] = BaseSuite(problem=f"{STORED[source.name]}: {reason}")
        if problems:
            tried.append(IncompleteSource(source.name, _summary(problems)))
    info = replace(info, tried=tuple(tried) if info.source == "auto" else ())
    return BaseResults(info, bases, rows)


def describe_origin(source: str, rows: Sequence[TestResult], commit: str | None) -> BaselineOrigin:
    """The origin of a suite's results, with the time of the latest result, and the number of
    samples of the test with the fewest."""
    times = {moment: row.timestamp for row in rows if (moment := parse_time(row.timestamp))}
    time = times[max(times)] if times else None
    return BaselineOrigin(
        source, commit, time=time, samples=min((len(row.samples) for row in rows), default=0)
    )


def parse_time(text: str | None) -> datetime | None:
    """A time (ISO 8601) in UTC, also if the text names no zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(text) if text else None
        return moment and (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _summary(problems: Mapping[str, str]) -> str:
    """The problem of all suites if they have the same, else the problems of the first suites."""
    different = list(dict.fromkeys(problems.values()))
    if len(different) == 1:
        return different[0]
    parts = [f"`{path}`: {problem}" for path, problem in list(problems.items())[:_SHOWN]]
    more = len(problems) - len(parts)
    return "; ".join([*parts, *([f"and {counted(more, 'more suite')}"] if more else [])])


def _read_rows(run: StoredRun, suite: Suite) -> Sequence[TestResult]:
    return [
        result
        for result in run.results
        if result.eval_path == suite.path and result.variant == suite.variant
    ]


def _require_all(rows: Sequence[TestResult], expected: Mapping[str, Fingerprint]) -> None:
    """Raises Unavailable unless each test has one row with its fingerprint."""
    stored = {row.eval_id: row.fingerprint for row in rows}
    if len(stored) != len(rows):
        raise Unavailable("a test has more than one result there")
    if missing := [name for name in expected if name not in stored]:
        be = plural(len(missing), "is", "are")
        raise Unavailable(f"{_names(missing)} of {len(expected)} {be} not in it")
    if different := [name for name in expected if stored[name] != expected[name]]:
        parts = [
            part
            for part in ("question", "grading", "agent")
            if any(
                getattr(stored[name], part, None) != getattr(expected[name], part)
                for name in different
            )
        ]
        were = plural(len(different), "was", "were")
        parts_named = " and ".join(parts)
        raise Unavailable(
            f"{_names(different)} {were} run with another {parts_named} than the base has"
        )


def _names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the test `{names[0]}`"
    return f"{counted(len(names), 'test')} (the first is `{names[0]}`)"


def _judged_tests(suite: Suite) -> Collection[str]:
    """The ids of the tests that a judge scores."""
    return {
        test.id
        for test in suite.tests
        if any(inner.asks_judge for evaluator in test.scoring for inner in evaluator.walk())
    }


def _is_sound(sample: SampleResult) -> bool:
    return (
        sample.error is None
        and (score := sample.score) is not None
        and 0 <= score <= 1
        and sample.verdict == scoring.compute_verdict(score, sample.gates_failed)
    )


def _latest(
    samples: Iterable[SampleResult], newest: Sequence[SampleResult]
) -> tuple[SampleResult, ...]:
    """The latest samples, of which only the last answer is kept. A cached answer was given before:
    cached samples count only if there are no others, and then only the samples of the `newest` run,
    because one answer must not look like many."""
    fresh = [sample for sample in samples if not sample.cached]
    kept = fresh or list(newest)
    # What other judges decided is no history of what the current judges decide.
    kept = [sample for sample in kept if sample.advisory == kept[-1].advisory][-SAMPLES:]
    answered = latest_answer(kept, _can_be_scored)
    return tuple(
        sample if index == answered else without_messages(sample)
        for index, sample in enumerate(kept)
    )


def _can_be_scored(sample: SampleResult) -> bool:
    try:
        stored_work(sample)
    except ValueError:  # somebody edited the file
        return False
    return True


def _shown(result: TestResult) -> TestResult:
    """A result shown by the sample that has an answer, if it has the verdict."""
    for sample in result.samples:
        if sample.output_messages and sample.verdict == result.verdict:
            return replace(
                result,
                candidate_answer=sample.candidate_answer,
                trace_summary=sample.trace_summary,
                evaluator_results=sample.evaluator_results,
            )
    return result
