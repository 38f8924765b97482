"""Runs tests: concurrency, samples, time-outs; one test's failure stays its own."""

import asyncio
import hashlib
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators import base as evaluators
from agentevals_action.execution.ordering import Lanes, Turn
from agentevals_action.model.result import Fingerprint, SampleResult, TestResult
from agentevals_action.model.suite import Evaluator, Message, Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.model.trace import Trace
from agentevals_action.results.build import (
    Tally,
    Work,
    agent_name,
    error_result,
    sample_result,
    stored_work,
    test_result,
)
from agentevals_action.targets.base import Request
from agentevals_action.targets.client import TargetClient

if TYPE_CHECKING:
    from agentevals_action.execution.workspaces.pool import Workspaces

log = logging.getLogger(__name__)

#: Seconds after which samples that wait for nothing let others have a turn.
_IN_ONE_GO = 0.05

#: A test with its place in the run (from 0) and its suite.
Placed = tuple[int, Suite, Test]
#: Called with the place of a test in the run (from 0), its suite and its result, as each test
#: finishes.
OnResult = Callable[[int, Suite, TestResult], None]


@dataclass(frozen=True)
class RunOptions:
    """`samples` runs of each test, `timeout` seconds for a test that says nothing itself,
    `max_concurrency` attempts at once."""

    samples: int = 1
    timeout: float = 300
    max_concurrency: int = 8


@dataclass(frozen=True)
class Children:
    """What judges' processes may see: the scrubbed environment, and the names that were withheld
    from it."""

    environment: Mapping[str, str]
    withheld: tuple[str, ...] = ()


@dataclass
class _Pending:
    """A test whose samples are under way."""

    index: int
    suite: Suite
    test: Test
    started: float
    workspaces: "Workspaces"
    refusal: AttemptError | None = None
    samples: list[SampleResult | None] = field(default_factory=list)
    fingerprint: Fingerprint | None = None


@dataclass(frozen=True)
class _Sample:
    """One sample under way: `number` from 0, `tally` what its replies cost."""

    pending: _Pending
    number: int
    tally: Tally = field(default_factory=Tally)

    @property
    def suite(self) -> Suite:
        return self.pending.suite

    @property
    def test(self) -> Test:
        return self.pending.test


