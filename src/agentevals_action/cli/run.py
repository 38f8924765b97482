"""`run`: suites as they are, a table, an exit code."""

import fnmatch
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path

from agentevals_action.errors import AttemptError, InvalidInput
from agentevals_action.execution.conversations import SelectedTests
from agentevals_action.execution.engine import Engine, open_engine
from agentevals_action.execution.preparation import LogSection
from agentevals_action.execution.resume import RequestedTests
from agentevals_action.execution.runner import IndexedTest
from agentevals_action.github import job_log
from agentevals_action.model.comparison import BaselineInfo, Decision, SuiteComparison
from agentevals_action.model.quarantine import Quarantine, Quarantines
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.reports import console, terminal
from agentevals_action.reports.conversations import Turns
from agentevals_action.reports.summary_json import write_run_summary
from agentevals_action.reports.view import cost
from agentevals_action.results.estimate import Figures, earlier_figures
from agentevals_action.results.jsonl import ResultsWriter, read_back
from agentevals_action.results.summary import summarise
from agentevals_action.review import gate, waivers
from agentevals_action.review.comparison.compare import Side, compare_suite
from agentevals_action.settings import Settings
from agentevals_action.suites import checkout as wiring
from agentevals_action.suites.quarantine_file import read_quarantines
from agentevals_action.system import signals
from agentevals_action.system.redaction import Redactor, redact_record
from agentevals_action.targets.cache.store import check_cache

_ELSEWHERE = frozenset({"failures"})
#: What only a reader of the results file wants to know of a result.
_UNSHOWN = {
    "samples": (),
    "evaluator_results": (),
    "candidate_answer": "",
    "trace_summary": None,
    "fingerprint": None,
}


@dataclass(frozen=True)
class Wanted:
    """What to run and where the results go: `tests` are globs over ids, `resume` keeps what
    `output` already holds, `keep_workspaces` the folders of agents whose tests did not pass."""

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
    redactor: Redactor
    quarantines: Quarantines

    def tests(self) -> Iterator[IndexedTest]:
        """The wanted tests, and what has to be run for them, with their places."""
        picked = self.picked
        pairs = (
            (suite, test)
            for suite in self.suites
            for test in (picked.of(suite) if picked else suite.tests)
        )
        return ((index, suite, test) for index, (suite, test) in enumerate(pairs))

    @cached_property
    def picked(self) -> SelectedTests | None:
        """What globs choose, None where there are none."""
        return SelectedTests(self.suites, self.wanted.has) if self.wanted.tests else None

    def count(self) -> int:
        """How many tests are wanted; the rows are looked through for it only where globs choose
        among them."""
        return (
            sum(1 for _ in self.tests())
            if self.wanted.tests
            else sum(suite.test_count for suite in self.suites)
        )

    @property
    def summary(self) -> Path:
        """The file of totals beside the results: `summary.json` beside `results.jsonl`,
        `x.summary.json` beside `x.jsonl`."""
        stem = self.output.name.removesuffix(".jsonl")
        return self.output.with_name(
            "summary.json" if stem == "results" else f"{stem}.summary.json"
        )


def main(
    environ: Mapping[str, str], inputs: Mapping[str, str], folder: Path, wanted: Wanted
) -> int:
    """Runs the suites and prints what came out; the exit code is by `fail-on` (default
    `failures`)."""
    settings = Settings.from_environ(inputs)
    checkout = wiring.Checkout.at(folder, settings, environ)
    suites = wiring.require_valid(
        wiring.load_all(
            checkout, settings, wiring.suite_paths(checkout, settings, wanted.paths), folder
        )
    )
    for suite in suites:
        for warning in suite.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    check_cache(settings, folder, environ)
    quarantines = _quarantines(checkout, suites, whole=not wanted.paths)
    keep = folder / settings.report_dir / "workspaces" if wanted.keep_workspaces else None
    with open_engine(settings, environ, folder, keep) as engine:
        _refuse_missing(engine, suites)
        _check_output(wanted.output or folder / settings.report_dir / "results.jsonl", suites)
        redactor = engine.redactor(suites)
        run = _Run(
            suites,
            wanted,
            wanted.output or folder / settings.report_dir / "results.jsonl",
            redactor,
            quarantines,
        )
        earlier = earlier_figures(run.output)
        log = partial(
            job_log.folded,
            redact=redactor.redact,
            in_actions=environ.get("GITHUB_ACTIONS") == "true",
        )
        seal = signals.run(_execute(run, engine, folder, settings.samples, earlier, log))
        notices = [*engine.notices, *_warned(keep)]
    return _report(run, settings, read_back(run.output, seal), notices)


