"""`selftest`: suites that run many times on one commit: how often a comparison of the commit with
itself would block, and what would prevent that."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import click

from agentevals_action.cli import preparation
from agentevals_action.cli.loaded_suites import LoadedSuites, load_suites
from agentevals_action.cli.options import RUN_INPUTS, input_options, paths_argument
from agentevals_action.errors import ExitCode
from agentevals_action.execution.engine import open_engine
from agentevals_action.execution.resample import is_deterministic
from agentevals_action.execution.runner import IndexedTest
from agentevals_action.formatting import UNKNOWN, cost, counted
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.reports import console
from agentevals_action.results import rates
from agentevals_action.review import selftest as selftests
from agentevals_action.review.selftest import (
    DROP,
    SAMPLE_COUNTS,
    SelfTest,
    SimulatedGate,
    SuiteFigures,
    flakiness,
)
from agentevals_action.review.selftest.flakiness import Flakiness
from agentevals_action.review.selftest.simulation import Conditions
from agentevals_action.system import signals

_SEED = "selftest"  # the same samples give the same figures
_SHOWN = 20  # tests in a list
_STORED = 20  # samples of base that the simulated gate has
_INPUTS = (*(name for name in RUN_INPUTS if name != "setup"), "confirm", "alpha")
_SUITE_TITLES = (
    *("suite", "tests", "flaky", "not scored", "pass rate", "one run blocks"),
    *("samples for 95 %", "samples for -20 points"),
)
_TEST_TITLES = (
    *("test", "passed", "95 % interval", "verdicts", "one run blocks", "cost per sample"),
    "samples for -20 points",
)
_LEGEND = (
    "samples for 95 %: samples per side from which a plain comparison blocks at most 5 % of "
    "unchanged commits, drawn from these samples",
    "samples for -20 points: samples per side that detect such a drop at 80 % power, of a suite's "
    "mean score (Miller 2024, arXiv 2411.00640) or of one test's pass rate (Fleiss, Tytun and Ury "
    "1980, Biometrics 36)",
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@input_options(*_INPUTS)
def command(paths: tuple[Path, ...], samples: int, as_json: bool, **inputs: str | None) -> int:
    """Run suites many times on this commit and report how often a comparison with itself would
    block, and which tests cause that."""
    loaded = load_suites({**inputs, "samples": str(samples)}, paths)
    settings = loaded.settings
    plan = _Plan.of(loaded.all_valid())
    results = _results(plan, loaded) if any(plan.counts.values()) else []
    conditions = Conditions(history=_STORED, confirm=settings.confirm, alpha=settings.alpha)
    rng = Random(_SEED)  # noqa: S311 # not for security
    found = selftests.examine(results, settings.samples, plan.steady, conditions, rng)
    if as_json:
        print(json.dumps(_document(found, settings.alpha), indent=2, allow_nan=False))
    else:
        _print(found, settings.alpha)
    return ExitCode.INCONCLUSIVE if found.unscored else ExitCode.PASSED


@dataclass(frozen=True)
class _Plan:
    """The suites, and for each the number of tests whose result is always the same."""

    suites: Sequence[Suite]
    steady: Mapping[str, int]

    @classmethod
    def of(cls, suites: Sequence[Suite]) -> "_Plan":
        steady = {
            suite.path: sum(is_deterministic(suite, test) for test in suite.tests)
            for suite in suites
        }
        return cls(suites, steady)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of tests that run by suite path."""
        return {suite.path: len(suite.tests) - self.steady[suite.path] for suite in self.suites}

    def tests(self) -> Sequence[IndexedTest]:
        """The tests that run, with their index."""
        pairs = (
            (suite, test)
            for suite in self.suites
            for test in suite.tests
            if not is_deterministic(suite, test)
        )
        return [(index, suite, test) for index, (suite, test) in enumerate(pairs)]


def _results(plan: _Plan, loaded: LoadedSuites) -> list[TestResult]:
    settings, folder = loaded.settings, loaded.folder
    with open_engine(settings, loaded.environ, folder) as engine:
        preparation.check_targets(engine, plan.suites)
        engine.load(plan.suites)
        redactor = engine.redactor(plan.suites)
        output = folder / settings.report_dir / "selftest.jsonl"
        tests = counted(sum(plan.counts.values()), "test")
        print(f"{tests}, {settings.samples} samples each", file=sys.stderr)
        done: dict[int, TestResult] = {}
        signals.run(preparation.run_tests(plan.tests(), output, done, engine, loaded, redactor))
        console.print_sentences(map(redactor.redact, engine.notices), sys.stderr)
    print(f"samples: {output}; simulating pull requests", file=sys.stderr, flush=True)
    return [done[index] for index in sorted(done)]


def _print(found: SelfTest, alpha: float) -> None:
    if found.steady:
        tests = f"{found.steady} of {found.total.tests} tests always have the same result"
        never = ": a comparison of this commit with itself never blocks, one sample is enough"
        _print_line(f"{tests}{'' if found.tests else never}")
    if not found.tests:
        return
    _print_suites(found)
    _print_blocks(found)
    _print_flakiest(found)
    _print_errors(found)
    console.print_sentences(_LEGEND, sys.stdout)
    _print_line(f"Advice: {selftests.advice(found, alpha)}.")


def _print_suites(found: SelfTest) -> None:
    shown = found.suites if len(found.suites) > 2 else found.suites[:1]
    rows = [
        (
            suite.path or "all suites",
            str(suite.tests),
            str(suite.flaky),
            str(suite.unscored),
            console.rate(suite.passed.rate),
            _percent(suite.alarm),
            _samples_needed(suite),
            UNKNOWN if suite.samples_for_drop is None else str(suite.samples_for_drop),
        )
        for suite in shown
    ]
    console.print_figures(_SUITE_TITLES, rows, sys.stdout)


