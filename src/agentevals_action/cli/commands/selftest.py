"""`selftest`: suites that run many times on one commit: how often two runs of it would differ."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from agentevals_action.cli import output
from agentevals_action.cli.loaded_suites import LoadedSuites, load_suites
from agentevals_action.cli.options import RUN_INPUTS, input_options, json_option, paths_argument
from agentevals_action.cli.preparation import check_targets, run_tests, setup_log
from agentevals_action.errors import ExitCode
from agentevals_action.execution.engine import open_engine
from agentevals_action.execution.resample import is_deterministic
from agentevals_action.execution.resume import IndexedTest
from agentevals_action.formatting import UNKNOWN, counted
from agentevals_action.model.result import TestResult
from agentevals_action.reports import console
from agentevals_action.review import selftest
from agentevals_action.review.selftest import SAMPLE_COUNTS, Flakiness
from agentevals_action.targets.calls.reply_store import check_cache

_INPUTS = tuple(name for name in RUN_INPUTS if name != "setup")
_TITLES = ("test", "passed", "not scored", "flake rate", "pairs blocked", "samples enough")
_LEGEND = (
    "flake rate: samples that differ from the most frequent result of their test",
    "pairs blocked: pairs of single runs of this commit in which the second is worse",
    "samples enough: samples per side from which at most 5 % of such pairs are worse",
)


@click.command("selftest")
@paths_argument
@click.option(
    "--samples",
    type=click.IntRange(2, 100),
    default=10,
    show_default=True,
    help="Samples per test.",
)
@json_option
@input_options(*_INPUTS)
async def command(
    paths: tuple[Path, ...], samples: int, as_json: bool, **inputs: str | None
) -> int:
    """Run suites many times on this commit and report how often two runs of it would differ, and
    which tests cause that."""
    loaded = await load_suites({**inputs, "samples": str(samples)}, paths)
    await check_cache(loaded.settings, loaded.folder, loaded.environ)
    pairs = [(suite, test) for suite in loaded.all_valid() for test in suite.tests]
    varying = [pair for pair in pairs if not is_deterministic(*pair)]
    tests = [(index, suite, test) for index, (suite, test) in enumerate(varying)]
    results = await _run(tests, loaded) if tests else ()
    found = sorted(
        map(selftest.measure, results),
        key=lambda test: (-(test.blocked or 0.0), -(test.flake_rate or 0.0)),
    )
    steady = len(pairs) - len(tests)
    if as_json:
        output.print_json(_document(found, steady))
    else:
        _print(found, steady)
    has_unknown = any(test.flake_rate is None for test in found)
    return ExitCode.INCONCLUSIVE if has_unknown else ExitCode.PASSED


async def _run(tests: Sequence[IndexedTest], loaded: LoadedSuites) -> Sequence[TestResult]:
    settings, folder, suites = loaded.settings, loaded.folder, loaded.valid
    async with open_engine(settings, loaded.environ, folder, log=setup_log(loaded)) as engine:
        check_targets(engine, suites)
        await asyncio.to_thread(engine.load, suites)
        redactor = engine.redactor(suites)
        output = folder / settings.report_dir / "selftest.jsonl"
        print(f"{counted(len(tests), 'test')}, {settings.samples} samples each", file=sys.stderr)
        done: dict[int, TestResult] = {}
        await run_tests(tests, output, done, engine)
        console.print_sentences(map(redactor.redact, engine.notices), sys.stderr)
    print(f"samples: {output}", file=sys.stderr)
    return [done[index] for index in sorted(done)]


def _print(found: Sequence[Flakiness], steady: int) -> None:
    if steady:
        print(f"{counted(steady, 'test')} did not run: the result is always the same.")
    if found:
        rows = [_row(f"{test.suite} {test.test}", [test]) for test in found]
        if len(found) > 1:
            rows.append(_row("all together", found))
        output.print_table(_TITLES, rows)
        output.print_lines(_LEGEND)
    output.print_lines(
        f"{test.suite} {test.test}: {test.errors} of {test.scored + test.errors} samples could "
        f"not be scored: {' '.join(test.message.split())}"
        for test in found
        if test.errors
    )


def _row(name: str, tests: Sequence[Flakiness]) -> Sequence[str]:
    rates = [test.flake_rate for test in tests if test.flake_rate is not None]
    needed = selftest.samples_needed(tests)
    scored = sum(test.scored for test in tests)
    return (
        name,
        f"{sum(test.passed for test in tests)}/{scored}",
        str(sum(test.errors for test in tests)),
        f"{sum(rates) / len(rates):.0%}" if rates else UNKNOWN,
        f"{selftest.blocked_together(tests):.0%}" if rates else UNKNOWN,
        UNKNOWN if not rates else f"over {SAMPLE_COUNTS[-1]}" if needed is None else str(needed),
    )


def _document(found: Sequence[Flakiness], steady: int) -> dict[str, object]:
    """The JSON document, camelCase like the results; rates are 0-1, null if unknown."""
    return {
        "steady": steady,
        "blocked": selftest.blocked_together(found),
        "samplesNeeded": selftest.samples_needed(found),
        "tests": [test.model_dump(mode="json") for test in found],
    }
