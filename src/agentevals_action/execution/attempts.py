"""Attempts of tests: the call of the agent in its workspace, and the scores of its work. An error
of one attempt does not affect the others."""

import asyncio
import hashlib
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from agentevals_action.errors import AttemptError, NotStored
from agentevals_action.evaluators import base as evaluators
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.tool_lists import ToolLists
from agentevals_action.execution.workspaces.pool import WorkspacePool
from agentevals_action.execution.workspaces.skills import asked_messages
from agentevals_action.formatting import cut_line, quoted
from agentevals_action.model.evaluator import Case, Evaluator, Judges
from agentevals_action.model.judge import JudgeRule
from agentevals_action.model.messages import Message
from agentevals_action.model.result import EvaluatorResult, SampleResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.target import Calls, Request, Target
from agentevals_action.model.tools import INVALID, UNKNOWN
from agentevals_action.model.trace import Spending, Trace, total_spending
from agentevals_action.results.build import error_result, sample_result
from agentevals_action.results.trace_summary import Work, stored_work
from agentevals_action.settings import Settings
from agentevals_action.system.child_environment import CHECKOUT_VARIABLE, ChildContext
from agentevals_action.system.program import Program
from agentevals_action.system.resources import exhausted

log = logging.getLogger(__name__)

#: Samples that are in memory at once.
_MAX_WAITING = 256
#: Characters of the reason why a call was not made.
_REASON_SHOWN = 200
_NO_REASON = "it was refused, or waits for a person"


@dataclass(frozen=True)
class Attempt:
    """One sample that is being made: its number from 0, and what its replies cost."""

    suite: Suite
    test: Test
    number: int
    spent: list[Spending] = field(default_factory=list)
    #: What a program that judges asked for and is not stored.
    not_stored: list[AttemptError] = field(default_factory=list)


