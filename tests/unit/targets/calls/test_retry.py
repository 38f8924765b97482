import asyncio
import itertools

import pytest

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.trace import Trace
from agentevals_action.targets.calls.retry import PATIENCE, RateLimit, Retries
from tests.support import skipping_loop

REFUSAL = AttemptError("target", "host answered 429: slow down")


async def begun(throttle: RateLimit, calls: int) -> list[float]:
    loop = asyncio.get_running_loop()
    start, times = loop.time(), []

    async def call() -> None:
        await throttle.turn()
        times.append(loop.time() - start)

    await asyncio.gather(*(call() for _ in range(calls)))
    return times


def test_turn__without_limits_is_now() -> None:
    assert set(skipping_loop.run(begun(RateLimit(None, None), 100))) == {0}


@pytest.mark.parametrize(("per_minute", "calls"), [(1, 3), (10, 35), (60, 150)])
def test_turn__no_minute_has_more_calls_than_allowed(per_minute: int, calls: int) -> None:
    times = skipping_loop.run(begun(RateLimit(None, per_minute), calls))
    assert sorted(times) == [60 * (number // per_minute) for number in range(calls)]


def test_turn__a_pause_holds_everybody_back() -> None:
    async def paused() -> list[float]:
        throttle = RateLimit(None, None)
        throttle.pause(30, REFUSAL)
        throttle.pause(10, REFUSAL)
        return await begun(throttle, 3)

    assert skipping_loop.run(paused()) == [30] * 3


def test_slot__calls_at_once_are_limited() -> None:
    async def busiest() -> int:
        throttle, now, most = RateLimit(3, None), 0, 0

        async def call() -> None:
            nonlocal now, most
            async with throttle.slot:
                now += 1
                most = max(most, now)
                await asyncio.sleep(1)
                now -= 1

        await asyncio.gather(*(call() for _ in range(10)))
        return most

    assert skipping_loop.run(busiest()) == 3


def test_pause__patience_has_an_end() -> None:
    async def refused_for_ever() -> tuple[float, TargetDead]:
        throttle, loop = RateLimit(None, None), asyncio.get_running_loop()
        start = loop.time()
        for _ in itertools.count():
            await throttle.turn()
            try:
                throttle.pause(25, REFUSAL)
            except TargetDead as error:
                return loop.time() - start, error
        raise AssertionError

    took, error = skipping_loop.run(refused_for_ever())
    assert took == PATIENCE
    assert "429: slow down" in str(error)
    assert error.hint


def test_pause__an_answer_makes_patience_whole_again() -> None:
    async def refused_now_and_then() -> None:
        throttle = RateLimit(None, None)
        for _ in range(100):
            throttle.pause(25, REFUSAL)
            await throttle.turn()
            throttle.succeeded()

    skipping_loop.run(refused_now_and_then())


def test_run__a_rate_limit_delays_one_call_for_no_longer_than_the_patience() -> None:
    """The others succeed, so that the target is not dead."""

    async def refused() -> float:
        throttle = RateLimit(None, None)

        async def call() -> Trace:
            await throttle.turn()
            throttle.succeeded()
            raise TransientError("slow down", retry_after=100, limited=True)

        with pytest.raises(AttemptError, match="after 4 calls, slow down"):
            await Retries(0, 30, 1, throttle).run(call)
        return asyncio.get_running_loop().time()

    assert skipping_loop.run(refused()) == PATIENCE
