"""`run`: suites as they are, a table, an exit code."""

import fnmatch
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from agentevals_action import console, gate, interrupts, wiring
from agentevals_action.compare import Side, compare_suite
from agentevals_action.conversations import Turns
from agentevals_action.engine import Engine, engine_for
from agentevals_action.errors import AttemptError, InvalidInput
from agentevals_action.model.comparison import BaselineInfo, Decision, SuiteComparison
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.redacted import redacted
from agentevals_action.reports.jsonl import ResultsWriter, read_results
from agentevals_action.reports.summary_json import write_run_summary
from agentevals_action.reports.view import spending
from agentevals_action.resuming import Asked
from agentevals_action.runner import Placed
from agentevals_action.settings import Settings
from agentevals_action.summary import summarise

_ELSEWHERE = frozenset({"failures"})
#: What only a reader of the results file wants to know of a result.
_UNSHOWN = {"samples": (), "evaluator_results": (), "candidate_answer": "", "trace_summary": None, "fingerprint": None}


@dataclass(frozen=True)
class Wanted:
    """What to run and where the results go: `tests` are globs over ids, `resume` keeps what `output` already holds, `keep_workspaces` the
    folders of agents whose tests did not pass."""

    paths: tuple[Path, ...] = ()
    output: Path | None = None
    tests: tuple[str, ...] = ()
    resume: bool = False
    keep_workspaces: bool = False

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

    def count(self) -> int:
        """How many tests are wanted; the rows are looked through for it only where globs choose among them."""
        return sum(1 for _ in self.tests()) if self.wanted.tests else sum(suite.test_count for suite in self.suites)

    @property
    def summary(self) -> Path:
        """The file of totals beside the results: `summary.json` beside `results.jsonl`, `x.summary.json` beside `x.jsonl`."""
        stem = self.output.name.removesuffix(".jsonl")
        return self.output.with_name("summary.json" if stem == "results" else f"{stem}.summary.json")


def main(environ: Mapping[str, str], inputs: Mapping[str, str], folder: Path, wanted: Wanted) -> int:
    """Runs the suites and prints what came out; the exit code is by `fail-on` (default `failures`)."""
    settings = Settings.from_environ(inputs)
    checkout = wiring.Checkout.at(folder, settings, environ)
    suites = wiring.whole(wiring.load_all(checkout, settings, wiring.suite_paths(checkout, settings, wanted.paths), folder))
    for suite in suites:
        for warning in suite.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    wiring.check_cache(settings, folder, environ)
    keep = folder / settings.report_dir / "workspaces" if wanted.keep_workspaces else None
    with engine_for(settings, environ, folder, keep) as engine:
        _refuse_missing(engine, suites)
        _check_output(wanted.output or folder / settings.report_dir / "results.jsonl", suites)
        redact = engine.redactor(suites).redact
        run = _Run(suites, wanted, wanted.output or folder / settings.report_dir / "results.jsonl", redact)
        engine.forecast.earlier = wiring.earlier_figures(run.output)
        interrupts.run(_execute(run, engine, folder, settings.samples))
        notices = engine.notices
    return _report(run, settings, notices)


def _check_output(output: Path, suites: Sequence[Suite]) -> None:
    """InvalidInput when writing results there would destroy something else."""
    if not output.exists():
        return
    named = {(suite.root / file.path).resolve() for suite in suites for file in suite.files}
    if output.resolve() in named or not output.is_file() or output.suffix != ".jsonl":
        raise InvalidInput(f"{output} is there and is no file of results", "name a file that ends in .jsonl")


def _refuse_missing(engine: Engine, suites: Sequence[Suite]) -> None:
    faults = dict.fromkeys(str(fault) for suite in suites for fault in engine.missing(suite))
    if faults:
        raise InvalidInput("variables are missing, nothing was run", faults=tuple(faults))


def _stands(result: TestResult, run: _Run) -> bool:
    """Whether a row is of a test that there still is, as far as the suites that are asked for tell."""
    suite = next((suite for suite in run.suites if suite.path == result.eval_path), None)
    return suite is None or any(test.id == result.eval_id for test in suite.tests)


