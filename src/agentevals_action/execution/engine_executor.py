"""The executor of a suite in our format: concurrency, samples, conversations, shared workspaces."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Hashable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

from agentevals_action.execution.attempts import Attempt
from agentevals_action.execution.conversations import with_earlier_turns
from agentevals_action.execution.engine import Engine
from agentevals_action.execution.executor import (
    AttemptStarted,
    Emit,
    Pair,
    SuiteExecutor,
    SuiteResults,
    SuiteStarted,
)
from agentevals_action.execution.workspaces.pool import WorkspacePool
from agentevals_action.model.result import ErrorInfo, SampleResult, TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.results.build import test_result
from agentevals_action.system.redaction import without_secrets


class _Ordering:
    """Runs samples of one run that share a workspace or a conversation one after another. Each
    sample names the keys of what it shares."""

    def __init__(self) -> None:
        self._last: dict[Hashable, asyncio.Event] = {}

    def enqueue(self, keys: Sequence[Hashable]) -> AbstractAsyncContextManager[None]:
        """The place of the next sample in suite order: it is entered when every earlier sample with
        one of these keys is done. Each place must be entered, or later samples wait for ever."""
        before = [event for key in keys if (event := self._last.get(key))]
        done = asyncio.Event()
        self._last.update(dict.fromkeys(keys, done))
        return _place(before, done)


@asynccontextmanager
async def _place(before: Sequence[asyncio.Event], done: asyncio.Event) -> AsyncIterator[None]:
    try:
        for event in before:
            await event.wait()
        yield
    finally:
        done.set()


@dataclass
class _RunningTest:
    """A test of a run: when it started, and its completed samples by number."""

    test: Test
    started: float = 0.0
    samples: dict[int, SampleResult] = field(default_factory=dict)


class EngineExecutor(SuiteExecutor):
    """Runs a suite with the targets and evaluators of the engine."""

    scores_answers = True

    def __init__(self, suite: Suite, engine: Engine) -> None:
        super().__init__(suite)
        self._engine, self._attempts = engine, engine.attempts
        self._tests = {test.id: test for test in suite.tests}
        #: The number of samples of each test that exist.
        self._taken = Counter(dict.fromkeys(self._tests, engine.settings.samples))

    @property
    def tests(self) -> Sequence[str]:
        """The ids of its tests."""
        return tuple(self._tests)

    async def _run(self, emit: Emit, without: Collection[str]) -> SuiteResults:
        """Runs the tests in order. Earlier turns of a conversation run with the later turns, even
        if they are in `without`: then they have no result."""
        tests = with_earlier_turns(self.suite, lambda test: test.id not in without)
        emit(SuiteStarted(self.suite.path, len(tests)))
        if not tests:
            return SuiteResults(())
        await self._engine.prepare(self.suite.root)
        workspaces, ordering = self._engine.open_workspaces(self.suite.root), _Ordering()
        results: dict[str, TestResult] = {}

        async def run_sample(
            running: _RunningTest, number: int, place: AbstractAsyncContextManager[None]
        ) -> None:
            test = running.test
            try:
                async with place, self._attempts.slots:
                    emit(AttemptStarted(self.suite.path, test.id))
                    running.started = running.started or monotonic()
                    attempt = Attempt(self.suite, test, number)
                    running.samples[number] = await self._attempts.make(attempt, workspaces)
                if len(running.samples) == self._engine.settings.samples:
                    results[test.id] = self._result(running)
                    emit(results[test.id])
            finally:
                self._attempts.waiting.release()

        try:
            async with asyncio.TaskGroup() as tasks:
                for test in tests:
                    running = _RunningTest(test)
                    for number in range(self._engine.settings.samples):
                        await self._attempts.waiting.acquire()
                        place = ordering.enqueue(_shared_keys(workspaces, self.suite, test, number))
                        tasks.create_task(run_sample(running, number, place))
        finally:
            await workspaces.close()
        return SuiteResults(tuple(results[test.id] for test in tests if test.id not in without))

    async def sample(self, test: str, count: int) -> Sequence[SampleResult]:
        """Fresh samples. The earlier turns of the test's conversation run before each of them. A
        test with a workspace gets folders that no other run uses."""
        turns = with_earlier_turns(self.suite, lambda turn: turn.id == test)
        await self._engine.prepare(self.suite.root)
        workspaces = self._engine.open_workspaces(self.suite.root)
        first = self._taken[test]
        self._taken[test] += count

        async def sample_once(number: int) -> SampleResult:
            async with self._attempts.slots:
                for turn in turns:
                    sample = await self._attempts.make(
                        Attempt(self.suite, turn, number), workspaces
                    )
                return sample

        try:
            numbers = range(first, first + count)
            if any(turn.workspace for turn in turns):  # they may share a folder
                return without_secrets([await sample_once(number) for number in numbers])
            return without_secrets(await asyncio.gather(*map(sample_once, numbers)))
        finally:
            await workspaces.close()

    async def score(self, test: str, samples: Sequence[SampleResult]) -> Sequence[SampleResult]:
        """The samples, scored by the evaluators of this suite. Its tree is prepared if a program
        is one of them."""
        evaluators = self._tests[test].evaluators
        inside = (inner for evaluator in evaluators for inner in evaluator.walk())
        if any(evaluator.type == "code_judge" for evaluator in inside):
            await self._engine.prepare(self.suite.root)
        scored: list[SampleResult] = []
        for number, stored in enumerate(samples):
            if stored.output_messages:
                async with self._attempts.slots:
                    attempt = Attempt(self.suite, self._tests[test], number)
                    scored.append(await self._attempts.score(attempt, stored))
            elif stored.error:
                scored.append(stored)
        return without_secrets(scored)

    async def compare(self, test: str, pair: Pair, number: int = 0) -> SampleResult:
        """The comparison of the answers of two samples of a test."""
        async with self._attempts.slots:
            attempt = Attempt(self.suite, self._tests[test], number)
            return without_secrets(await self._attempts.compare(attempt, *pair))

    def error_row(self, test: str, error: ErrorInfo) -> TestResult:
        """The result of a test that did not run."""
        return self._row(self._tests[test], [SampleResult(error=error)], None)

    def _result(self, running: _RunningTest) -> TestResult:
        """The result over all samples, without secrets."""
        samples = [running.samples[number] for number in sorted(running.samples)]
        duration_ms = round((monotonic() - running.started) * 1000, 1)
        return self._row(running.test, samples, duration_ms)

    def _row(
        self, test: Test, samples: Sequence[SampleResult], duration_ms: float | None
    ) -> TestResult:
        fingerprint = self._engine.fingerprints.of(self.suite, test)
        return without_secrets(test_result(self.suite, test, samples, duration_ms, fingerprint))


def _shared_keys(
    workspaces: WorkspacePool, suite: Suite, test: Test, number: int
) -> Sequence[Hashable]:
    """The keys of what a sample shares with others: its workspace and its conversation."""
    keys = [workspaces.shared_key(suite, test)]
    if test.conversation_id is not None:
        keys.append((suite.path, test.conversation_id, number))
    return [key for key in keys if key is not None]
