"""Fresh samples of single tests, on head and on base, scored by head's evaluators."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from agentevals_action.errors import AttemptError
from agentevals_action.execution.conversations import with_earlier_turns
from agentevals_action.execution.engine import Engine
from agentevals_action.model.baseline import SAME_SERVICE
from agentevals_action.model.result import Key, SampleResult
from agentevals_action.model.suite import Evaluator, Suite, Test
from agentevals_action.model.target import Target


def is_deterministic(suite: Suite, test: Test) -> bool:
    """Whether the agent and all evaluators of a test give the same result each time, so that one
    sample is enough. A model does not, whatever its temperature; nor does a program that judges."""
    agent = suite.agent_of(test)
    if agent is None or not agent.deterministic:
        return False
    inside = (inner for evaluator in test.evaluators for inner in evaluator.walk())
    return all(_is_evaluator_deterministic(suite, agent, evaluator) for evaluator in inside)


def _is_evaluator_deterministic(suite: Suite, agent: Target, evaluator: Evaluator) -> bool:
    if not evaluator.needs_judge():
        return evaluator.deterministic
    judge = suite.judge_of(evaluator, agent)
    return evaluator.asks_judge and judge is not None and judge.deterministic


class Resampler:
    """Takes fresh samples of the tests with these `keys`.

    `head` and `base` are the suites of both trees by their path on head. `first` is the number of
    the first fresh sample. `on_samples` receives the number of samples each time some are taken."""

    def __init__(
        self,
        engine: Engine,
        keys: Collection[Key],
        head: Mapping[str, Suite],
        base: Mapping[str, Suite],
        first: int,
        on_samples: Callable[[int], None],
    ) -> None:
        self._engine, self._first, self._on_samples = engine, first, on_samples
        self._head, self._base = head, base
        self._head_turns, self._base_turns = _turns(head, keys), _turns(base, keys)
        self._taken = Counter[tuple[str, Key]]()

    async def head(self, key: Key, count: int) -> Sequence[SampleResult]:
        """Fresh samples of head."""
        return await self._sample("head", self._head[key[0]], key, self._head_turns[key], count)

    async def base(self, key: Key, count: int) -> Sequence[SampleResult]:
        """Fresh samples of base, scored by head's evaluators. Raises AttemptError when base cannot
        run."""
        if key not in self._base_turns:
            raise AttemptError("configuration", "the test is not on base")
        on_head, on_base = self._head[key[0]], self._base[key[0]]
        head_test, base_test = self._head_turns[key][-1], self._base_turns[key][-1]
        fingerprints = self._engine.fingerprints
        if fingerprints.ask_same_service(on_head, head_test, on_base, base_test):
            raise AttemptError("configuration", SAME_SERVICE)
        await self._engine.prepare(on_base.root)
        samples = await self._sample("base", on_base, key, self._base_turns[key], count)
        now = fingerprints.of(on_head, head_test)
        before = fingerprints.of(on_base, base_test)
        if before.question != now.question:
            raise AttemptError("configuration", "base asks another question")
        if before.grading == now.grading:
            return samples
        return await self._engine.runner.regrade(on_head, head_test, samples)

    async def _sample(
        self, side: str, suite: Suite, key: Key, turns: Sequence[Test], count: int
    ) -> Sequence[SampleResult]:
        first = self._first + self._taken[side, key]
        self._taken[side, key] += count
        samples = await self._engine.runner.resample(suite, turns, first, count)
        self._on_samples(count)
        return samples


def _turns(suites: Mapping[str, Suite], keys: Collection[Key]) -> dict[Key, Sequence[Test]]:
    """Of each test that the suites have, the earlier turns of its conversation that its agent may
    remember, and itself."""

    def turns_of(suite: Suite, name: str) -> Sequence[Test]:
        return with_earlier_turns(suite, lambda test: test.id == name)

    found = {(path, name): turns_of(suites[path], name) for path, name in keys if path in suites}
    return {key: turns for key, turns in found.items() if turns}
