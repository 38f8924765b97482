"""`selftest`: the suites run many times on one commit: how often a comparison of it with itself
would block, and what would still it."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from agentevals_action.errors import AttemptError, ExitCode, InvalidInput
from agentevals_action.execution.engine import Engine, open_engine
from agentevals_action.execution.preparation import LogSection
from agentevals_action.execution.resample import is_deterministic
from agentevals_action.execution.runner import IndexedTest
from agentevals_action.formatting import cost
from agentevals_action.github import job_log
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.reports import console, terminal
from agentevals_action.results.jsonl import ResultsWriter
from agentevals_action.review import selftest
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
from agentevals_action.settings import Settings
from agentevals_action.suites import checkout as wiring
from agentevals_action.system import signals
from agentevals_action.system.redaction import Redactor, redact_record

#: The same samples give the same figures.
_SEED = "selftest"
_SHOWN = 20
_STORED = 20
_LEGEND = """\
samples for 95 %: so many a side until a plain comparison blocks at most 5 % of unchanged commits, drawn from these samples
samples for -20 points: so many a side that show such a drop at 80 % power, of a suite's mean score (Miller 2024, arXiv 2411.00640) or of
  one test's pass rate (Fleiss, Tytun and Ury 1980, Biometrics 36)
"""


@dataclass(frozen=True)
class _Asked:
    """The tests of which one sample does not tell all, and how many of each suite it does."""

    suites: Sequence[Suite]
    steady: Mapping[str, int]

    @classmethod
    def of(cls, suites: Sequence[Suite]) -> "_Asked":
        steady = {
            suite.path: sum(is_deterministic(suite, test) for test in suite.tests)
            for suite in suites
        }
        return cls(suites, steady)

    @property
    def count(self) -> int:
        return sum(suite.test_count for suite in self.suites) - sum(self.steady.values())

    def tests(self) -> Iterator[IndexedTest]:
        """The tests that are run, with their places."""
        pairs = (
            (suite, test)
            for suite in self.suites
            for test in suite.tests
            if not is_deterministic(suite, test)
        )
        return ((place, suite, test) for place, (suite, test) in enumerate(pairs))


def main(
    environ: Mapping[str, str],
    inputs: Mapping[str, str],
    folder: Path,
    paths: Sequence[Path],
    as_json: bool,
) -> int:
    """Prints what was found; 3 when tests could not be told, else 0 whatever the figures are."""
    settings = Settings.from_environ(inputs)
    if settings.samples < 2:
        raise InvalidInput("`selftest` compares runs of one commit", "give `--samples` 2 or more")
    checkout = wiring.Checkout.at(folder, settings, environ)
    suites = wiring.require_valid(
        wiring.load_all(checkout, settings, wiring.suite_paths(checkout, settings, paths), folder)
    )
    asked = _Asked.of(suites)
    results = _results(asked, settings, environ, folder) if asked.count else []
    conditions = Conditions(history=_STORED, confirm=settings.confirm, alpha=settings.alpha)
    rng = Random(_SEED)  # noqa: S311
    found = selftest.examine(results, settings.samples, asked.steady, conditions, rng)
    if as_json:
        print(json.dumps(_document(found, settings.alpha), indent=2, allow_nan=False))
    else:
        _print(found, settings.alpha)
    return ExitCode.COULD_NOT_TELL if found.unscored else ExitCode.PASSED


def _results(
    asked: _Asked, settings: Settings, environ: Mapping[str, str], folder: Path
) -> list[TestResult]:
    with open_engine(settings, environ, folder) as engine:
        errors = dict.fromkeys(
            str(diagnostic)
            for suite in asked.suites
            for diagnostic in engine.missing_variables(suite)
        )
        if errors:
            raise InvalidInput("variables are missing, nothing was run", errors=tuple(errors))
        redactor = engine.redactor(asked.suites)
        output = folder / settings.report_dir / "selftest.jsonl"
        print(f"{asked.count} tests, {settings.samples} samples each", file=sys.stderr)
        log = partial(
            job_log.folded,
            redact=redactor.redact,
            in_actions=environ.get("GITHUB_ACTIONS") == "true",
        )
        results = signals.run(_run(asked, engine, redactor, output, folder, log))
        for notice in engine.notices:
            print(terminal.printable(redactor.redact(notice), 1000), file=sys.stderr)
    print(f"samples: {output}; drawing pull requests from them", file=sys.stderr, flush=True)
    return results


async def _run(
    asked: _Asked,
    engine: Engine,
    redactor: Redactor,
    output: Path,
    folder: Path,
    log: LogSection,
) -> list[TestResult]:
    results: list[TestResult] = []
    refusal = None
    try:
        await engine.prepare(folder, log)
    except AttemptError as error:
        refusal = error
    try:
        with ResultsWriter(output) as writer, console.progress() as bars:
            bars.expect("tests", asked.count)

            def keep(place: int, _suite: Suite, result: TestResult) -> None:
                clean = redact_record(result, redactor)
                writer.add(place, clean)
                # The answers are in the file; the figures need none of them.
                results.append(
                    replace(
                        clean,
                        samples=tuple(_slim(clean)),
                        evaluator_results=(),
                        candidate_answer="",
                    )
                )
                bars.advance("tests", clean)

            await engine.runner.run(asked.tests(), keep, refusal)
    finally:
        await engine.close()
    return sorted(results, key=lambda result: (result.eval_path, result.eval_id))


def _slim(result: TestResult) -> Iterator[object]:
    unneeded = {
        "output_messages": (),
        "evaluator_results": (),
        "candidate_answer": "",
        "file_changes": None,
    }
    return (replace(sample, **unneeded) for sample in result.samples)


def _print(found: SelfTest, alpha: float) -> None:
    if found.steady:
        rest = (
            ""
            if found.tests
            else ": a comparison of this commit with itself never blocks, and one sample tells all"
        )
        print(
            f"{found.steady} of {found.total.tests} tests answer and are graded the same each time{rest}"
        )
    if not found.tests:
        return
    _print_suites(found)
    _print_alarms(found)
    _print_tests(found)
    if ended := [test for test in found.tests if test.errors]:
        _print_errors(ended, found.samples)
    print(_LEGEND)
    print(terminal.printable(f"Advice: {selftest.advice(found, alpha)}.", 1000))


def _print_suites(found: SelfTest) -> None:
    shown = found.suites if len(found.suites) > 2 else found.suites[:1]
    rows = [
        (
            suite.path or "all together",
            str(suite.tests),
            str(suite.flaky),
            str(suite.unscored),
            console.rate(suite.passed.rate),
            _percent(suite.alarm),
            _samples(suite),
            "–" if suite.samples_for_drop is None else str(suite.samples_for_drop),
        )
        for suite in shown
    ]
    titles = (
        "suite",
        "tests",
        "flaky",
        "not told",
        "pass rate",
        "one run blocks",
        "samples for 95 %",
        "samples for -20 points",
    )
    console.figures_table(titles, rows, sys.stdout)


def _print_alarms(found: SelfTest) -> None:
    print(
        f"This commit against itself, all {found.total.tests} tests in one pull request, by {found.samples} samples of each:"
    )
    print(
        f"  one run a side, each verdict that fell blocks: {_percent(found.total.alarm)} are blocked"
    )
    for way in found.gates:
        low, high = flakiness.interval(way.blocked.successes, way.blocked.trials)
        extra = f"{_percent(way.extra_head)} more samples of head" + (
            f", {_percent(way.extra_base)} of base" if way.extra_base else ""
        )
        print(
            f"  agentevals-action, {way.name}: {_percent(way.blocked.rate or 0)} ({_percent(low)} to {_percent(high)}), with {extra}"
        )
    if gates := max((way.gates.rate or 0 for way in found.gates), default=0):
        print(f"  a required gate fails in {_percent(gates)}, which blocks whatever base did")
    same = len(found.tests) - len(found.flaky) - len(found.unscored)
    if same:
        most = console.rate(flakiness.undetected_rate(found.samples))
        tests = f"{same} test{'' if same == 1 else 's'}"
        print(
            f"  {tests} came out the same {found.samples} times; each may still differ in up to {most} of its runs (95 %)"
        )


def _print_tests(found: SelfTest) -> None:
    if not found.flaky:
        return
    print("\nThe flakiest tests:")
    titles = (
        "test",
        "passed",
        "95 % interval",
        "seen",
        "one run blocks",
        "a sample costs",
        "samples for -20 points",
    )
    console.figures_table(titles, [_test_row(test) for test in found.flaky[:_SHOWN]], sys.stdout)
    if len(found.flaky) > _SHOWN:
        print(f"… and {len(found.flaky) - _SHOWN} more; `--json` has all of them")


def _test_row(test: Flakiness) -> Sequence[str]:
    low, high = flakiness.interval(test.passed.successes, test.passed.trials)
    seen = [f"{verdict} {count}" for verdict, count in test.verdicts] + [
        f"gate {name} failed {count}" for name, count in test.gates
    ]
    needed = flakiness.samples_for_drop(test.passed.rate or 0.0, DROP)
    return (
        f"{test.suite} {test.test}",
        f"{test.passed.successes}/{test.passed.trials}",
        f"{low:.0%} to {high:.0%}",
        ", ".join(seen) + (f", error {test.errors}" if test.errors else ""),
        "–" if test.alarm is None else _percent(test.alarm),
        cost(test.cost_usd),
        "–" if needed is None else str(needed),
    )


def _print_errors(tests: Sequence[Flakiness], samples: int) -> None:
    print("Samples that could not be told, and are in none of these figures:")
    for test in tests[:_SHOWN]:
        print(
            f"  {terminal.printable(f'{test.suite} {test.test}: {test.errors} of {samples}: {test.problem}', 300)}"
        )
    if len(tests) > _SHOWN:
        print(f"  … and {len(tests) - _SHOWN} more tests")


def _percent(value: float) -> str:
    return f"{value:.1%}" if 0 < value < 0.1 else f"{value:.0%}"


def _samples(suite: SuiteFigures) -> str:
    return f"over {SAMPLE_COUNTS[-1]}" if suite.samples is None else str(suite.samples)


def _document(found: SelfTest, alpha: float) -> dict[str, object]:
    """camelCase like the results; rates are 0-1, null where nothing is known."""
    return {
        "samples": found.samples,
        "steady": found.steady,
        "suites": [_suite_entry(suite) for suite in found.suites[:-1]],
        "together": _suite_entry(found.total),
        "gate": [_way_entry(way) for way in found.gates],
        "tests": [_test_entry(test) for test in found.tests],
        "advice": selftest.advice(found, alpha) if found.tests else "one sample tells all",
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


def _way_entry(way: SimulatedGate) -> dict[str, object]:
    return {
        "history": way.history,
        "blocks": way.blocked.rate,
        "interval": list(flakiness.interval(way.blocked.successes, way.blocked.trials)),
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
        "told": test.passed.trials,
        "errors": test.errors,
        "error": test.problem or None,
        "passRate": rate,
        "interval": list(flakiness.interval(test.passed.successes, test.passed.trials)),
        "verdicts": dict(test.verdicts),
        "gatesFailed": dict(test.gates),
        "plainBlocks": test.alarm,
        "costUsd": test.cost_usd,
        "samplesForDrop": None if rate is None else flakiness.samples_for_drop(rate, DROP),
    }