def _warned(keep: Path | None) -> Sequence[str]:
    if keep is None or not keep.is_dir():
        return ()
    return (
        f"what is kept in {keep} is as the agents left it, secrets included: nothing in it is redacted, so do not upload it",
    )


def _quarantines(checkout: wiring.Checkout, suites: Sequence[Suite], whole: bool) -> Quarantines:
    """What the working tree has in quarantine; InvalidInput when its file has faults. `whole` says
    that `suites` are all there are."""
    read = read_quarantines(checkout.root, datetime.now(UTC).date())
    if read.errors:
        problem = f"{len(read.errors)} fault{'' if len(read.errors) == 1 else 's'} in the quarantine, nothing was run"
        raise InvalidInput(problem, errors=tuple(str(diagnostic) for diagnostic in read.errors))
    ids = ((suite.path, (test.id for test in suite.tests)) for suite in suites)
    for warning in (*read.warnings, *(waivers.without_tests(read.head, ids) if whole else ())):
        print(f"warning: {warning}", file=sys.stderr)
    return read


def _check_output(output: Path, suites: Sequence[Suite]) -> None:
    """InvalidInput when writing results there would destroy something else."""
    if not output.exists():
        return
    named = {(suite.root / file.path).resolve() for suite in suites for file in suite.files}
    if output.resolve() in named or not output.is_file() or output.suffix != ".jsonl":
        raise InvalidInput(
            f"{output} is there and is no file of results", "name a file that ends in .jsonl"
        )


def _refuse_missing(engine: Engine, suites: Sequence[Suite]) -> None:
    errors = dict.fromkeys(
        str(diagnostic) for suite in suites for diagnostic in engine.missing_variables(suite)
    )
    if errors:
        raise InvalidInput("variables are missing, nothing was run", errors=tuple(errors))


def _stands(result: TestResult, run: _Run) -> bool:
    """Whether a row is of a test that there still is, as far as the suites that are asked for
    tell."""
    suite = next((suite for suite in run.suites if suite.path == result.eval_path), None)
    return suite is None or any(test.id == result.eval_id for test in suite.tests)


async def _execute(
    run: _Run,
    engine: Engine,
    folder: Path,
    samples: int,
    earlier: Mapping[str, Figures],
    log: LogSection,
) -> bytes:
    """Runs what is asked for; the seal of its results."""
    asked = (
        RequestedTests(run.tests(), engine.fingerprints.of, samples) if run.wanted.resume else None
    )
    total = len(asked) if asked else run.count()
    if not total:
        raise InvalidInput(
            "no test matches", "mend the globs of `--test`; `agentevals-action list` shows the ids"
        )
    if added := sum(map(run.picked.added, run.suites)) if run.picked else 0:
        turns = (
            "one earlier turn of a conversation is"
            if added == 1
            else f"{added:,} earlier turns of conversations are"
        )
        print(
            f"{turns} run too: an agent that may remember them answers otherwise without",
            file=sys.stderr,
        )

    try:
        print(await engine.estimate(run.suites, 1, earlier), file=sys.stderr)
        refusal = await _prepared(engine, folder, log)
        opened, kept = _resumed(run, asked) if asked else (ResultsWriter(run.output), bytearray())
        with opened as writer:
            if any(kept):
                print(f"{sum(kept)} of {total} tests are kept from {run.output}", file=sys.stderr)
            with console.progress() as bars:
                bars.expect("tests", total - sum(kept))

                def on_result(index: int, _suite: Suite, result: TestResult) -> None:
                    clean = redact_record(result, run.redactor)
                    writer.add(index, clean)
                    engine.count(clean)
                    bars.advance("tests", clean)

                await engine.runner.run(
                    (one for one in run.tests() if not (kept and kept[one[0]])), on_result, refusal
                )
        return writer.seal()
    finally:
        await engine.close()


