"""Simulated pull requests whose suite a runner of others runs. Its rows become samples, and suspects
share its starts, as those of a real one do; only its processes are missing."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from simulation import Conditions, Drawn, PullRequest, Urn, decide

from agentevals_action.execution.engine import Engine, assemble_engine
from agentevals_action.execution.executor import Event
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.preparation import Preparation
from agentevals_action.model.result import Key, SampleResult, TestResult
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.results.build import with_samples
from agentevals_action.review.comparison.decision_rule import FreshSamples
from agentevals_action.runners.executor import RunnerExecutor
from agentevals_action.runners.formats.base import Row, Selection
from agentevals_action.settings import Settings
from agentevals_action.system.child_environment import ChildContext


class SimulatedRunner(RunnerExecutor):
    """The runner of one side of a pull request, whose tests pass at the rates of its `pools`."""

    def __init__(
        self,
        suite: Suite,
        runner: Runner,
        engine: Engine,
        pools: Mapping[str, Sequence[SampleResult]],
        rng: Random,
    ) -> None:
        super().__init__(suite, runner, engine, engine.scratch, asyncio.Lock())
        self._pools, self._rng = pools, rng

    async def _start(
        self,
        words: Sequence[str],  # noqa: ARG002  # of the base class
        selection: Selection,
        samples: int,
    ) -> Sequence[Row]:
        """Rows in the order in which their tests end."""
        await asyncio.sleep(0)
        chosen = self._pools if selection.text is None else selection.text.splitlines()
        rows = [
            Row(name, passed=sample.verdict == "pass")
            for name in chosen
            for sample in self._rng.choices(self._pools[name], k=samples)
        ]
        self._rng.shuffle(rows)
        return rows


class _Fresh:
    """Takes fresh samples from the runners of both sides."""

    def __init__(self, head: RunnerExecutor, base: RunnerExecutor) -> None:
        self._head, self._base = head, base
        self.streams: Mapping[Key, FreshSamples] = {}

    async def head(self, key: Key, count: int) -> Sequence[SampleResult]:
        return await self._head.sample(key[1], count)

    async def base(self, key: Key, count: int) -> Sequence[SampleResult]:
        return await self._base.sample(key[1], count)


def pull_requests(
    urns: Sequence[Urn], conditions: Conditions, count: int, rng: Random
) -> Sequence[PullRequest]:
    """Simulated pull requests that touch the suite of these tests, independent of each other."""
    return asyncio.run(_pull_requests(urns, conditions, count, rng))


async def _pull_requests(
    urns: Sequence[Urn], conditions: Conditions, count: int, rng: Random
) -> Sequence[PullRequest]:
    async with AsyncExitStack() as opened:
        root = Path(opened.enter_context(TemporaryDirectory(prefix="agentevals-regressions-")))
        children = ChildContext({})
        engine = await opened.enter_async_context(
            assemble_engine(
                Settings.model_validate({}),
                root,
                (),
                Fingerprints(),
                Preparation(None, None, root, children, lambda _title: nullcontext(print)),
                cache=None,
                permissions=None,
            )
        )
        suite, runner = _suite(root, urns)
        history = engine.settings.model_copy(update={"samples": conditions.history})
        engines = engine, replace(engine, settings=history)

        def side(number: int, pools: Mapping[str, Sequence[SampleResult]]) -> SimulatedRunner:
            return SimulatedRunner(suite, runner, engines[number], pools, rng)

        return [await _pull_request(urns, conditions, side) for _ in range(count)]


def _suite(root: Path, urns: Sequence[Urn]) -> tuple[Suite, Runner]:
    path = urns[0].key[0]
    (root / path).write_text("simulated")
    words = ["simulated", "{SUITE}", "{RESULTS}", "{SAMPLES}"]
    entry = {"results": "agentevals", "suites": [path], "command": words}
    again = [*words, "{SELECTION}"]
    gates = {gate.name for urn in urns for gate in urn.gates}
    name = next(iter(gates), "simulated")
    runner = Runner.model_validate({**entry, "name": name, "again": again, "required": bool(gates)})
    return Suite(name="suite", path=path, root=root, folder=root, runner=runner), runner


async def _pull_request(
    urns: Sequence[Urn],
    conditions: Conditions,
    side: Callable[[int, Mapping[str, Sequence[SampleResult]]], SimulatedRunner],
) -> PullRequest:
    head = side(0, {urn.key[1]: urn.head for urn in urns})
    base = side(1, {urn.key[1]: urn.base for urn in urns})
    before = {row.eval_id: row for row in (await base.run(_ignore)).rows}
    drawn = [
        Drawn(row.key, row, _latest(before[row.eval_id]), before[row.eval_id])
        for row in (await head.run(_ignore)).rows
    ]
    return await decide(drawn, conditions, lambda _keys: _Fresh(head, base))


def _ignore(_event: Event) -> None: ...


def _latest(history: TestResult) -> TestResult:
    return with_samples(history, history.samples[-1:])
