"""`run`: suites without a base: a results file, a table, an exit code."""

import fnmatch
import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

import click

from agentevals_action.cli import preparation
from agentevals_action.cli.loaded_suites import LoadedSuites, load_suites
from agentevals_action.cli.options import RUN_INPUTS, input_options, json_option, paths_argument
from agentevals_action.errors import ExitCode, Interrupted, InvalidInput, OutputError
from agentevals_action.escaping import printable
from agentevals_action.execution.conversations import SelectedTests
from agentevals_action.execution.engine import Engine, open_engine
from agentevals_action.execution.resume import RequestedTests
from agentevals_action.execution.runner import IndexedTest
from agentevals_action.formatting import counted, plural
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import ChangeKind, SuiteComparison, TestComparison
from agentevals_action.model.quarantine import Quarantine, Quarantines
from agentevals_action.model.result import TestResult
from agentevals_action.model.review import Outcome, Review
from agentevals_action.model.suite import Suite, Test
from agentevals_action.reports import console
from agentevals_action.reports.html.page_data import MAX_COMPLETE
from agentevals_action.reports.html.report_page import PAGE, report_page
from agentevals_action.reports.junit import junit
from agentevals_action.reports.progress import show_progress
from agentevals_action.reports.summary_json import report_path, run_summary
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.conversations import number_turns
from agentevals_action.reports.view.models import ListedTest, ReportView, order_by_conversation
from agentevals_action.results.estimate import Figures, earlier_figures
from agentevals_action.results.jsonl import ResultsWriter, read_results
from agentevals_action.results.summary import SuiteTotals
from agentevals_action.review import gate, waivers
from agentevals_action.review.sharding.part import divide_budget, part_of
from agentevals_action.suites.quarantine_file import read_quarantines
from agentevals_action.system import signals
from agentevals_action.system.files.tree_files import write_atomically
from agentevals_action.system.redaction import Redactor, redact_record
from agentevals_action.targets.cache.store import check_cache

_DEFAULT_FAIL_ON = frozenset({"failures"})
_SUMMARY = "summary.json"
_BASELINE = BaselineInfo("none", wanted=False, reason="`run` compares with nothing")