def _resumed(run: _Run, asked: RequestedTests) -> tuple[ResultsWriter, bytearray]:
    """The results to go on from, and a byte for each place in the run: whether they hold it.
    Conversations of which they hold a part are taken out of the file at once, or what a killed run
    leaves could be turns of two."""
    kept = bytearray(len(asked))

    def keep(result: TestResult) -> int | None:
        if result not in asked and _stands(result, run):
            problem = f"{run.output} holds results of tests that are not asked for now, the first `{result.eval_id}`"
            raise InvalidInput(
                f"{problem}: `--resume` would drop them",
                "ask for the same tests as before, or name another `--output`",
            )
        place = asked.index_of(result)
        if place is not None:
            kept[place] = True
        return place

    def keep_whole(result: TestResult) -> int | None:
        place = asked.index_of(result)
        return place if place is not None and kept[place] else None

    writer = ResultsWriter(run.output, keep)
    if halves := asked.incomplete_conversations(kept):
        writer.close()
        for place in halves:
            kept[place] = False
        turns = (
            "one turn of a conversation is"
            if len(halves) == 1
            else f"{len(halves):,} turns of conversations are"
        )
        print(
            f"{turns} made again, since others of it have to be and an agent may remember them",
            file=sys.stderr,
        )
        ResultsWriter(run.output, keep_whole).close()
        writer = ResultsWriter(run.output, keep_whole)
    return writer, kept


async def _prepared(engine: Engine, folder: Path, log: LogSection) -> AttemptError | None:
    try:
        await engine.prepare(folder, log)
    except AttemptError as error:
        return error
    return None


def _report(
    run: _Run, settings: Settings, results: Iterator[TestResult], notices: Sequence[str]
) -> int:
    """The table, what did not pass and the summary, from the results as they are read back, a suite
    at a time."""
    turns = Turns()
    names = {suite.path: suite.name for suite in run.suites}
    suites: list[SuiteComparison] = []
    for path, of_suite in groupby(results, key=lambda result: result.eval_path):
        left = _Left(turns, run.quarantines.head)
        name = names.get(path, path)  # a path that is no UTF-8 stands otherwise in the file
        summary = summarise(path, name, left.passing_by(of_suite))
        suites.append(
            compare_suite(path, name, SuiteRun(path, name, tuple(left.results), summary), Side())
        )
    heads = [suite.head for suite in suites if suite.head]
    console.suite_table(suites, sys.stdout)
    suites = list(waivers.apply(suites, run.quarantines))
    tests = (test.head for suite in suites for test in suite.tests if test.head)
    console.not_passed((result for result in tests if result.verdict != "pass"), turns, sys.stdout)
    console.remarks(
        [cost.spent_by(heads).words("these results" if run.wanted.resume else "this run")],
        sys.stdout,
    )
    console.remarks((f"notice: {run.redactor.redact(notice)}" for notice in notices), sys.stderr)
    policy = gate.Policy(
        settings.fail_on or _ELSEWHERE, settings.min_pass_rate, settings.on_inconclusive
    )
    decision = gate.decide(
        policy, suites, BaselineInfo("none", wanted=False, reason="`run` compares with nothing")
    )
    write_run_summary(run.summary, decision, heads)
    _tell(decision, run.output)
    return decision.exit_code


class _Left:
    """The results that did not pass, and those in quarantine: the first with what is shown of them,
    of the others what the gate counts, shared by those alike. `turns` is told of all."""

    def __init__(self, turns: Turns, quarantine: Sequence[Quarantine]) -> None:
        self._turns = turns
        self.results: list[TestResult] = []
        self._quarantine = quarantine
        self._shown = 0
        self._alike: dict[tuple[object, ...], TestResult] = {}

    def passing_by(self, results: Iterable[TestResult]) -> Iterator[TestResult]:
        """The same results, looked at in passing."""
        for result in results:
            self._turns.add(result)
            held = waivers.entry_for(self._quarantine, result.eval_path, result.eval_id)
            if result.verdict != "pass" or held:
                self.results.append(self._shortened(result, held))
            yield result

    def _shortened(self, result: TestResult, held: Quarantine | None) -> TestResult:
        if result.verdict != "pass" and self._shown < console.SHOWN:
            self._shown += 1
            return replace(result, **_UNSHOWN)
        # By the entry too: the one that stands for all alike is in quarantine as they are.
        key = (result.verdict, result.gates_failed, result.error is None, held)
        if key not in self._alike:
            self._alike[key] = replace(result, **_UNSHOWN, hits=(), misses=(), question="")
        return self._alike[key]


def _tell(decision: Decision, output: Path) -> None:
    for waived in decision.waived:
        print(terminal.printable(waived, 500))
    print(
        terminal.printable(
            f"{decision.outcome}{': ' if decision.reasons else ''}{'; '.join(decision.reasons)}",
            1000,
        )
    )
    print(f"results: {output}", file=sys.stderr)