class Attempts:
    """Makes samples of tests of head and of base: calls the agent, and scores its work.

    `slots` limit the attempts at once, `waiting` the samples of first runs that are in memory and
    wait, for a free slot or for an earlier sample. `children` are the programs that judge,
    `fingerprints` describe the suites, `judge_path` returns, for a path in the tree of a suite, the
    path from which a judge runs. `notice` receives sentences about replies, `rule` states which
    judges decide."""

    def __init__(
        self,
        calls: Calls,
        settings: Settings,
        children: ChildContext,
        fingerprints: Fingerprints,
        judge_path: Callable[[Path], Path],
        notice: Callable[[str], None],
        rule: JudgeRule,
    ) -> None:
        self._calls, self._settings, self._children = calls, settings, children
        self._fingerprints, self._notice, self._rule = fingerprints, notice, rule
        self._judge_path = judge_path
        self._tools = ToolLists(children)
        self.slots = asyncio.Semaphore(settings.max_concurrency)
        self.waiting = asyncio.Semaphore(_MAX_WAITING)
        self._run_id = secrets.token_hex(8)

    async def make(self, attempt: Attempt, workspaces: WorkspacePool) -> SampleResult:
        """The sample, or the error in which the attempt ended."""
        return await _or_error(attempt, self._make(attempt, workspaces))

    async def score(self, attempt: Attempt, stored: SampleResult) -> SampleResult:
        """The answer of a stored sample, scored by the evaluators of the attempt's test."""
        attempt.spent.append(stored.spent)
        return await _or_error(attempt, self._score(attempt, stored_work(stored)))

    async def _make(self, attempt: Attempt, workspaces: WorkspacePool) -> SampleResult:
        if attempt.test.workspace is None:
            return await self._score(attempt, Work(await self._call_agent(attempt)))
        folder = await workspaces.enter(attempt.suite, attempt.test)
        try:
            trace = await self._call_agent(attempt, folder.path)
            work = Work(trace, folder.path, await folder.changes())
            return await self._score(attempt, work)
        finally:
            await folder.leave(attempt.test)

    async def _call_agent(self, attempt: Attempt, workspace: Path | None = None) -> Trace:
        test = attempt.test
        target = _target(attempt.suite, attempt.suite.choose_target(test), "target")
        has_tools = test.has_tools and target.takes_tools
        tools = await self._tools.find(attempt.suite, test) if has_tools else None
        request = self._request(
            attempt,
            asked_messages(test, target.skill_mark),
            workspace=workspace,
            conversation_id=self._conversation_id(attempt),
            metadata=test.metadata,
            question=self._fingerprints.of(attempt.suite, test).question,
            tools=tools,
        )
        try:
            trace = await self._calls.complete(target, request)
        except AttemptError as error:
            if error.spent is not None:
                attempt.spent.append(error.spent.spent)
            raise
        attempt.spent.append(trace.spent)
        for sentence in _about_reply(trace):
            self._notice(f"the target `{target.name}`: {sentence}")
        return trace

    def _conversation_id(self, attempt: Attempt) -> str | None:
        """The id under which an agent knows the conversation. It differs for each run, side and
        sample, so that an agent with a memory does not mix them."""
        name = attempt.test.conversation_id
        if name is None:
            return None
        key = " ".join(map(str, (self._run_id, *attempt.suite.key, attempt.number)))
        return f"{name}-{hashlib.sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"

    def _request(self, attempt: Attempt, messages: Sequence[Message], **fields: Any) -> Request:
        return Request(
            messages,
            eval_id=attempt.test.id,
            attempt=attempt.number,
            timeout=self._timeout(attempt),
            root=attempt.suite.root,
            suite_folder=attempt.suite.folder,
            suite=attempt.suite.path,
            **fields,
        )

    def _timeout(self, attempt: Attempt) -> float:
        return (
            attempt.test.timeout_seconds or attempt.suite.timeout_seconds or self._settings.timeout
        )

    async def compare(
        self, attempt: Attempt, head: SampleResult, base: SampleResult
    ) -> SampleResult:
        """The stored answer of head, compared with the stored answer of base by the pairwise
        evaluators of the attempt's test. The sample has no score; an error is in each result."""
        pair = await _or_error(attempt, self._compare(attempt, head, base))
        if pair.error is None:
            return pair
        result = partial(EvaluatorResult, score=None, error=pair.error)
        results = (result(name=judge.name, type=judge.type) for judge in attempt.test.comparing)
        return replace(pair, evaluator_results=tuple(results))

    async def _compare(
        self, attempt: Attempt, head: SampleResult, base: SampleResult
    ) -> SampleResult:
        case, rival = (self._case(attempt, stored_work(sample)) for sample in (head, base))
        case = replace(case, rival=rival, why_advisory=self._rule.why_pairs_advisory)
        results = await evaluators.run_evaluators(attempt.test.comparing, case)
        return SampleResult(evaluator_results=results, spent=total_spending(attempt.spent))

    async def _score(self, attempt: Attempt, work: Work) -> SampleResult:
        """The scores of an agent's work."""
        case = self._case(attempt, work)
        results = await evaluators.run_evaluators(attempt.test.scoring, case)
        if attempt.not_stored:  # a program may give a score without the reply
            raise attempt.not_stored[0]
        return sample_result(work, results, total_spending(attempt.spent))

    def _case(self, attempt: Attempt, work: Work) -> Case:
        """An agent's work, and the context in which it is judged."""

        async def ask(evaluator: Evaluator, messages: Sequence[Message], number: int) -> Trace:
            judge, temperature = _judge(attempt, evaluator, number), evaluator.judge_temperature()
            reply = await self._call_judge(attempt, judge, messages, number, temperature)
            return replace(reply, model=reply.model or judge.name)

        return Case(
            test=attempt.test,
            evaluators=attempt.test.evaluators,
            trace=work.trace,
            root=attempt.suite.root,
            timeout=self._timeout(attempt),
            program=partial(self._judge_program, attempt.suite.root, bool(work.folder)),
            ask=ask,
            judges=lambda evaluator: self._judges(attempt, evaluator),
            judge_key=partial(self._fingerprints.judge_key, attempt.suite, attempt.test),
            notice=self._notice,
            workspace=work.folder,
            file_changes=work.changes,
            judge_path=self._judge_path,
            why_advisory=self._rule.why_advisory,
        )

    def _judge_program(
        self,
        root: Path,
        has_workspace: bool,
        words: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
    ) -> Program:
        user, start = self._children.isolation.choose_judge_user(root), self._judge_path(folder)
        tree = self._children.workspace(self._judge_path(root))
        environment = {CHECKOUT_VARIABLE: str(root), **tree, **variables}
        program = self._children.program(words, start, user, environment)
        if has_workspace:  # tests in it may run another version of the packages
            return program
        return self._children.with_packages(program, root, self._judge_path(root), start)

    def _judges(self, attempt: Attempt, evaluator: Evaluator) -> Judges:
        asked: Counter[str] = Counter()

        async def ask(name: str, messages: Sequence[Message]) -> Trace:
            question = repr((name, messages))
            asked[question] += 1  # a program may ask the same twice to get two answers
            target = _target(attempt.suite, name, "target")
            try:
                return await self._call_judge(attempt, target, messages, asked[question] - 1)
            except AttemptError as error:
                if isinstance(error.__cause__, NotStored):
                    attempt.not_stored.append(error)
                raise

        names = tuple(sorted(attempt.suite.targets.targets))
        return Judges(_judge(attempt, evaluator).name, names, ask)

    async def _call_judge(
        self,
        attempt: Attempt,
        target: Target,
        messages: Sequence[Message],
        repeat: int = 0,
        temperature: float | None = None,
    ) -> Trace:
        # Attack: a program that judges asks the agent, which leaves modules in the judges' `HOME`.
        is_judge = target.name != attempt.suite.choose_target(attempt.test)
        request = self._request(
            attempt, messages, repeat=repeat, is_judge=is_judge, temperature=temperature
        )
        try:
            trace = await self._calls.complete(target, request)
        except AttemptError as error:
            kind = "judge" if error.kind == "target" else error.kind
            problem = f"the judge `{target.name}` could not be asked: {error}"
            raise AttemptError(kind, problem, error.hint) from error
        attempt.spent.append(trace.spent)
        return trace


