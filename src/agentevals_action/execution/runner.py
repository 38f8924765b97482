"""The runner of tests: concurrency, samples, time-outs. An error of one test does not affect the
others."""

import asyncio
import hashlib
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from agentevals_action.errors import AttemptError, NotStored
from agentevals_action.evaluators import base as evaluators
from agentevals_action.execution.ordering import Ordering
from agentevals_action.execution.workspaces.pool import WorkspacePool
from agentevals_action.formatting import cut_line, quoted
from agentevals_action.model.messages import Message
from agentevals_action.model.result import Fingerprint, SampleResult, TestResult
from agentevals_action.model.suite import Case, Evaluator, Judges, Suite, Test
from agentevals_action.model.target import Calls, Request, Target
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Spending, total_spending
from agentevals_action.results.build import (
    error_result,
    sample_result,
    test_result,
)
from agentevals_action.results.trace_summary import Work, stored_work
from agentevals_action.settings import Settings
from agentevals_action.system.child_environment import CHECKOUT_VARIABLE, ChildContext
from agentevals_action.system.program import Program
from agentevals_action.system.redaction import without_secrets
from agentevals_action.system.resources import exhausted

log = logging.getLogger(__name__)

#: Samples that are in memory at once and wait, for a free slot or for an earlier sample.
_MAX_WAITING = 256
#: Characters of the reason why a call was not made.
_REASON_SHOWN = 200
_NO_REASON = "it was refused, or waits for a person"


@dataclass(frozen=True)
class Event:
    """An attempt of a test starts, or all its samples are done: then there is the result, which
    contains no secret."""

    suite: Suite
    test: Test
    result: TestResult | None = None


@dataclass(frozen=True)
class _Sample:
    """One sample that is being made: its number from 0, and what its replies cost."""

    suite: Suite
    test: Test
    number: int
    spent: list[Spending] = field(default_factory=list)
    #: What a program that judges asked for and is not stored.
    not_stored: list[AttemptError] = field(default_factory=list)


@dataclass
class _RunningTest:
    """A test of a run: when it started, and the samples by number that are done."""

    suite: Suite
    test: Test
    started: float = 0.0
    samples: dict[int, SampleResult] = field(default_factory=dict)