@click.command("run")
@paths_argument
@click.option(
    "--output",
    type=Path,
    help="The file of results. Default: `results.jsonl` in the report folder.",
)
@click.option(
    "--test",
    "tests",
    multiple=True,
    metavar="ID-GLOB",
    help="Run only tests whose id matches this glob; may be repeated.",
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Run only this one of N parts of the tests, which every machine makes alike. The results "
    "of all parts in one file are a run: `--resume` reads them.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Keep results in the output whose test, evaluators and target are unchanged. Changes of "
    "the agent's other code are not noticed.",
)
@click.option(
    "--keep-workspaces",
    is_flag=True,
    help="Keep the workspaces of tests that did not pass in `workspaces` of the report folder, as "
    "the agent left them, including secrets.",
)
@click.option(
    "--record",
    type=str,
    metavar="FOLDER",
    help="Write every request with its reply to cassettes in this folder, to commit them.",
)
@click.option("--junit", "junit_path", type=Path, help="Write the results as JUnit XML, too.")
@json_option
@input_options(*RUN_INPUTS, "samples", "fail-on", "min-pass-rate", "on-inconclusive", "watch")
def command(
    paths: tuple[Path, ...],
    output: Path | None,
    tests: tuple[str, ...],
    resume: bool,
    keep_workspaces: bool,
    record: str | None,
    junit_path: Path | None,
    as_json: bool,
    **inputs: str | None,
) -> int:
    """Run suites without a comparison: write the results and print a table."""
    if record is not None:
        inputs = _recording_inputs(record, inputs)
    loaded = load_suites(inputs, paths)
    suites: Sequence[Suite] = loaded.all_valid()
    for warning in (warning for suite in suites for warning in suite.warnings):
        print(f"warning: {warning}", file=sys.stderr)
    settings, environ, folder = loaded.settings, loaded.environ, loaded.folder
    check_cache(settings, folder, environ)
    quarantines = _read_quarantines(loaded, has_all_suites=not paths)
    selection = tests
    if settings.shard:
        suites = part_of(suites, settings.shard, settings.samples)
        settings = divide_budget(settings, settings.shard.total)
        loaded = replace(loaded, suites=tuple(suites), settings=settings)
        selection = (*tests, f"shard {settings.shard}")
    report = folder / settings.report_dir
    output = output or report / "results.jsonl"
    keep = report / "workspaces" if keep_workspaces else None
    with open_engine(settings, environ, folder, keep, records=record is not None) as engine:
        preparation.check_targets(engine, suites)
        engine.load(suites)
        _check_output(output, suites)
        redactor = engine.redactor(suites)
        planned = _Run(suites, tests, output, resume, settings.samples, redactor)
        earlier = earlier_figures(output)
        commit, uncommitted = _source(loaded, output)
        collected = _Collected(quarantines.head)
        try:
            signals.run(_execute(planned, collected, engine, loaded, earlier))
        except Interrupted:
            print(f"the finished tests are in {output}; `--resume` continues", file=sys.stderr)
            raise
        except OutputError as error:
            view = _decide(loaded, collected, commit, uncommitted, selection)
            raise _with_failure(error, view) from error.__cause__
        notices = list(engine.notices)
    if record is not None:
        notices.append(f"{counted(engine.recorded, 'cassette')} in {settings.cassettes} written")
    if keep and keep.is_dir():
        notices.append(
            f"{keep} contains workspaces as the agents left them, including secrets: "
            "they are not redacted, so do not upload them"
        )
    view = _decide(loaded, collected, commit, uncommitted, selection)
    console.print_sentences((f"notice: {redactor.redact(one)}" for one in notices), sys.stderr)
    summary = run_summary(view)
    try:
        write_atomically(report_path(output, _SUMMARY), summary)
        _write_reports(view, collected, output, junit_path)
    except OutputError as error:
        raise _with_failure(error, view) from error.__cause__
    if as_json:
        print(summary, end="")
    else:
        _print(view, collected, "these results" if resume else "this run")
    print(f"results: {output}", file=sys.stderr)
    return view.review.decision.exit_code


def _recording_inputs(folder: str, inputs: Mapping[str, str | None]) -> dict[str, str | None]:
    """The inputs of a run that records in a folder; InvalidInput if they contradict that."""
    if inputs["cache"] == "replay" or inputs["cassettes"] is not None:
        raise InvalidInput(
            "`--record` cannot be used with `--cache replay` or `--cassettes`",
            "leave out one of them",
        )
    return {**inputs, "cassettes": folder}


def _write_reports(
    view: ReportView, collected: "_Collected", output: Path, junit_path: Path | None
) -> None:
    """Writes the page next to the results, and JUnit XML if it is wanted."""
    listed = collected.listed()
    suites = (
        replace(suite, tests=tuple(listed.get(suite.path, ()))) for suite in view.review.suites
    )
    view = build_view(replace(view.review, suites=tuple(suites)))
    write_atomically(report_path(output, PAGE), report_page(view))
    if junit_path:
        write_atomically(junit_path, junit(view))


def _with_failure(error: OutputError, view: ReportView) -> OutputError:
    """The error of a file that cannot be written; a failure that is known stays the outcome."""
    decision = view.review.decision
    if decision.outcome is Outcome.FAILED:
        print(console.outcome_line(decision), file=sys.stderr)
        error.exit_code = ExitCode.FAILED
    return error


def _print(view: ReportView, collected: "_Collected", subject: str) -> None:
    decision = view.review.decision
    console.print_suites(view, sys.stdout)
    console.print_not_passed(collected.shown(), collected.not_passed, sys.stdout)
    console.print_sentences([view.spending.sentence(subject)], sys.stdout)
    for waived in decision.waived:
        print(printable(waived, 500))
    if number := sum(suite.head.borderline for suite in view.review.suites if suite.head):
        tests = f"{counted(number, 'test')} {plural(number, 'is', 'are')} borderline"
        print(f"{tests}: neither passed (score 0.8 or more) nor failed (under 0.6)")
    print(console.outcome_line(decision))