def _print_blocks(found: SelfTest) -> None:
    tests = f"all {found.total.tests} tests in one pull request"
    _print_line(f"This commit against itself, {tests}, from {found.samples} samples of each:")
    alarm = _percent(found.total.alarm)
    _print_line(f"  one run per side, each verdict that drops blocks: {alarm} are blocked")
    for way in found.gates:
        low, high = rates.interval(way.blocked.successes, way.blocked.trials)
        interval = f"{_percent(way.blocked.rate or 0)} ({_percent(low)} to {_percent(high)})"
        extra = f"{_percent(way.extra_head)} more samples of head"
        extra += f", {_percent(way.extra_base)} of base" if way.extra_base else ""
        _print_line(f"  agentevals-action, {way.name}: {interval}, with {extra}")
    if gates := max((way.gates.rate or 0 for way in found.gates), default=0):
        _print_line(f"  a required gate fails in {_percent(gates)}, which blocks for any base")
    if same := len(found.tests) - len(found.flaky) - len(found.unscored):
        most = console.rate(flakiness.undetected_rate(found.samples))
        results = f"{counted(same, 'test')} had the same result {found.samples} times"
        _print_line(f"  {results}; each may still differ in up to {most} of its runs (95 %)")


def _print_flakiest(found: SelfTest) -> None:
    if not found.flaky:
        return
    print("\nThe flakiest tests:")
    rows = [_test_row(test) for test in found.flaky[:_SHOWN]]
    console.print_figures(_TEST_TITLES, rows, sys.stdout, texts=(0, 3))
    if len(found.flaky) > _SHOWN:
        _print_line(f"… and {len(found.flaky) - _SHOWN} more; `--json` lists all of them")


def _test_row(test: Flakiness) -> Sequence[str]:
    low, high = rates.interval(test.passed.successes, test.passed.trials)
    verdicts = [f"{verdict} {count}" for verdict, count in test.verdicts]
    verdicts += [f"gate {name} failed {count}" for name, count in test.gates]
    verdicts += [f"error {test.errors}"] if test.errors else []
    needed = flakiness.samples_for_drop(test.passed.rate or 0.0, DROP)
    return (
        f"{test.suite} {test.test}",
        f"{test.passed.successes}/{test.passed.trials}",
        f"{low:.0%} to {high:.0%}",
        ", ".join(verdicts),
        UNKNOWN if test.alarm is None else _percent(test.alarm),
        cost(test.cost_usd),
        UNKNOWN if needed is None else str(needed),
    )


def _print_errors(found: SelfTest) -> None:
    tests = [test for test in found.tests if test.errors]
    if not tests:
        return
    _print_line("Samples that could not be scored, which none of these figures include:")
    for test in tests[:_SHOWN]:
        errors = f"{test.errors} of {found.samples}: {test.problem}"
        _print_line(f"  {test.suite} {test.test}: {errors}")
    if len(tests) > _SHOWN:
        _print_line(f"  … and {counted(len(tests) - _SHOWN, 'more test')}")


def _print_line(text: str) -> None:
    console.print_sentences([text], sys.stdout)


def _percent(value: float) -> str:
    return f"{value:.1%}" if 0 < value < 0.1 else f"{value:.0%}"


def _samples_needed(suite: SuiteFigures) -> str:
    return f"over {SAMPLE_COUNTS[-1]}" if suite.samples is None else str(suite.samples)


def _document(found: SelfTest, alpha: float) -> dict[str, object]:
    """The JSON document, camelCase like the results; rates are 0-1, null if unknown."""
    return {
        "samples": found.samples,
        "steady": found.steady,
        "suites": [_suite_entry(suite) for suite in found.suites[:-1]],
        "together": _suite_entry(found.total),
        "gate": [_gate_entry(way) for way in found.gates],
        "tests": [_test_entry(test) for test in found.tests],
        "advice": selftests.advice(found, alpha) if found.tests else "one sample is enough",
    }


def _suite_entry(suite: SuiteFigures) -> dict[str, object]:
    return {
        "path": suite.path or None,
        "tests": suite.tests,
        "flaky": suite.flaky,
        "untold": suite.unscored,
        "passRate": suite.passed.rate,
        "plainBlocks": suite.alarm,
        "samplesNeeded": suite.samples,
        "samplesForDrop": suite.samples_for_drop,
    }


def _gate_entry(way: SimulatedGate) -> dict[str, object]:
    return {
        "history": way.history,
        "blocks": way.blocked.rate,
        "interval": list(rates.interval(way.blocked.successes, way.blocked.trials)),
        "gatesFail": way.gates.rate,
        "pullRequests": way.blocked.trials,
        "extraHead": way.extra_head,
        "extraBase": way.extra_base,
    }


def _test_entry(test: Flakiness) -> dict[str, object]:
    rate = test.passed.rate
    return {
        "suite": test.suite,
        "test": test.test,
        "scored": test.passed.trials,
        "errors": test.errors,
        "error": test.problem or None,
        "passRate": rate,
        "interval": list(rates.interval(test.passed.successes, test.passed.trials)),
        "verdicts": dict(test.verdicts),
        "gatesFailed": dict(test.gates),
        "plainBlocks": test.alarm,
        "costUsd": test.cost_usd,
        "samplesForDrop": None if rate is None else flakiness.samples_for_drop(rate, DROP),
    }
