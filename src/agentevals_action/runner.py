"""Runs tests: concurrency, samples, time-outs; one test's failure stays its own."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic

from agentevals_action import scoring
from agentevals_action.calls import Calls
from agentevals_action.errors import AttemptError
from agentevals_action.evaluators import base as evaluators
from agentevals_action.figures import summary_of
from agentevals_action.messages import read_message, wire_messages
from agentevals_action.model.result import ErrorInfo, Fingerprint, GateRecord, SampleResult, TestResult, TraceSummary
from agentevals_action.model.suite import Evaluator, Message, Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.model.trace import Trace, text_of
from agentevals_action.providers.base import Request

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
    refusal: AttemptError | None = None
    samples: list[SampleResult | None] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)


class Runner:
    """One pool for everything that is run, on head and on base; `fingerprint` tells what a result depends on."""

    def __init__(self, calls: Calls, options: RunOptions, children: Children, fingerprint: Callable[[Suite, Test], Fingerprint]) -> None:
        self._calls = calls
        self._options = options
        self._children = children
        self._fingerprint = fingerprint
        self._slots = asyncio.Semaphore(options.max_concurrency)

    async def run(self, tests: Iterable[Placed], on_result: OnResult, refusal: AttemptError | None = None) -> None:
        """Runs tests as they come; no more of them are held in memory than run at once.

        With a `refusal` (the tree could not be prepared) nothing is called and every test ends in that error.
        """
        async with asyncio.TaskGroup() as tasks:
            for index, suite, test in tests:
                pending = _Pending(index, suite, test, monotonic(), refusal, [None] * self._options.samples)
                for sample in range(self._options.samples):
                    await self._slots.acquire()
                    tasks.create_task(self._run_sample(pending, sample, on_result))

    async def regrade(self, suite: Suite, test: Test, base: TestResult) -> TestResult:
        """The base's stored answers graded by this suite's evaluators, without a call to the agent."""
        pending = _Pending(0, suite, test, monotonic())
        for number, stored in enumerate(base.samples):
            if not stored.output_messages:  # it ended in an error, and still does
                pending.samples.append(stored)
                continue
            async with self._slots:
                pending.samples.append(await self._told(pending, self._grade(pending, number, _stored_trace(stored))))
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
        return await self._grade(pending, sample, await self._ask_agent(pending, sample))

    async def _told(self, pending: _Pending, work: Awaitable[SampleResult]) -> SampleResult:
        """What the work gives, or the error in which it ended."""
        try:
            return await work
        except AttemptError as error:
            return SampleResult(error=_error_info(error))
        except Exception as error:
            # A bug of ours must not take the other tests along: it is an error of this test, told as what it is, never a score.
            log.exception("%s: test %s", pending.suite.path, pending.test.id)
            return SampleResult(
                error=ErrorInfo(kind="bug", message=f"{type(error).__name__}: {error} (a bug of the action: please report it)")
            )

    async def _ask_agent(self, pending: _Pending, sample: int) -> Trace:
        target = _target(pending.suite, agent_name(pending.suite, pending.test), "target")
        return await self._calls.complete(target, self._request(pending, sample, pending.test.input))

    def _request(self, pending: _Pending, sample: int, messages: Sequence[Message]) -> Request:
        suite, test = pending.suite, pending.test
        return Request(messages, test.id, sample, self._timeout(suite, test), suite.root, suite.folder)

    def _timeout(self, suite: Suite, test: Test) -> float:
        return test.timeout_seconds or suite.timeout_seconds or self._options.timeout

    async def _grade(self, pending: _Pending, sample: int, trace: Trace) -> SampleResult:
        case = self._case(pending, sample, trace)
        if trace.cost_usd is not None:
            pending.costs.append(trace.cost_usd)
        results = await asyncio.gather(*(evaluators.grade(evaluator, case) for evaluator in pending.test.evaluators))
        score, verdict, gates = scoring.score_sample(results)
        return SampleResult(
            score=score,
            verdict=verdict,
            gates_failed=gates,
            candidate_answer=trace.output,
            output_messages=tuple(wire_messages(trace.messages)),
            trace_summary=summary_of(trace),
            evaluator_results=tuple(results),
            error=next((result.error for result in results if result.error), None),
        )

    def _case(self, pending: _Pending, sample: int, trace: Trace) -> evaluators.Case:
        async def ask(evaluator: Evaluator, messages: Sequence[Message]) -> str:
            return await self._ask_judge(pending, sample, evaluator, messages)

        return evaluators.Case(
            test=pending.test,
            trace=trace,
            root=pending.suite.root,
            timeout=self._timeout(pending.suite, pending.test),
            environment=self._children.environment,
            withheld=self._children.withheld,
            ask=ask,
            judges=lambda evaluator: self._judges(pending, sample, evaluator),
        )

    def _judges(self, pending: _Pending, sample: int, evaluator: Evaluator) -> evaluators.Judges:
        targets = pending.suite.targets
        default = _target(pending.suite, targets.judge(evaluator.target, agent_name(pending.suite, pending.test)), "judge")

        async def ask(name: str, messages: Sequence[Message]) -> Trace:
            return await self._ask_target(pending, sample, _target(pending.suite, name, "target"), messages)

        return evaluators.Judges(default.name, tuple(sorted(targets.targets)), ask)

    async def _ask_judge(self, pending: _Pending, sample: int, evaluator: Evaluator, messages: Sequence[Message]) -> str:
        suite = pending.suite
        target = _target(suite, suite.targets.judge(evaluator.target, agent_name(suite, pending.test)), "judge")
        return (await self._ask_target(pending, sample, target, messages)).output

    async def _ask_target(self, pending: _Pending, sample: int, target: Target, messages: Sequence[Message]) -> Trace:
        try:
            reply = await self._calls.complete(target, self._request(pending, sample, messages))
        except AttemptError as error:
            kind = "judge" if error.kind == "target" else error.kind
            raise AttemptError(kind, f"the judge `{target.name}` could not be asked: {error}", error.hint) from error
        if reply.cost_usd is not None:
            pending.costs.append(reply.cost_usd)
        return reply

    def _result(self, pending: _Pending) -> TestResult:
        suite, test = pending.suite, pending.test
        samples = tuple(sample for sample in pending.samples if sample)
        score, verdict, gates = scoring.combine_samples(samples)
        shown = next((sample for sample in samples if sample.verdict == verdict), samples[0])
        return TestResult(
            timestamp=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            eval_id=test.id,
            dataset=suite.name,
            conversation_id=test.conversation_id,
            score=score,
            verdict=verdict,
            hits=tuple(hit for result in shown.evaluator_results for hit in result.hits),
            misses=tuple(miss for result in shown.evaluator_results for miss in result.misses),
            candidate_answer=shown.candidate_answer,
            target=agent_name(suite, test) or "",
            trace_summary=shown.trace_summary,
            evaluator_results=shown.evaluator_results,
            eval_path=suite.path,
            path=test.location.path,
            line=test.location.line,
            question=_question(test),
            gates=tuple(GateRecord(name=gate.name, path=gate.location.path, line=gate.location.line) for gate in test.gates),
            gates_failed=tuple(sorted(gates, key=_place_in(test))),
            samples=samples,
            cost_usd=sum(pending.costs) if pending.costs else None,
            duration_ms=round((monotonic() - pending.started) * 1000, 1),
            error=next((sample.error for sample in samples if sample.error), None),
            fingerprint=self._fingerprint(suite, test),
        )


def agent_name(suite: Suite, test: Test) -> str | None:
    """Name of the target that a test is put to."""
    return suite.targets.agent(test.target or suite.default_target)


def _target(suite: Suite, name: str | None, what: str) -> Target:
    target = suite.targets.targets.get(name) if name else None
    if target is None:
        known = ", ".join(sorted(suite.targets.targets)) or "none"
        raise AttemptError("configuration", f"there is no {what} {f'`{name}`' if name else 'for this test'} (known targets: {known})")
    return target


def _place_in(test: Test) -> Callable[[str], int]:
    """The place of a gate among those that the test declares."""
    places = {gate.name: place for place, gate in enumerate(test.gates)}
    return lambda name: places.get(name, len(places))


def _error_info(error: AttemptError) -> ErrorInfo:
    return ErrorInfo(kind=error.kind, message=f"{error} {error.hint}".strip())


def _question(test: Test) -> str:
    asked = [message for message in test.input if message.role == "user"] or list(test.input)
    return text_of(asked[-1]) if asked else ""


def _stored_trace(sample: SampleResult) -> Trace:
    messages = tuple(read_message(data) for data in sample.output_messages)
    figures = sample.trace_summary or TraceSummary()
    known = figures.tool_call_count is not None
    return Trace(
        messages=messages,
        tool_calls=tuple(call for message in messages for call in message.tool_calls) if known else None,
        llm_call_count=figures.llm_call_count,
        input_tokens=figures.input_tokens,
        output_tokens=figures.output_tokens,
        cost_usd=figures.cost_usd,
        duration_ms=figures.duration_ms,
    )


def placed(suites: Iterable[Suite]) -> Iterable[Placed]:
    """All tests of the suites in their order."""
    pairs = ((suite, test) for suite in suites for test in suite.tests)
    return ((index, suite, test) for index, (suite, test) in enumerate(pairs))