class Runner:
    """Runs the tests of head and of base with one limit of concurrency: `samples` of each test,
    `max_concurrency` at once. `children` are the programs that judge, `fingerprint` computes what a
    result depends on, `open_workspaces` makes the folders that the agents of one run in a tree
    work in, `judge_path` returns, for a path in the tree of a suite, the path from which a judge
    runs. `notice` receives sentences about replies."""

    def __init__(
        self,
        calls: Calls,
        settings: Settings,
        children: ChildContext,
        fingerprint: Callable[[Suite, Test], Fingerprint],
        open_workspaces: Callable[[Path], WorkspacePool],
        judge_path: Callable[[Path], Path],
        notice: Callable[[str], None],
    ) -> None:
        self._calls, self._settings, self._children = calls, settings, children
        self._fingerprint, self._notice = fingerprint, notice
        self._open_workspaces, self._judge_path = open_workspaces, judge_path
        self._slots = asyncio.Semaphore(settings.max_concurrency)
        self._run_id = secrets.token_hex(8)

    async def run(
        self,
        suites: Sequence[Suite],
        emit: Callable[[Event], None],
        error: AttemptError | None = None,
    ) -> tuple[TestResult, ...]:
        """Runs the tests of suites, which are of one tree, in order; their results in the same
        order. With an `error` (the tree could not be prepared) no target is called and every test
        ends in it. `emit` receives each event when it happens."""
        workspaces, ordering = self._open_workspaces(suites[0].root), Ordering()
        waiting = asyncio.Semaphore(_MAX_WAITING)
        results: dict[tuple[str, str], TestResult] = {}

        async def run_sample(
            running: _RunningTest, number: int, place: AbstractAsyncContextManager[None]
        ) -> None:
            suite, test = running.suite, running.test
            try:
                async with place, self._slots:
                    emit(Event(suite, test))
                    running.started = running.started or monotonic()
                    sample = _Sample(suite, test, number)
                    work = self._attempt(sample, workspaces, error)
                    running.samples[number] = await _or_error(sample, work)
                if len(running.samples) == self._settings.samples:
                    result = results[suite.path, test.id] = self._result(running)
                    emit(Event(suite, test, result))
            finally:
                waiting.release()

        tests = [(suite, test) for suite in suites for test in suite.tests]
        try:
            async with asyncio.TaskGroup() as tasks:
                for suite, test in tests:
                    running = _RunningTest(suite, test)
                    for number in range(self._settings.samples):
                        await waiting.acquire()
                        place = ordering.enqueue(_shared_keys(workspaces, suite, test, number))
                        tasks.create_task(run_sample(running, number, place))
        finally:
            await workspaces.close()
        return tuple(results[suite.path, test.id] for suite, test in tests)

    async def regrade(
        self, suite: Suite, test: Test, samples: Sequence[SampleResult]
    ) -> Sequence[SampleResult]:
        """Stored samples, scored by the evaluators of this suite. The agent is not called; samples
        without an answer and without an error are left out."""
        regraded: list[SampleResult] = []
        for number, stored in enumerate(samples):
            if stored.output_messages:
                async with self._slots:
                    sample = _Sample(suite, test, number, spent=[stored.spent])
                    work = self._grade(sample, stored_work(stored))
                    regraded.append(await _or_error(sample, work))
            elif stored.error:
                regraded.append(stored)
        return without_secrets(regraded)

    async def resample(
        self, suite: Suite, turns: Sequence[Test], first: int, count: int
    ) -> Sequence[SampleResult]:
        """Fresh samples of the last of these tests, numbered from `first`. The tests before it are
        earlier turns of its conversation and run before each sample. A test with a workspace gets
        folders that no other run uses."""
        workspaces = self._open_workspaces(suite.root)

        async def resample_once(number: int) -> SampleResult:
            async with self._slots:
                for test in turns:
                    sample = _Sample(suite, test, number)
                    result = await _or_error(sample, self._attempt(sample, workspaces))
                return result

        try:
            samples = [resample_once(number) for number in range(first, first + count)]
            if any(test.workspace for test in turns):  # they may share a folder
                return without_secrets([await sample for sample in samples])
            return without_secrets(await asyncio.gather(*samples))
        finally:
            await workspaces.close()

    def _result(self, running: _RunningTest) -> TestResult:
        """The result over all samples, without secrets."""
        suite, test = running.suite, running.test
        samples = [running.samples[number] for number in sorted(running.samples)]
        duration_ms = round((monotonic() - running.started) * 1000, 1)
        fingerprint = self._fingerprint(suite, test)
        return without_secrets(test_result(suite, test, samples, duration_ms, fingerprint))

    async def _attempt(
        self, sample: _Sample, workspaces: WorkspacePool, error: AttemptError | None = None
    ) -> SampleResult:
        if error:
            raise error
        if sample.test.workspace is None:
            return await self._grade(sample, Work(await self._call_agent(sample)))
        folder = await workspaces.enter(sample.suite, sample.test)
        try:
            trace = await self._call_agent(sample, folder.path)
            work = Work(trace, folder.path, await folder.changes())
            return await self._grade(sample, work)
        finally:
            await folder.leave(sample.test)

    async def _call_agent(self, sample: _Sample, workspace: Path | None = None) -> Trace:
        test = sample.test
        target = _target(sample.suite, sample.suite.target_of(test), "target")
        request = self._request(
            sample,
            test.input,
            workspace=workspace,
            conversation_id=self._conversation_id(sample),
            metadata=test.metadata,
            question=self._fingerprint(sample.suite, test).question,
        )
        try:
            trace = await self._calls.complete(target, request)
        except AttemptError as error:
            if error.spent is not None:
                sample.spent.append(error.spent.spent)
            raise
        sample.spent.append(trace.spent)
        for sentence in _about_reply(trace):
            self._notice(f"the target `{target.name}`: {sentence}")
        return trace

    def _conversation_id(self, sample: _Sample) -> str | None:
        """The id under which an agent knows the conversation. It differs for each run, side and
        sample, so that an agent with a memory does not mix them."""
        name = sample.test.conversation_id
        if name is None:
            return None
        key = f"{self._run_id} {sample.suite.root} {sample.suite.path} {sample.number}"
        return f"{name}-{hashlib.sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"

    def _request(self, sample: _Sample, messages: Sequence[Message], **fields: Any) -> Request:
        return Request(
            messages,
            eval_id=sample.test.id,
            attempt=sample.number,
            timeout=self._timeout(sample),
            root=sample.suite.root,
            suite_folder=sample.suite.folder,
            suite=sample.suite.path,
            **fields,
        )

    def _timeout(self, sample: _Sample) -> float:
        return sample.test.timeout_seconds or sample.suite.timeout_seconds or self._settings.timeout

    async def _grade(self, sample: _Sample, work: Work) -> SampleResult:
        """The scores of an agent's work."""

        async def ask(evaluator: Evaluator, messages: Sequence[Message]) -> str:
            judge, own = _judge(sample, evaluator), evaluator.judge_temperature()
            return (await self._call_judge(sample, judge, messages, temperature=own)).output

        case = Case(
            test=sample.test,
            trace=work.trace,
            root=sample.suite.root,
            timeout=self._timeout(sample),
            program=partial(self._judge_program, sample.suite.root, bool(work.folder)),
            ask=ask,
            judges=lambda evaluator: self._judges(sample, evaluator),
            notice=self._notice,
            workspace=work.folder,
            file_changes=work.changes,
            judge_path=self._judge_path,
        )
        results = await evaluators.run_evaluators(sample.test.evaluators, case)
        if sample.not_stored:  # a program may give a score without the reply
            raise sample.not_stored[0]
        return sample_result(work, results, total_spending(sample.spent))

    def _judge_program(
        self,
        root: Path,
        has_workspace: bool,
        words: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
    ) -> Program:
        user, start = self._children.isolation.judge_of(root), self._judge_path(folder)
        own = {CHECKOUT_VARIABLE: str(root), **variables}
        program = self._children.program(words, start, user, own)
        if has_workspace:  # its tests run what is there, as another version of the packages
            return program
        return self._children.with_packages(program, root, self._judge_path(root), start)

    def _judges(self, sample: _Sample, evaluator: Evaluator) -> Judges:
        asked: Counter[str] = Counter()

        async def ask(name: str, messages: Sequence[Message]) -> Trace:
            question = repr((name, messages))
            asked[question] += 1  # a program may ask the same twice to get two answers
            target = _target(sample.suite, name, "target")
            try:
                return await self._call_judge(sample, target, messages, asked[question] - 1)
            except AttemptError as error:
                if isinstance(error.__cause__, NotStored):
                    sample.not_stored.append(error)
                raise

        names = tuple(sorted(sample.suite.targets.targets))
        return Judges(_judge(sample, evaluator).name, names, ask)

    async def _call_judge(
        self,
        sample: _Sample,
        target: Target,
        messages: Sequence[Message],
        repeat: int = 0,
        temperature: float | None = None,
    ) -> Trace:
        # Attack: a program that judges asks the agent, which leaves modules in the judges' `HOME`.
        is_judge = target.name != sample.suite.target_of(sample.test)
        request = self._request(
            sample, messages, repeat=repeat, is_judge=is_judge, temperature=temperature
        )
        try:
            trace = await self._calls.complete(target, request)
        except AttemptError as error:
            kind = "judge" if error.kind == "target" else error.kind
            problem = f"the judge `{target.name}` could not be asked: {error}"
            raise AttemptError(kind, problem, error.hint) from error
        sample.spent.append(trace.spent)
        return trace