class Runner:
    """One pool for everything that is run, on head and on base; `fingerprint` tells what a result
    depends on, `workspaces` makes the folders of one run that agents work in."""

    def __init__(
        self,
        calls: TargetClient,
        options: RunOptions,
        children: Children,
        fingerprint: Callable[[Suite, Test], Fingerprint],
        workspaces: "Callable[[], Workspaces]",
    ) -> None:
        self._calls = calls
        self._options = options
        self._children = children
        self._fingerprint = fingerprint
        self._workspaces = workspaces
        self._slots = asyncio.Semaphore(options.max_concurrency)
        self._run = secrets.token_hex(8)
        self._let = monotonic()

    async def run(
        self, tests: Iterable[Placed], on_result: OnResult, refusal: AttemptError | None = None
    ) -> None:
        """Runs tests as they come; no more of them are held in memory than run at once, beside
        those that wait for one before them.

        With a `refusal` (the tree could not be prepared) nothing is called and every test ends in
        that error."""
        workspaces = self._workspaces()
        samples, lanes, in_order = (
            self._samples(tests, workspaces, refusal),
            Lanes(workspaces),
            asyncio.Lock(),
        )

        async def work() -> None:
            # One sample after the other in one task: what an answer leads to, up to the next
            # request, is done in one go. In tasks of their own, answers that come together would be
            # worked off in turns, and all that is sent next would wait for the last of them.
            while True:
                async with in_order:
                    if (one := next(samples, None)) is None:
                        return
                    place = await lanes.place(one.suite, one.test, one.number)
                if place:
                    tasks.create_task(self._in_turn(place, one, on_result))
                else:
                    await self._run_sample(one, on_result)
                await self._let_others()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._options.max_concurrency):
                tasks.create_task(work())
        await workspaces.close()

    async def _let_others(self) -> None:
        """Lets signals and other tasks have their turn now and then: samples that wait for nothing
        would keep it to themselves."""
        if (now := monotonic()) - self._let >= _IN_ONE_GO:
            self._let = now
            await asyncio.sleep(0)

    def _samples(
        self, tests: Iterable[Placed], workspaces: "Workspaces", refusal: AttemptError | None
    ) -> Iterator[_Sample]:
        for index, suite, test in tests:
            pending = _Pending(
                index, suite, test, monotonic(), workspaces, refusal, [None] * self._options.samples
            )
            yield from (_Sample(pending, number) for number in range(self._options.samples))

    async def _in_turn(self, place: Turn, one: _Sample, on_result: OnResult) -> None:
        """A sample that others have to be over before; while it waits it takes no room in the
        pool."""
        async with place:
            await self._run_sample(one, on_result)

    async def regrade(self, suite: Suite, test: Test, base: TestResult) -> TestResult:
        """The base's stored answers graded by this suite's evaluators without a call to the agent;
        what has no answer is left out."""
        pending = _Pending(0, suite, test, monotonic(), self._workspaces())
        for number, stored in enumerate(base.samples):
            if (
                stored.error and not stored.output_messages
            ):  # it still ends in the error that it ended in
                pending.samples.append(stored)
            elif stored.output_messages:
                async with self._slots:
                    one = _Sample(pending, number, Tally.of(stored))
                    pending.samples.append(
                        await self._told(one, self._grade(one, stored_work(stored)))
                    )
        graded = self._result(pending)
        return replace(
            graded, timestamp=base.timestamp, eval_path=base.eval_path, duration_ms=base.duration_ms
        )

    async def again(
        self, suite: Suite, turns: Sequence[Test], first: int, count: int
    ) -> Sequence[SampleResult]:
        """Fresh samples of the last of these tests, numbered from `first`; those before it, earlier
        turns of its conversation, are run before each one. A test with a workspace gets folders
        that no other run has seen."""
        workspaces = self._workspaces()
        try:
            runs = [
                self._again(suite, turns, number, workspaces)
                for number in range(first, first + count)
            ]
            if any(test.workspace for test in turns):  # they may share a folder
                return [await run for run in runs]
            return await asyncio.gather(*runs)
        finally:
            await workspaces.close()

    async def _again(
        self, suite: Suite, turns: Sequence[Test], number: int, workspaces: "Workspaces"
    ) -> SampleResult:
        async with self._slots:
            for test in turns:
                one = _Sample(_Pending(0, suite, test, monotonic(), workspaces), number)
                result = await self._told(one, self._attempt(one))
            return result

    async def _run_sample(self, one: _Sample, on_result: OnResult) -> None:
        pending = one.pending
        async with self._slots:
            pending.started = pending.started if any(pending.samples) else monotonic()
            pending.samples[one.number] = await self._told(one, self._attempt(one))
        if all(pending.samples):
            on_result(pending.index, pending.suite, self._result(pending))

    async def _attempt(self, one: _Sample) -> SampleResult:
        if one.pending.refusal:
            raise one.pending.refusal
        if one.test.workspace is None:
            return await self._grade(one, Work(await self._ask_agent(one)))
        attempt = await one.pending.workspaces.enter(one.suite, one.test, one.number)
        try:
            trace = await self._ask_agent(one, attempt.path)
            result = await self._grade(one, Work(trace, attempt.path, await attempt.changes()))
        except Exception:
            await attempt.leave(failed=True)
            raise
        await attempt.leave(failed=result.verdict != "pass")
        return result

    async def _told(self, one: _Sample, work: Awaitable[SampleResult]) -> SampleResult:
        """What the work gives, or the error in which it ended."""
        try:
            return await work
        except AttemptError as error:
            return error_result(error, one.tally)
        except Exception as error:
            # A bug of ours must not take the other tests along: it is an error of this test, told
            # as what it is, never a score.
            log.exception("%s: test %s", one.suite.path, one.test.id)
            bug = AttemptError(
                "bug", f"{type(error).__name__}: {error} (a bug of the action: please report it)"
            )
            return error_result(bug, one.tally)

    async def _ask_agent(self, one: _Sample, workspace: Path | None = None) -> Trace:
        suite, test = one.suite, one.test
        target = _target(suite, agent_name(suite, test), "target")
        request = self._request(one, test.input)
        question = self._fingerprint_of(one.pending).question
        asked = replace(
            request,
            workspace=workspace,
            conversation_id=self._conversation(one),
            metadata=test.metadata,
            question=question,
        )
        try:
            return one.tally.add(await self._calls.complete(target, asked))
        except AttemptError as error:
            if error.spent is not None:
                one.tally.add(error.spent)
            raise

    def _conversation(self, one: _Sample) -> str | None:
        """The conversation as an agent knows it: another one in each run, on each side, for each
        sample, or they would hear each other."""
        name = one.test.conversation_id
        if name is None:
            return None
        place = f"{self._run} {one.suite.root} {one.suite.path} {one.number}"
        return f"{name}-{hashlib.sha256(place.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"

    def _request(self, one: _Sample, messages: Sequence[Message]) -> Request:
        suite = one.suite
        timeout = self._timeout(suite, one.test)
        return Request(
            messages, one.test.id, one.number, timeout, suite.root, suite.folder, suite=suite.path
        )

    def _timeout(self, suite: Suite, test: Test) -> float:
        return test.timeout_seconds or suite.timeout_seconds or self._options.timeout

    async def _grade(self, one: _Sample, work: Work) -> SampleResult:
        results = await evaluators.run_evaluators(one.test.evaluators, self._case(one, work))
        return sample_result(work, results, one.tally)

    def _case(self, one: _Sample, work: Work) -> evaluators.Case:
        async def ask(evaluator: Evaluator, messages: Sequence[Message]) -> str:
            return await self._ask_judge(one, evaluator, messages)

        return evaluators.Case(
            test=one.test,
            trace=work.trace,
            root=one.suite.root,
            timeout=self._timeout(one.suite, one.test),
            environment=self._children.environment,
            withheld=self._children.withheld,
            ask=ask,
            judges=lambda evaluator: self._judges(one, evaluator),
            workspace=work.folder,
            file_changes=work.changes,
        )

    def _judges(self, one: _Sample, evaluator: Evaluator) -> evaluators.Judges:
        targets = one.suite.targets
        default = _target(
            one.suite, targets.judge(evaluator.target, agent_name(one.suite, one.test)), "judge"
        )
        asked: Counter[str] = Counter()

        async def ask(name: str, messages: Sequence[Message]) -> Trace:
            question = repr((name, messages))
            asked[question] += 1  # a program may ask the same twice to hear two answers
            return await self._ask_target(
                one, _target(one.suite, name, "target"), messages, asked[question] - 1
            )

        return evaluators.Judges(default.name, tuple(sorted(targets.targets)), ask)

    async def _ask_judge(
        self, one: _Sample, evaluator: Evaluator, messages: Sequence[Message]
    ) -> str:
        suite = one.suite
        target = _target(
            suite, suite.targets.judge(evaluator.target, agent_name(suite, one.test)), "judge"
        )
        return (await self._ask_target(one, target, messages)).output

    async def _ask_target(
        self, one: _Sample, target: Target, messages: Sequence[Message], repeat: int = 0
    ) -> Trace:
        try:
            reply = await self._calls.complete(
                target, replace(self._request(one, messages), repeat=repeat)
            )
        except AttemptError as error:
            kind = "judge" if error.kind == "target" else error.kind
            raise AttemptError(
                kind, f"the judge `{target.name}` could not be asked: {error}", error.hint
            ) from error
        return one.tally.add(reply)

    def _result(self, pending: _Pending) -> TestResult:
        samples = [sample for sample in pending.samples if sample]
        took = round((monotonic() - pending.started) * 1000, 1)
        return test_result(
            pending.suite, pending.test, samples, took, self._fingerprint_of(pending)
        )

    def _fingerprint_of(self, pending: _Pending) -> Fingerprint:
        pending.fingerprint = pending.fingerprint or self._fingerprint(pending.suite, pending.test)
        return pending.fingerprint


def _target(suite: Suite, name: str | None, what: str) -> Target:
    target = suite.targets.targets.get(name) if name else None
    if target is None:
        known = ", ".join(sorted(suite.targets.targets)) or "none"
        raise AttemptError(
            "configuration",
            f"there is no {what} {f'`{name}`' if name else 'for this test'} (known targets: {known})",
        )
    return target


def placed(suites: Iterable[Suite]) -> Iterable[Placed]:
    """All tests of the suites in their order."""
    pairs = ((suite, test) for suite in suites for test in suite.tests)
    return ((index, suite, test) for index, (suite, test) in enumerate(pairs))