async def _or_error(attempt: Attempt, work: Awaitable[SampleResult]) -> SampleResult:
    """The result of the work, or the error in which it ended."""
    try:
        return await work
    except AttemptError as expected:
        error = expected
    except Exception as unexpected:
        if cause := exhausted(unexpected):
            error = AttemptError("resources", str(cause), cause.hint)
        else:  # a bug of ours is an error of this test and never a score; the other tests go on
            log.exception("%s: test %s", attempt.suite.path, attempt.test.id)
            problem = f"{type(unexpected).__name__}: {unexpected}"
            error = AttemptError("bug", f"{problem} (a bug of the action: please report it)")
    return error_result(error, total_spending(attempt.spent))


def _about_reply(trace: Trace) -> Iterator[str]:
    yield from trace.warnings
    refused = {call.name: call.output for call in trace.tool_calls or () if call.refused}
    for name, output in refused.items():
        if str(output).startswith((INVALID, UNKNOWN)):  # by the suite, and not by the agent
            continue
        reason = output if isinstance(output, str) and output.strip() else _NO_REASON
        yield (
            f"the call of {quoted(name)} was not made ({cut_line(reason, _REASON_SHOWN)}); permit "
            "it (command-line agents: in the target's `args`), or expect no such call"
        )


def _judge(attempt: Attempt, evaluator: Evaluator, number: int = 0) -> Target:
    suite = attempt.suite
    choices = suite.judge_choices(evaluator, suite.find_agent(attempt.test))
    return _target(suite, choices[number % len(choices)].name, "judge")


def _target(suite: Suite, name: str | None, role: str) -> Target:
    target = suite.targets.get(name)
    if target is None:
        names = ", ".join(sorted(suite.targets.targets)) or "none"
        wanted = f"{role} `{name}`" if name else f"{role} for this test"
        raise AttemptError("configuration", f"there is no {wanted} (known targets: {names})")
    return target
