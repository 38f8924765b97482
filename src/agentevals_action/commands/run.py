"""`run`: suites as they are, a table, an exit code."""

import fnmatch
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from agentevals_action import console, gate, interrupts, wiring
from agentevals_action.compare import Side, compare_suite
from agentevals_action.engine import Engine, engine_for
from agentevals_action.errors import AttemptError, InvalidInput
from agentevals_action.model.comparison import BaselineInfo, Decision, SuiteComparison
from agentevals_action.model.result import Fingerprint, SuiteRun, TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.redact import Redactor
from agentevals_action.redacted import redacted
from agentevals_action.reports.jsonl import ResultsWriter, read_results
from agentevals_action.runner import Placed
from agentevals_action.settings import Settings
from agentevals_action.summary import summarise

_ELSEWHERE = frozenset({"failures"})


@dataclass(frozen=True)
class Wanted:
    """What to run and where the results go: `tests` are globs over ids, `resume` keeps what `output` already holds."""

    paths: tuple[Path, ...] = ()
    output: Path | None = None
    tests: tuple[str, ...] = ()
    resume: bool = False

    def has(self, test: Test) -> bool:
        """Whether a test is asked for."""
        return not self.tests or any(fnmatch.fnmatchcase(test.id, glob) for glob in self.tests)


@dataclass(frozen=True)
class _Run:
    suites: Sequence[Suite]
    wanted: Wanted
    output: Path
    redact: Callable[[str], str]

    def tests(self) -> Iterator[Placed]:
        """The wanted tests with their places."""
        pairs = ((suite, test) for suite in self.suites for test in suite.tests if self.wanted.has(test))
        return ((index, suite, test) for index, (suite, test) in enumerate(pairs))


def main(environ: Mapping[str, str], inputs: Mapping[str, str], folder: Path, wanted: Wanted) -> int:
    """Runs the suites and prints what came out; the exit code is by `fail-on` (default `failures`)."""
    settings = Settings.from_environ(inputs)
    checkout = wiring.Checkout.at(folder, settings, environ)
    suites = wiring.whole(wiring.load_all(checkout, settings, wiring.suite_paths(checkout, settings, wanted.paths), folder))
    for suite in suites:
        for warning in suite.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    with engine_for(settings, environ) as engine:
        _refuse_missing(engine, suites)
        redact = Redactor.from_environ(environ, settings.env, engine.secrets(suites)).redact
        _check_output(wanted.output, suites)
        run = _Run(suites, wanted, wanted.output or folder / settings.report_dir / "results.jsonl", redact)
        interrupts.run(_execute(run, engine, folder, settings.samples))
    return _report(run, settings)


def _check_output(output: Path | None, suites: Sequence[Suite]) -> None:
    """InvalidInput when writing results there would destroy something else."""
    if output is None or not output.exists():
        return
    named = {(suite.root / file.path).resolve() for suite in suites for file in suite.files}
    if output.resolve() in named or not output.is_file() or output.suffix != ".jsonl":
        raise InvalidInput(f"{output} is there and is no file of results", "name a file that ends in .jsonl")


def _refuse_missing(engine: Engine, suites: Sequence[Suite]) -> None:
    faults = dict.fromkeys(str(fault) for suite in suites for fault in engine.missing(suite))
    if faults:
        raise InvalidInput("variables are missing, nothing was run", faults=tuple(faults))


def _places(run: _Run, engine: Engine) -> dict[tuple[str, str], tuple[int, Fingerprint]]:
    """The place of each wanted test and what its result depends on, by suite and id."""
    return {(suite.path, test.id): (index, engine.fingerprints.of(suite, test)) for index, suite, test in run.tests()}


def _stands(result: TestResult, run: _Run) -> bool:
    """Whether a row is of a test that there still is, as far as the suites that are asked for tell."""
    suite = next((suite for suite in run.suites if suite.path == result.eval_path), None)
    return suite is None or any(test.id == result.eval_id for test in suite.tests)


async def _execute(run: _Run, engine: Engine, folder: Path, samples: int) -> None:
    places = _places(run, engine) if run.wanted.resume else {}
    total = len(places) or sum(1 for _ in run.tests())
    if not total:
        raise InvalidInput("no test matches", "mend the globs of `--test`; `agentevals-action list` shows the ids")
    kept: set[int] = set()

    def keep(result: TestResult) -> int | None:
        """An earlier row stays when its test is still asked for, is still the same, and was told; errors are tried again."""
        place, fingerprint = places.get((result.eval_path, result.eval_id), (None, None))
        if place is None and _stands(result, run):
            problem = f"{run.output} holds results of tests that are not asked for now, the first `{result.eval_id}`"
            raise InvalidInput(f"{problem}: `--resume` would drop them", "ask for the same tests as before, or name another `--output`")
        if place is None or result.verdict is None or result.fingerprint != fingerprint or len(result.samples) != samples:
            return None
        kept.add(place)
        return place

    refusal = await _prepared(engine, folder)
    try:
        with ResultsWriter(run.output, keep if run.wanted.resume else None) as writer:
            if kept:
                print(f"{len(kept)} of {total} tests are kept from {run.output}", file=sys.stderr)
            with console.progress() as bars:
                bars.expect("tests", total - len(kept))

                def on_result(index: int, _suite: Suite, result: TestResult) -> None:
                    clean = redacted(result, run.redact)
                    writer.add(index, clean)
                    bars.advance("tests", clean)

                await engine.runner.run((one for one in run.tests() if one[0] not in kept), on_result, refusal)
    finally:
        await engine.close()


async def _prepared(engine: Engine, folder: Path) -> AttemptError | None:
    try:
        await engine.prepare(folder)
    except AttemptError as error:
        return error
    return None


def _report(run: _Run, settings: Settings) -> int:
    """The table and what did not pass, read back from the results, a suite at a time: of what passed nothing is held in memory."""
    names = {suite.path: suite.name for suite in run.suites}
    suites: list[SuiteComparison] = []
    for path, results in groupby(read_results(run.output), key=lambda result: result.eval_path):
        left: list[TestResult] = []
        name = names.get(path, path)  # a path that is no UTF-8 stands otherwise in the file
        summary = summarise(path, name, _leaving(results, left))
        suites.append(compare_suite(path, name, SuiteRun(path, name, tuple(left), summary), Side()))
    console.suite_table([suite.head for suite in suites if suite.head], sys.stdout)
    console.not_passed((test.head for suite in suites for test in suite.tests if test.head), sys.stdout)
    policy = gate.Policy(settings.fail_on or _ELSEWHERE, settings.min_pass_rate, settings.on_inconclusive)
    decision = gate.decide(policy, suites, BaselineInfo("none", wanted=False, reason="`run` compares with nothing"))
    _tell(decision, run.output)
    return decision.exit_code


def _leaving(results: Iterable[TestResult], left: list[TestResult]) -> Iterator[TestResult]:
    """The results as they come; those that did not pass stay in `left`, without what only a reader of the file wants."""
    for result in results:
        if result.verdict != "pass":
            left.append(result.model_copy(update={"samples": (), "evaluator_results": (), "candidate_answer": ""}))
        yield result


def _tell(decision: Decision, output: Path) -> None:
    print(f"{decision.outcome}{': ' if decision.reasons else ''}{'; '.join(decision.reasons)}")
    print(f"results: {output}", file=sys.stderr)