@dataclass(frozen=True)
class _Run:
    """What runs: of the `suites` the tests whose ids match the `globs` (all if there are none)."""

    suites: Sequence[Suite]
    globs: tuple[str, ...]
    output: Path
    resume: bool
    samples: int
    redactor: Redactor

    @cached_property
    def _selected(self) -> SelectedTests | None:
        return SelectedTests(self.suites, self._matches) if self.globs else None

    def _matches(self, test: Test) -> bool:
        return any(fnmatch.fnmatchcase(test.id, glob) for glob in self.globs)

    def tests(self) -> Iterator[IndexedTest]:
        """The tests that run, with their index."""
        selected = self._selected
        pairs = (
            (suite, test)
            for suite in self.suites
            for test in (selected.of(suite) if selected else suite.tests)
        )
        return ((index, suite, test) for index, (suite, test) in enumerate(pairs))

    def count(self) -> int:
        """The number of tests; rows are only read for it if globs select some of them."""
        if self.globs:
            return sum(1 for _ in self.tests())
        return sum(suite.test_count for suite in self.suites)

    def counts(self, kept: Sequence[int]) -> Mapping[str, int]:
        """The number of tests that run by suite path, without those that `kept` marks."""
        if not self.globs and not any(kept):
            return {suite.path: suite.test_count for suite in self.suites}
        left = (suite.path for index, suite, _ in self.tests() if not (kept and kept[index]))
        return Counter(left)

    def has_test(self, result: TestResult) -> bool:
        """Whether the suites still have the test of a row; unknown suites count as having it."""
        suite = next((suite for suite in self.suites if suite.path == result.eval_path), None)
        return suite is None or any(test.id == result.eval_id for test in suite.tests)

    def print_earlier_turns(self) -> None:
        """States how many turns run only because later turns are selected."""
        selected = self._selected
        number = sum(map(selected.added, self.suites)) if selected else 0
        if number:
            turns = plural(number, "turn of a conversation runs", "turns of conversations run")
            why = "because an agent that remembers them may answer differently without them"
            print(f"{number:,} earlier {turns} too, {why}", file=sys.stderr)


