"""Runs tests: concurrency, samples, time-outs; one test's failure stays its own."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from agentevals_action.calls import Calls
from agentevals_action.errors import AttemptError
from agentevals_action.evaluators import base as evaluators
from agentevals_action.lanes import Lanes, Turn
from agentevals_action.model.result import Fingerprint, SampleResult, TestResult
from agentevals_action.model.suite import Evaluator, Message, Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.model.trace import Trace
from agentevals_action.providers.base import Request
from agentevals_action.records import Spent, Work, agent_name, error_result, sample_result, stored_work, test_result

if TYPE_CHECKING:
    from agentevals_action.workspace import Workspaces

log = logging.getLogger(__name__)

#: A test with its place in the run (from 0) and its suite.
Placed = tuple[int, Suite, Test]
#: Called with the place of a test in the run (from 0), its suite and its result, as each test finishes.
OnResult = Callable[[int, Suite, TestResult], None]


@dataclass(frozen=True)
class RunOptions:
    """`samples` runs of each test, `timeout` seconds for a test that says nothing itself, `max_concurrency` attempts at once."""

    samples: int = 1
    timeout: float = 300
    max_concurrency: int = 8


@dataclass(frozen=True)
class Children:
    """What judges' processes may see: the scrubbed environment, and the names that were withheld from it."""

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
    costs: list[float] = field(default_factory=list)
    replies: int = 0
    cached: int = 0
    unpriced: int = 0


