"""What `run` and `selftest` have in common: they check, prepare and run tests."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from agentevals_action.cli.loaded_suites import LoadedSuites
from agentevals_action.errors import InvalidInput
from agentevals_action.execution.engine import Engine
from agentevals_action.execution.execute import Event, Started, execute
from agentevals_action.execution.preparation import LogSection
from agentevals_action.execution.resume import IndexedTest
from agentevals_action.github.runner import job_log
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.reports.progress import show_progress
from agentevals_action.results.jsonl import ResultsWriter
from agentevals_action.system.redaction import redact


def check_targets(engine: Engine, suites: Sequence[Suite]) -> None:
    """InvalidInput if a target is not declared, or a variable of it is not set."""
    found = (diagnostic for suite in suites for diagnostic in engine.target_errors(suite))
    errors = tuple(dict.fromkeys(map(str, found)))
    if errors:
        raise InvalidInput("targets cannot be used, nothing was run", errors=errors)


def setup_log(loaded: LoadedSuites) -> LogSection:
    """Where the output of `setup` goes."""
    in_actions = loaded.environ.get("GITHUB_ACTIONS") == "true"
    return partial(job_log.folded, redact=redact, in_actions=in_actions)


async def run_tests(
    tests: Sequence[IndexedTest], output: Path, done: dict[int, TestResult], engine: Engine
) -> None:
    """Prepares the working tree and runs tests. Their results are added to `done`, which may have
    those of an earlier run, and to the output; OutputError."""
    indices = {(suite.path, test.id): index for index, suite, test in tests}
    suites = {suite.path: suite for _, suite, _ in tests}
    left = [
        replace(suite, tests=tuple(test for test in suite.tests if (path, test.id) in indices))
        for path, suite in suites.items()
    ]
    try:
        # Before anything runs: a killed run must not leave turns of two runs of a conversation.
        with ResultsWriter(output, done) as writer, show_progress() as progress:
            progress.expect("tests", {suite.path: len(suite.tests) for suite in left})

            def on_event(event: Event) -> None:
                if isinstance(event, Started):
                    progress.start("tests", event.suite, event.test)
                    return
                writer.add(indices[event.suite.path, event.test.id], event.result)
                progress.advance("tests", event.result)

            await execute(left, engine, on_event)
            await engine.calls.close()  # no agent runs while the results are sorted
    finally:
        await engine.close()