class _Collected:
    """Adds up the results of a run while they arrive, in any order.

    A run may have 100,000 tests: of tests that did not pass, the gate counts one comparison for all
    that are alike, and only the first ones keep their messages. The reports list the first
    `MAX_COMPLETE` tests that passed, and as many that did not."""

    def __init__(self, quarantine: Sequence[Quarantine]) -> None:
        self._quarantine = quarantine
        self._totals: dict[str, SuiteTotals] = {}
        self._counted: dict[str, list[TestComparison]] = {}
        self._alike: dict[Hashable, TestComparison] = {}
        self._shown: dict[int, TestComparison] = {}
        self._turns: dict[int, tuple[str, str, str]] = {}
        self._listed: dict[int, TestComparison] = {}
        self._number: Counter[bool] = Counter()
        self.not_passed = 0

    def add(self, index: int, result: TestResult) -> None:
        """Adds the result of the test at this index of the run."""
        path = result.eval_path
        self._totals.setdefault(path, SuiteTotals()).add(index, result)
        if result.conversation_id is not None:
            self._turns[index] = (path, result.conversation_id, result.eval_id)
        held = waivers.entry_for(self._quarantine, path, result.eval_id)
        change = ChangeKind.NEW if result.verdict else ChangeKind.HEAD_ERROR
        self._list(index, TestComparison(result.eval_id, change, result, None, quarantine=held))
        if result.verdict == "pass" and held is None:
            return
        alike = (result.verdict, result.gates_failed, held)
        if alike not in self._alike:
            self._alike[alike] = TestComparison(
                result.eval_id, change, _without_answers(result), None, quarantine=held
            )
        self._counted.setdefault(path, []).append(self._alike[alike])
        if result.verdict != "pass":
            self.not_passed += 1
            self._show(
                index, TestComparison(result.eval_id, change, _without_answers(result), None)
            )

    def _list(self, index: int, test: TestComparison) -> None:
        passed = test.head is not None and test.head.verdict == "pass"
        self._number[passed] += 1
        if self._number[passed] <= MAX_COMPLETE:
            self._listed[index] = test

    def listed(self) -> Mapping[str, Sequence[TestComparison]]:
        """The tests that the reports list by suite path, in the order of the suites."""
        found: dict[str, list[TestComparison]] = {}
        for index in sorted(self._listed):
            test = self._listed[index]
            found.setdefault(test.head.eval_path if test.head else "", []).append(test)
        return found

    def _show(self, index: int, test: TestComparison) -> None:
        self._shown[index] = test
        if len(self._shown) > 2 * console.SHOWN:
            first = sorted(self._shown)[: console.SHOWN]
            self._shown = {index: self._shown[index] for index in first}

    def suites(self, suites: Sequence[Suite]) -> tuple[SuiteComparison, ...]:
        """The suites that ran: their totals, and the tests that the gate counts."""
        return tuple(
            SuiteComparison(
                suite.path,
                suite.name,
                tuple(self._counted.get(suite.path, ())),
                self._totals[suite.path].summary(suite.path, suite.name),
                None,
            )
            for suite in suites
            if suite.path in self._totals
        )

    def shown(self) -> tuple[ListedTest, ...]:
        """The first tests that did not pass, in the order of the suites."""
        turns = number_turns(self._turns[index] for index in sorted(self._turns))
        tests = (self._shown[index] for index in sorted(self._shown))
        return order_by_conversation(
            ListedTest(test.head.eval_path, test, turns.get((test.head.eval_path, test.id)))
            for test in tests
            if test.head
        )


def _without_answers(result: TestResult) -> TestResult:
    return replace(
        result,
        samples=(),
        evaluator_results=(),
        candidate_answer="",
        question="",
        trace_summary=None,
        fingerprint=None,
    )


def _read_quarantines(loaded: LoadedSuites, *, has_all_suites: bool) -> Quarantines:
    """The quarantine of the working tree; InvalidInput if its file has errors."""
    read = read_quarantines(loaded.checkout.root, datetime.now(UTC).date())
    if read.errors:
        number = counted(len(read.errors), "error")
        errors = tuple(map(str, read.errors))
        raise InvalidInput(f"{number} in the quarantine, nothing was run", errors=errors)
    warnings = read.warnings
    if has_all_suites:
        ids = ((suite.path, (test.id for test in suite.tests)) for suite in loaded.valid)
        warnings = (*warnings, *waivers.without_tests(read.head, ids))
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return read


def _check_output(output: Path, suites: Sequence[Suite]) -> None:
    """InvalidInput if writing results there would destroy another file."""
    if not output.exists():
        return
    files = {(suite.root / file.path).resolve() for suite in suites for file in suite.files}
    if output.resolve() in files or not output.is_file() or output.suffix != ".jsonl":
        raise InvalidInput(
            f"{output} exists and is not a file of results", "name a file that ends in .jsonl"
        )