async def _or_error(sample: _Sample, work: Awaitable[SampleResult]) -> SampleResult:
    """The result of the work, or the error in which it ended."""
    try:
        return await work
    except AttemptError as expected:
        error = expected
    except Exception as unexpected:
        if cause := exhausted(unexpected):
            error = AttemptError("resources", str(cause), cause.hint)
        else:  # a bug of ours is an error of this test and never a score; the other tests go on
            log.exception("%s: test %s", sample.suite.path, sample.test.id)
            problem = f"{type(unexpected).__name__}: {unexpected}"
            error = AttemptError("bug", f"{problem} (a bug of the action: please report it)")
    return error_result(error, total_spending(sample.spent))


def _shared_keys(
    workspaces: WorkspacePool, suite: Suite, test: Test, number: int
) -> Sequence[Hashable]:
    """The keys of what a sample shares with others: its workspace and its conversation."""
    keys = [workspaces.shared_key(suite, test)]
    if test.conversation_id is not None:
        keys.append((suite.path, test.conversation_id, number))
    return [key for key in keys if key is not None]


def _about_reply(trace: Trace) -> Iterator[str]:
    yield from trace.warnings
    refused = {call.name: call.output for call in trace.tool_calls or () if call.refused}
    for name, output in refused.items():
        reason = output if isinstance(output, str) and output.strip() else _NO_REASON
        yield (
            f"the call of {quoted(name)} was not made ({cut_line(reason, _REASON_SHOWN)}); permit "
            "it (command-line agents: in the target's `args`), or expect no such call"
        )


def _judge(sample: _Sample, evaluator: Evaluator) -> Target:
    suite = sample.suite
    choice = suite.judge_choice(evaluator, suite.agent_of(sample.test))
    return _target(suite, choice.name, "judge")


def _target(suite: Suite, name: str | None, role: str) -> Target:
    target = suite.targets.get(name)
    if target is None:
        known = ", ".join(sorted(suite.targets.targets)) or "none"
        wanted = f"{role} `{name}`" if name else f"{role} for this test"
        raise AttemptError("configuration", f"there is no {wanted} (known targets: {known})")
    return target
