"""What `run` and `selftest` have in common: they check, prepare and run tests."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from agentevals_action.cli.loaded_suites import LoadedSuites
from agentevals_action.errors import AttemptError, InvalidInput
from agentevals_action.execution.engine import Engine
from agentevals_action.execution.runner import IndexedTest
from agentevals_action.github.runner import job_log
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.reports.progress import show_progress
from agentevals_action.results.jsonl import ResultsWriter
from agentevals_action.system.redaction import Redactor, redact_record


def check_targets(engine: Engine, suites: Sequence[Suite]) -> None:
    """InvalidInput if a target is not declared, or a variable of it is not set."""
    found = (diagnostic for suite in suites for diagnostic in engine.target_errors(suite))
    errors = tuple(dict.fromkeys(map(str, found)))
    if errors:
        raise InvalidInput("targets cannot be used, nothing was run", errors=errors)


async def run_tests(
    tests: Sequence[IndexedTest],
    output: Path,
    done: dict[int, TestResult],
    engine: Engine,
    loaded: LoadedSuites,
    redactor: Redactor,
) -> None:
    """Prepares the working tree and runs tests. Their results are added to `done`, which may have
    those of an earlier run, and to the output; OutputError."""
    try:
        # Before anything runs: a killed run must not leave turns of two runs of a conversation.
        with ResultsWriter(output, done) as writer, show_progress() as progress:
            refusal = await _prepare(engine, loaded, redactor)
            progress.expect("tests", Counter(suite.path for _, suite, _ in tests))

            def on_result(index: int, _suite: Suite, result: TestResult) -> None:
                writer.add(index, redact_record(result, redactor))
                engine.record(result)
                progress.advance("tests", done[index])

            await engine.runner.run(tests, on_result, refusal, partial(progress.start, "tests"))
            await engine.calls.close()  # no agent runs while the results are sorted
    finally:
        await engine.close()


async def _prepare(engine: Engine, loaded: LoadedSuites, redactor: Redactor) -> AttemptError | None:
    in_actions = loaded.environ.get("GITHUB_ACTIONS") == "true"
    log = partial(job_log.folded, redact=redactor.redact, in_actions=in_actions)
    try:
        await engine.prepare(loaded.folder, log)
    except AttemptError as error:
        return error
    return None