class Runner:
    """One pool for everything that is run, on head and on base; `fingerprint` tells what a result depends on, `workspaces` makes the
    folders of one run that agents work in."""

    def __init__(
        self,
        calls: Calls,
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

    async def run(self, tests: Iterable[Placed], on_result: OnResult, refusal: AttemptError | None = None) -> None:
        """Runs tests as they come; no more of them are held in memory than run at once, beside those that wait for one before them.

        With a `refusal` (the tree could not be prepared) nothing is called and every test ends in that error.
        """
        workspaces = self._workspaces()
        lanes = Lanes(workspaces)
        async with asyncio.TaskGroup() as tasks:
            for index, suite, test in tests:
                pending = _Pending(index, suite, test, monotonic(), workspaces, refusal, [None] * self._options.samples)
                for sample in range(self._options.samples):
                    if place := await lanes.place(suite, test, sample):
                        tasks.create_task(self._in_turn(place, pending, sample, on_result))
                    else:
                        await self._slots.acquire()
                        tasks.create_task(self._run_sample(pending, sample, on_result))
        await workspaces.close()

    async def _in_turn(self, place: Turn, pending: _Pending, sample: int, on_result: OnResult) -> None:
        """A sample that others have to be over before; while it waits it takes no room in the pool."""
        async with place:
            await self._slots.acquire()
            pending.started = pending.started if any(pending.samples) else monotonic()
            await self._run_sample(pending, sample, on_result)

    async def regrade(self, suite: Suite, test: Test, base: TestResult) -> TestResult:
        """The base's stored answers graded by this suite's evaluators, without a call to the agent."""
        pending = _Pending(0, suite, test, monotonic(), self._workspaces())
        pending.costs += [base.cost_usd] if base.cost_usd is not None else []
        pending.replies, pending.cached, pending.unpriced = base.replies, base.cached_replies, base.unpriced_replies
        for number, stored in enumerate(base.samples):
            if not stored.output_messages:  # it ended in an error, and still does
                pending.samples.append(stored)
                continue
            async with self._slots:
                pending.samples.append(await self._told(pending, self._grade(pending, number, stored_work(stored))))
        graded = self._result(pending)
        return graded.model_copy(update={"timestamp": base.timestamp, "eval_path": base.eval_path, "duration_ms": base.duration_ms})

    async def _run_sample(self, pending: _Pending, sample: int, on_result: OnResult) -> None:
        try:
            pending.samples[sample] = await self._told(pending, self._attempt(pending, sample))
        finally:
            self._slots.release()
        if all(result is not None for result in pending.samples):
            on_result(pending.index, pending.suite, self._result(pending))

    async def _attempt(self, pending: _Pending, sample: int) -> SampleResult:
        if pending.refusal:
            raise pending.refusal
        if pending.test.workspace is None:
            return await self._grade(pending, sample, Work(await self._ask_agent(pending, sample)))
        attempt = await pending.workspaces.enter(pending.suite, pending.test, sample)
        try:
            trace = await self._ask_agent(pending, sample, attempt.path)
            result = await self._grade(pending, sample, Work(trace, attempt.path, await attempt.changes()))
        except Exception:
            await attempt.leave(failed=True)
            raise
        await attempt.leave(failed=result.verdict != "pass")
        return result

    async def _told(self, pending: _Pending, work: Awaitable[SampleResult]) -> SampleResult:
        """What the work gives, or the error in which it ended."""
        try:
            return await work
        except AttemptError as error:
            return error_result(error)
        except Exception as error:
            # A bug of ours must not take the other tests along: it is an error of this test, told as what it is, never a score.
            log.exception("%s: test %s", pending.suite.path, pending.test.id)
            return error_result(AttemptError("bug", f"{type(error).__name__}: {error} (a bug of the action: please report it)"))

    async def _ask_agent(self, pending: _Pending, sample: int, workspace: Path | None = None) -> Trace:
        suite, test = pending.suite, pending.test
        target = _target(suite, agent_name(suite, test), "target")
        request = self._request(pending, sample, test.input)
        asked = replace(request, workspace=workspace, conversation_id=test.conversation_id, metadata=test.metadata)
        return _counted(pending, await self._calls.complete(target, asked))

    def _request(self, pending: _Pending, sample: int, messages: Sequence[Message]) -> Request:
        suite, test = pending.suite, pending.test
        return Request(messages, test.id, sample, self._timeout(suite, test), suite.root, suite.folder, suite=suite.path)

    def _timeout(self, suite: Suite, test: Test) -> float:
        return test.timeout_seconds or suite.timeout_seconds or self._options.timeout

    async def _grade(self, pending: _Pending, sample: int, work: Work) -> SampleResult:
        return sample_result(work, await evaluators.grade_all(pending.test.evaluators, self._case(pending, sample, work)))

    def _case(self, pending: _Pending, sample: int, work: Work) -> evaluators.Case:
        async def ask(evaluator: Evaluator, messages: Sequence[Message]) -> str:
            return await self._ask_judge(pending, sample, evaluator, messages)

        return evaluators.Case(
            test=pending.test,
            trace=work.trace,
            root=pending.suite.root,
            timeout=self._timeout(pending.suite, pending.test),
            environment=self._children.environment,
            withheld=self._children.withheld,
            ask=ask,
            judges=lambda evaluator: self._judges(pending, sample, evaluator),
            workspace=work.folder,
            file_changes=work.changes,
        )

    def _judges(self, pending: _Pending, sample: int, evaluator: Evaluator) -> evaluators.Judges:
        targets = pending.suite.targets
        default = _target(pending.suite, targets.judge(evaluator.target, agent_name(pending.suite, pending.test)), "judge")

        asked: Counter[str] = Counter()

        async def ask(name: str, messages: Sequence[Message]) -> Trace:
            question = repr((name, messages))
            asked[question] += 1  # a program may ask the same twice to hear two answers
            return await self._ask_target(pending, sample, _target(pending.suite, name, "target"), messages, asked[question] - 1)

        return evaluators.Judges(default.name, tuple(sorted(targets.targets)), ask)

    async def _ask_judge(self, pending: _Pending, sample: int, evaluator: Evaluator, messages: Sequence[Message]) -> str:
        suite = pending.suite
        target = _target(suite, suite.targets.judge(evaluator.target, agent_name(suite, pending.test)), "judge")
        return (await self._ask_target(pending, sample, target, messages)).output

    async def _ask_target(self, pending: _Pending, sample: int, target: Target, messages: Sequence[Message], repeat: int = 0) -> Trace:
        try:
            reply = await self._calls.complete(target, replace(self._request(pending, sample, messages), repeat=repeat))
        except AttemptError as error:
            kind = "judge" if error.kind == "target" else error.kind
            raise AttemptError(kind, f"the judge `{target.name}` could not be asked: {error}", error.hint) from error
        return _counted(pending, reply)

    def _result(self, pending: _Pending) -> TestResult:
        suite, test = pending.suite, pending.test
        cost = sum(pending.costs) if pending.costs or pending.cached else None
        took = round((monotonic() - pending.started) * 1000, 1)
        spent = Spent(cost, pending.replies, pending.cached, pending.unpriced, took)
        samples = [sample for sample in pending.samples if sample]
        return test_result(suite, test, samples, spent, self._fingerprint(suite, test))


def _counted(pending: _Pending, reply: Trace) -> Trace:
    """The same reply, with what it cost put down; a stored one costs nothing."""
    pending.replies += 1
    if reply.cached:
        pending.cached += 1
    elif reply.cost_usd is not None:
        pending.costs.append(reply.cost_usd)
    else:
        pending.unpriced += 1
    return reply


def _target(suite: Suite, name: str | None, what: str) -> Target:
    target = suite.targets.targets.get(name) if name else None
    if target is None:
        known = ", ".join(sorted(suite.targets.targets)) or "none"
        raise AttemptError("configuration", f"there is no {what} {f'`{name}`' if name else 'for this test'} (known targets: {known})")
    return target


def placed(suites: Iterable[Suite]) -> Iterable[Placed]:
    """All tests of the suites in their order."""
    pairs = ((suite, test) for suite in suites for test in suite.tests)
    return ((index, suite, test) for index, (suite, test) in enumerate(pairs))
