"""Runs suites: one function for the commands and for both sides of a review."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentevals_action.errors import AttemptError
from agentevals_action.execution.engine import Engine
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.system.redaction import redact_reply


@dataclass(frozen=True)
class Started:
    """An attempt of a test starts."""

    suite: Suite
    test: Test


@dataclass(frozen=True)
class Finished:
    """All samples of a test are done. The result contains no secret."""

    suite: Suite
    test: Test
    result: TestResult


Event = Started | Finished


async def execute(
    suites: Sequence[Suite], engine: Engine, emit: Callable[[Event], None]
) -> tuple[TestResult, ...]:
    """Prepares the tree of these suites, which is the same for all, and runs their tests; the
    results in the order of the suites. If the tree cannot be prepared, each test ends in that
    error. `emit` receives each event when it happens."""
    if not suites:
        return ()
    refusal = None
    try:
        await engine.prepare(suites[0].root)
    except AttemptError as error:
        refusal = error
    results: dict[tuple[str, str], TestResult] = {}

    def on_start(suite: Suite, test: Test) -> None:
        emit(Started(suite, test))

    def on_result(suite: Suite, test: Test, result: TestResult) -> None:
        clean = results[suite.path, test.id] = redact_reply(result)
        emit(Finished(suite, test, clean))

    await engine.runner.run(suites, on_start, on_result, refusal)
    return tuple(results[suite.path, test.id] for suite in suites for test in suite.tests)
