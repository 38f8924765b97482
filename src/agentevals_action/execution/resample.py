"""Fresh samples of single tests, on head and on base, scored by head's evaluators."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import walk
from agentevals_action.execution.conversations import may_remember
from agentevals_action.execution.engine import Engine
from agentevals_action.model.result import Key, SampleResult, TestResult
from agentevals_action.model.suite import Evaluator, Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.system.redaction import redact_reply


def is_deterministic(suite: Suite, test: Test) -> bool:
    """Whether the agent and all evaluators of a test give the same result each time, so that one
    sample is enough. A model does not, whatever its temperature; nor does a program that judges."""
    agent = suite.agent_of(test)
    if agent is None or not agent.options.deterministic:
        return False
    inside = (inner for evaluator in test.evaluators for inner in walk(evaluator))
    return all(_is_evaluator_deterministic(suite, agent, evaluator) for evaluator in inside)


def _is_evaluator_deterministic(suite: Suite, agent: Target, evaluator: Evaluator) -> bool:
    options = evaluator.options
    if not options.needs_judge():
        return options.deterministic
    judge = suite.targets.get(suite.targets.judge(evaluator.target, agent.name))
    return options.asks_judge and judge is not None and judge.options.deterministic


class Resampler:
    """Takes fresh samples of the tests with these `keys`.

    `head` and `base` are the suites of both trees by their path on head. `first` is the number of
    the first fresh sample. `prepare_base` prepares the tree of base and may raise AttemptError.
    `on_samples` receives the number of samples each time some are taken.
    """

    def __init__(
        self,
        engine: Engine,
        keys: Collection[Key],
        head: Mapping[str, Suite],
        base: Mapping[str, Suite],
        first: int,
        prepare_base: Callable[[], Awaitable[None]],
        on_samples: Callable[[int], None],
    ) -> None:
        self._engine = engine
        self._head, self._base, self._next = head, base, Counter[tuple[str, Key]]()
        self._first, self._prepare_base, self._on_samples = first, prepare_base, on_samples
        self._head_turns, self._base_turns = _turns(head, keys), _turns(base, keys)

    @property
    def on_base(self) -> frozenset[Key]:
        """The tests that base has."""
        return frozenset(self._base_turns)

    async def head(self, suite: str, test: str, count: int) -> Sequence[SampleResult]:
        """Fresh samples of head."""
        key = (suite, test)
        samples = await self._sample("head", self._head[suite], key, self._head_turns[key], count)
        return redact_reply(samples)

    async def base(self, suite: str, test: str, count: int) -> Sequence[SampleResult]:
        """Fresh samples of base, scored by head's evaluators. Raises AttemptError when base cannot
        run."""
        key = (suite, test)
        if key not in self._base_turns:
            raise AttemptError("configuration", "the test is not on base")
        await self._prepare_base()
        samples = await self._sample("base", self._base[suite], key, self._base_turns[key], count)
        return redact_reply(await self._as_head_scores(key, samples))

    async def _sample(
        self, side: str, suite: Suite, key: Key, turns: Sequence[Test], count: int
    ) -> tuple[SampleResult, ...]:
        first = self._first + self._next[side, key]
        self._next[side, key] += count
        samples = await self._engine.runner.resample(suite, turns, first, count)
        self._on_samples(count)
        return tuple(samples)

    async def _as_head_scores(
        self, key: Key, samples: tuple[SampleResult, ...]
    ) -> Sequence[SampleResult]:
        suite, test = self._head[key[0]], self._head_turns[key][-1]
        base_suite, base_test = self._base[key[0]], self._base_turns[key][-1]
        fingerprint = self._engine.fingerprints.of
        before, now = fingerprint(base_suite, base_test), fingerprint(suite, test)
        if before.question != now.question:
            raise AttemptError("configuration", "base asks another question")
        if before.grading == now.grading:
            return samples
        stored = TestResult(
            timestamp="",
            eval_id=key[1],
            dataset=base_suite.name,
            score=None,
            verdict=None,
            eval_path=key[0],
            samples=samples,
        )
        return (await self._engine.runner.regrade(suite, test, stored)).samples


def _turns(suites: Mapping[str, Suite], keys: Collection[Key]) -> dict[Key, Sequence[Test]]:
    """Each test with the earlier turns of its conversation before it, where its agent may remember
    them."""
    found: dict[Key, Sequence[Test]] = {}
    for path in {path for path, _ in keys}.intersection(suites):
        earlier: dict[str, list[Test]] = {}
        for test in suites[path].tests:
            turns = earlier.setdefault(test.conversation_id, []) if test.conversation_id else []
            turns.append(test)
            if (path, test.id) in keys:
                remembers = may_remember(suites[path], test)
                found[path, test.id] = tuple(turns) if remembers else (test,)
    return found
