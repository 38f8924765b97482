"""Fresh samples of single tests, on head and on base, graded as head grades: what confirmation asks
for."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import EvaluatorOptions, walk
from agentevals_action.execution.conversations import may_remember
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.runner import Runner
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.model.suite import Evaluator, Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.results.build import agent_name
from agentevals_action.system.redaction import Redactor, redact_record
from agentevals_action.targets.base import ProviderOptions

Keys = frozenset[tuple[str, str]]


def is_certain(suite: Suite, test: Test) -> bool:
    """Whether the agent's answer and all that grades it are known to be the same each time, so that
    one sample tells all.

    A model is not, whatever its temperature; nor is a program that judges."""
    agent = suite.targets.targets.get(agent_name(suite, test) or "")
    inside = (inner for evaluator in test.evaluators for inner in walk(evaluator))
    return _always_the_same(agent) and all(
        _grades_the_same(suite, agent, evaluator) for evaluator in inside
    )


def _always_the_same(target: Target | None) -> bool:
    return (
        target is not None
        and isinstance(target.options, ProviderOptions)
        and target.options.deterministic
    )


def _grades_the_same(suite: Suite, agent: Target | None, evaluator: Evaluator) -> bool:
    options = evaluator.options
    if not isinstance(options, EvaluatorOptions):
        return False
    if not options.needs_judge():
        return options.deterministic
    judge = suite.targets.judge(evaluator.target, agent.name if agent else None)
    return options.asks_judge and _always_the_same(suite.targets.targets.get(judge or ""))


@dataclass(frozen=True)
class Side:
    """One tree's suites by their path on head. `first` is the number of the first fresh sample:
    those before it are used up."""

    suites: Mapping[str, Suite]
    first: int


@dataclass(frozen=True)
class Resampling:
    """Runs the tests with these `keys` (suite's path on head, test id) again. `prepare` makes the
    base's tree ready, once; AttemptError when it cannot be. `tell` is told how many tests are
    settled after how many fresh samples, as that goes on."""

    runner: Runner
    fingerprints: Fingerprints
    redactor: Redactor
    keys: Keys
    on_head: Side
    on_base: Side
    prepare: Callable[[], Awaitable[None]]
    tell: Callable[[int, int], None]
    _taken: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _done: Counter[str] = field(default_factory=Counter)

    async def head(self, suite: str, test: str, count: int) -> Sequence[SampleResult]:
        """So many fresh samples of head."""
        turns = self._head_turns[suite, test]
        first = self.on_head.first + self._number("head", suite, test, count)
        samples = tuple(await self.runner.again(self.on_head.suites[suite], turns, first, count))
        self._tell(samples=count)
        return redact_record(samples, self.redactor)

    async def base(self, suite: str, test: str, count: int) -> Sequence[SampleResult]:
        """So many fresh samples of base, graded by head's evaluators; AttemptError when base cannot
        be run."""
        if (suite, test) not in self._base_turns:
            raise AttemptError("configuration", "the test is not on base")
        await self.prepare()
        first = self.on_base.first + self._number("base", suite, test, count)
        there, turns = self.on_base.suites[suite], self._base_turns[suite, test]
        samples = tuple(await self.runner.again(there, turns, first, count))
        self._tell(samples=count)
        return redact_record(await self._as_head_grades(suite, test, samples), self.redactor)

    def base_open(self, suite: str, test: str) -> bool:
        """Whether base has the test and a tree to run it in."""
        return (suite, test) in self._base_turns

    def settled(self, suite: str, test: str) -> None:  # noqa: ARG002
        """No more of this test is asked for."""
        self._tell(settled=1)

    def _tell(self, settled: int = 0, samples: int = 0) -> None:
        self._done.update(settled=settled, samples=samples)
        self.tell(self._done["settled"], self._done["samples"])

    async def _as_head_grades(
        self, suite: str, test: str, samples: Sequence[SampleResult]
    ) -> Sequence[SampleResult]:
        there, here = self._base_turns[suite, test][-1], self._head_turns[suite, test][-1]
        on_base, on_head = self.on_base.suites[suite], self.on_head.suites[suite]
        was, now = self.fingerprints.of(on_base, there), self.fingerprints.of(on_head, here)
        if was.question != now.question:
            raise AttemptError("configuration", "base asks another question")
        if was.grading == now.grading:
            return samples
        stored = TestResult(
            timestamp="",
            eval_id=test,
            dataset=on_base.name,
            score=None,
            verdict=None,
            eval_path=suite,
            samples=tuple(samples),
        )
        return (await self.runner.regrade(on_head, here, stored)).samples

    def _number(self, side: str, suite: str, test: str, count: int) -> int:
        taken = self._taken[side, suite, test]
        self._taken[side, suite, test] += count
        return taken

    @cached_property
    def _head_turns(self) -> Mapping[tuple[str, str], Sequence[Test]]:
        return dict(_turns(self.on_head, self.keys))

    @cached_property
    def _base_turns(self) -> Mapping[tuple[str, str], Sequence[Test]]:
        return dict(_turns(self.on_base, self.keys))


def _turns(side: Side, keys: Keys) -> Iterable[tuple[tuple[str, str], Sequence[Test]]]:
    """The tests that are asked for, each behind the turns of its conversation before it, where the
    agent may remember those."""
    for path, suite in side.suites.items():
        wanted = {test for where, test in keys if where == path}
        before: dict[str, list[Test]] = {}
        for test in suite.tests if wanted else ():
            turns = before.setdefault(test.conversation_id, []) if test.conversation_id else []
            turns.append(test)
            if test.id in wanted:
                yield (path, test.id), (tuple(turns) if may_remember(suite, test) else (test,))