async def _execute(
    plan: _Run,
    collected: _Collected,
    engine: Engine,
    loaded: LoadedSuites,
    earlier: Mapping[str, Figures],
) -> None:
    asked = (
        RequestedTests(plan.tests(), engine.fingerprints.of, plan.samples) if plan.resume else None
    )
    total = len(asked) if asked else plan.count()
    if not total:
        raise InvalidInput(
            "no test matches",
            "correct the globs of `--test`; `agentevals-action list` prints the ids",
        )
    plan.print_earlier_turns()
    try:
        kept = _kept_rows(plan, asked) if asked else bytearray()
        counts = plan.counts(kept)
        estimate = await engine.estimate(counts, {}, earlier)
        console.print_sentences([estimate], sys.stderr)
        refusal = await preparation.prepare(engine, loaded, plan.redactor)
        with _open_results(plan, asked, kept, collected) as writer, show_progress() as progress:
            if number := sum(kept):
                print(f"{number} of {total} tests are kept from {plan.output}", file=sys.stderr)
            progress.expect("tests", counts)

            def on_result(index: int, _suite: Suite, result: TestResult) -> None:
                clean = redact_record(result, plan.redactor)
                writer.add(index, clean)
                engine.record(result)
                collected.add(index, clean)
                engine.count(clean)
                progress.advance("tests", clean)

            left = (one for one in plan.tests() if not (kept and kept[one[0]]))
            await engine.runner.run(left, on_result, refusal, partial(progress.start, "tests"))
            await engine.calls.close()  # no agent runs while the results are sorted
    finally:
        await engine.close()


def _kept_rows(plan: _Run, asked: RequestedTests) -> bytearray:
    """Marks the tests whose rows in the output stay; of a conversation all turns stay or none."""
    kept = bytearray(len(asked))
    rows = read_results(plan.output) if plan.output.is_file() else ()
    for result in rows:
        if result not in asked and plan.has_test(result):
            problem = f"{plan.output} contains results of tests that are not selected now"
            raise InvalidInput(
                f"{problem}, the first `{result.eval_id}`: `--resume` would drop them",
                "select the same tests as before, or name another `--output`",
            )
        index = asked.index_of(result)
        if index is not None:
            kept[index] = True
    halves = asked.incomplete_conversations(kept)
    for index in halves:
        kept[index] = False
    if halves:
        turns = plural(len(halves), "turn of a conversation runs", "turns of conversations run")
        why = "because other turns of it run again and an agent may remember them"
        print(f"{len(halves):,} {turns} again, {why}", file=sys.stderr)
        # At once: a killed run must not leave turns of two runs of a conversation.
        _open_results(plan, asked, kept).close()
    return kept


def _open_results(
    plan: _Run, asked: RequestedTests | None, kept: bytearray, collected: _Collected | None = None
) -> ResultsWriter:
    """Opens the output with the kept rows, which are collected."""
    if asked is None:
        return ResultsWriter(plan.output)

    def keep(result: TestResult) -> int | None:
        index = asked.index_of(result)
        if index is None or not kept[index]:
            return None
        if collected is not None:
            collected.add(index, result)
        return index

    return ResultsWriter(plan.output, keep)


def _source(loaded: LoadedSuites, output: Path) -> tuple[str, tuple[str, ...]]:
    """The commit that runs, and the paths that differ from it, without the files of runs; empty
    outside a repository."""
    repository = loaded.repository
    if loaded.checkout.files is None or (commit := repository.resolve("HEAD")) is None:
        return "", ()
    reports = (report_path(output, name) for name in (_SUMMARY, PAGE))
    own = (loaded.folder / loaded.settings.report_dir, output.resolve(), *reports)
    return commit, tuple(
        path
        for path in repository.uncommitted()
        if not any((repository.root / path).is_relative_to(one.resolve()) for one in own)
    )


def _decide(
    loaded: LoadedSuites,
    collected: _Collected,
    commit: str,
    uncommitted: tuple[str, ...],
    globs: tuple[str, ...],
) -> ReportView:
    settings = loaded.settings
    suites = collected.suites(loaded.valid)
    policy = gate.Policy(
        settings.fail_on or _DEFAULT_FAIL_ON, settings.min_pass_rate, settings.on_inconclusive
    )
    decision = gate.decide(policy, suites, _BASELINE)
    review = Review(
        commit,
        None,
        decision,
        suites=suites,
        baseline=_BASELINE,
        uncommitted=uncommitted,
        test_globs=globs,
        replayed=settings.cache == "replay",
    )
    return build_view(review)