async def _execute(run: _Run, engine: Engine, folder: Path, samples: int) -> None:
    asked = Asked(run.tests(), engine.fingerprints.of, samples) if run.wanted.resume else None
    total = len(asked) if asked else run.count()
    if not total:
        raise InvalidInput("no test matches", "mend the globs of `--test`; `agentevals-action list` shows the ids")
    kept = bytearray(total if asked else 0)

    def keep(result: TestResult) -> int | None:
        if asked and not asked.has(result) and _stands(result, run):
            problem = f"{run.output} holds results of tests that are not asked for now, the first `{result.eval_id}`"
            raise InvalidInput(f"{problem}: `--resume` would drop them", "ask for the same tests as before, or name another `--output`")
        place = asked.place(result) if asked else None
        if place is not None:
            kept[place] = True
        return place

    try:
        print(await engine.estimate(run.suites, 1), file=sys.stderr)
        refusal = await _prepared(engine, folder)
        with ResultsWriter(run.output, keep if asked else None) as writer:
            if any(kept):
                print(f"{sum(kept)} of {total} tests are kept from {run.output}", file=sys.stderr)
            with console.progress() as bars:
                bars.expect("tests", total - sum(kept))

                def on_result(index: int, _suite: Suite, result: TestResult) -> None:
                    clean = redacted(result, run.redact)
                    writer.add(index, clean)
                    engine.forecast.add(clean)
                    bars.advance("tests", clean)

                await engine.runner.run((one for one in run.tests() if not (kept and kept[one[0]])), on_result, refusal)
    finally:
        await engine.close()


async def _prepared(engine: Engine, folder: Path) -> AttemptError | None:
    try:
        await engine.prepare(folder)
    except AttemptError as error:
        return error
    return None


def _report(run: _Run, settings: Settings, notices: Sequence[str]) -> int:
    """The table, what did not pass and the summary, from the results as they stand in their file, a suite at a time."""
    turns = Turns()
    names = {suite.path: suite.name for suite in run.suites}
    suites: list[SuiteComparison] = []
    for path, results in groupby(read_results(run.output), key=lambda result: result.eval_path):
        left = _Left(turns)
        name = names.get(path, path)  # a path that is no UTF-8 stands otherwise in the file
        summary = summarise(path, name, left.passing_by(results))
        suites.append(compare_suite(path, name, SuiteRun(path, name, tuple(left.results), summary), Side()))
    heads = [suite.head for suite in suites if suite.head]
    console.suite_table(suites, sys.stdout)
    console.not_passed((test.head for suite in suites for test in suite.tests if test.head), turns, sys.stdout)
    console.remarks([spending.spent_by(heads).words("these results" if run.wanted.resume else "this run")], sys.stdout)
    console.remarks((f"notice: {run.redact(notice)}" for notice in notices), sys.stderr)
    policy = gate.Policy(settings.fail_on or _ELSEWHERE, settings.min_pass_rate, settings.on_inconclusive)
    decision = gate.decide(policy, suites, BaselineInfo("none", wanted=False, reason="`run` compares with nothing"))
    write_run_summary(run.summary, decision, heads)
    _tell(decision, run.output)
    return decision.exit_code


class _Left:
    """The results that did not pass: the first with what is shown of them, of the others what the gate counts, shared by those alike.
    `turns` is told of all."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.results: list[TestResult] = []
        self._alike: dict[tuple[object, ...], TestResult] = {}

    def passing_by(self, results: Iterable[TestResult]) -> Iterator[TestResult]:
        """The same results, looked at in passing."""
        for result in results:
            self._turns.add(result)
            if result.verdict != "pass":
                self.results.append(self._shortened(result))
            yield result

    def _shortened(self, result: TestResult) -> TestResult:
        if len(self.results) < console.SHOWN:
            return result.model_copy(update=_UNSHOWN)
        key = (result.verdict, result.gates_failed, result.error is None)
        if key not in self._alike:
            self._alike[key] = result.model_copy(update={**_UNSHOWN, "hits": (), "misses": (), "question": ""})
        return self._alike[key]


def _tell(decision: Decision, output: Path) -> None:
    print(f"{decision.outcome}{': ' if decision.reasons else ''}{'; '.join(decision.reasons)}")
    print(f"results: {output}", file=sys.stderr)
