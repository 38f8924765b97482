"""`run`: suites without a base: a results file, a table, an exit code."""

import asyncio
import fnmatch
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from agentevals_action.cli.loaded_suites import LoadedSuites, load_suites
from agentevals_action.cli.options import RUN_INPUTS, input_options, json_option, paths_argument
from agentevals_action.cli.preparation import check_targets, run_tests, setup_log
from agentevals_action.errors import ExitCode, InvalidInput, OutputError, unwrapped
from agentevals_action.escaping import printable
from agentevals_action.execution.conversations import select_tests
from agentevals_action.execution.engine import Engine, open_engine
from agentevals_action.execution.resume import (
    IndexedTest,
    incomplete_conversations,
    valid_results,
)
from agentevals_action.formatting import counted, plural
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import ChangeKind, SuiteComparison, TestComparison
from agentevals_action.model.quarantine import Quarantine, Quarantines
from agentevals_action.model.result import TestResult
from agentevals_action.model.review import Outcome, Review
from agentevals_action.model.run import Policy, Shard
from agentevals_action.model.suite import Suite, Test
from agentevals_action.reports import console
from agentevals_action.reports.html.report_page import PAGE, report_page
from agentevals_action.reports.junit import junit
from agentevals_action.reports.summary_json import report_path, run_summary
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.cost import spending_sentence
from agentevals_action.reports.view.models import ReportView
from agentevals_action.results.estimate import attempt_cost, estimate
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.summary import summarise
from agentevals_action.review import gate, waivers
from agentevals_action.review.shards import divided_budget, part_of, reduce_suite
from agentevals_action.suites.configuration_file import read_quarantines
from agentevals_action.system.files.tree_files import write_atomically
from agentevals_action.system.redaction import Redactor
from agentevals_action.targets.calls.reply_store import check_cache

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
    help="Store every request with its reply in this folder, to commit them for `--cache replay`.",
)
@click.option("--junit", "junit_path", type=Path, help="Write the results as JUnit XML, too.")
@json_option
@input_options(*RUN_INPUTS, "samples", "fail-on", "min-pass-rate", "on-inconclusive", "watch")
async def command(
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
    loaded = await load_suites(inputs, paths)
    suites: Sequence[Suite] = loaded.all_valid()
    for warning in (warning for suite in suites for warning in suite.warnings):
        print(f"warning: {warning}", file=sys.stderr)
    await check_cache(loaded.settings, loaded.folder, loaded.environ)
    quarantines = _read_quarantines(loaded, has_all_suites=not paths)
    selection = tests
    if shard := loaded.settings.shard:
        loaded = _part(loaded, suites, shard)
        selection = (*tests, f"shard {shard}")
    report = loaded.folder / loaded.settings.report_dir
    output = output or report / "results.jsonl"
    keep = report / "workspaces" if keep_workspaces else None
    async with open_engine(
        loaded.settings,
        loaded.environ,
        loaded.folder,
        keep,
        records=record is not None,
        log=setup_log(loaded),
    ) as engine:
        run = await _prepare(engine, loaded, output, tests, resume, quarantines.head, selection)
        try:
            with unwrapped():
                await run_tests(run.left, output, run.done, engine)
        except asyncio.CancelledError:
            print(f"the finished tests are in {output}; `--resume` continues", file=sys.stderr)
            raise
        except OutputError as error:
            raise _with_failure(error, run.view()) from error.__cause__
        notices = list(engine.notices)
    if keep and keep.is_dir():
        notices.append(
            f"{keep} contains workspaces as the agents left them, including secrets: "
            "they are not redacted, so do not upload them"
        )
    console.print_sentences(
        (f"notice: {run.redactor.redact(each)}" for each in notices), sys.stderr
    )
    return _report(run.view(), output, junit_path, resume=resume, as_json=as_json)


@dataclass(frozen=True)
class _Run:
    """The tests that are `left` to run, and the results that are `done`, by index; `selection` are
    the globs of tests and the shard."""

    loaded: LoadedSuites
    left: Sequence[IndexedTest]
    done: dict[int, TestResult]
    redactor: Redactor
    quarantine: Sequence[Quarantine]
    commit: str
    uncommitted: tuple[str, ...]
    selection: tuple[str, ...]

    def view(self) -> ReportView:
        """The view of the results that are done, with the decision."""
        settings = self.loaded.settings
        by_suite: dict[str, list[TestResult]] = {}
        for _, result in sorted(self.done.items()):
            by_suite.setdefault(result.eval_path, []).append(result)
        suites = tuple(
            SuiteComparison(
                suite.path,
                suite.name,
                tuple(self._uncompared(result) for result in by_suite[suite.path]),
                summarise(suite.path, suite.name, by_suite[suite.path]),
                None,
            )
            for suite in self.loaded.valid
            if suite.path in by_suite
        )
        policy = Policy(
            settings.fail_on or _DEFAULT_FAIL_ON, settings.min_pass_rate, settings.on_inconclusive
        )
        review = Review(
            self.commit,
            None,
            gate.decide(policy, suites, _BASELINE),
            suites=suites,
            baseline=_BASELINE,
            uncommitted=self.uncommitted,
            test_globs=self.selection,
        )
        return build_view(review)

    def _uncompared(self, result: TestResult) -> TestComparison:
        change = ChangeKind.NEW if result.verdict else ChangeKind.HEAD_ERROR
        held = waivers.entry_for(self.quarantine, result.eval_path, result.eval_id)
        return TestComparison(result.eval_id, change, result, None, quarantine=held)


async def _prepare(
    engine: Engine,
    loaded: LoadedSuites,
    output: Path,
    globs: tuple[str, ...],
    resume: bool,
    quarantine: Sequence[Quarantine],
    selection: tuple[str, ...],
) -> _Run:
    """Checks and reads what the run needs, and prints what it will do."""
    suites, settings = loaded.valid, loaded.settings
    check_targets(engine, suites)
    await asyncio.to_thread(engine.load, suites)
    commit, uncommitted = await _source(loaded, output)
    await _record_watched(engine, loaded, uncommitted)
    _check_output(output, suites)
    planned = _select(suites, globs)
    last_cost = attempt_cost(output)
    done = _read_kept(planned, loaded, output, engine) if resume else {}
    left = [each for each in planned if each[0] not in done]
    sentences = [estimate(len(left) * settings.samples, last_cost, settings.max_cost_usd)]
    if done:
        sentences += [f"{len(done)} of {len(planned)} tests are kept from {output}"]
    console.print_sentences(sentences, sys.stderr)
    redactor = engine.redactor(suites)
    return _Run(loaded, left, done, redactor, quarantine, commit, uncommitted, selection)


def _report(
    view: ReportView, output: Path, junit_path: Path | None, *, resume: bool, as_json: bool
) -> int:
    """Writes and prints the results; the exit code."""
    summary = run_summary(view)
    reports = {report_path(output, _SUMMARY): summary, report_path(output, PAGE): report_page(view)}
    if junit_path:
        reports[junit_path] = junit(view)
    try:
        for path, text in reports.items():
            write_atomically(path, text)
    except OutputError as error:
        raise _with_failure(error, view) from error.__cause__
    if as_json:
        print(summary, end="")
    else:
        _print(view, "these results" if resume else "this run")
    print(f"results: {output}", file=sys.stderr)
    return view.review.decision.exit_code


def _part(loaded: LoadedSuites, suites: Sequence[Suite], shard: Shard) -> LoadedSuites:
    """The tests of one shard, with its share of the budget."""
    names = part_of({suite.path: suite.tests for suite in suites}, shard)
    part = tuple(
        reduce_suite(suite, names[suite.path], shard.total)
        for suite in suites
        if suite.path in names
    )
    return replace(loaded, suites=part, settings=divided_budget(loaded.settings))


def _recording_inputs(folder: str, inputs: Mapping[str, str | None]) -> dict[str, str | None]:
    """The inputs of a run that records in a folder; InvalidInput if they contradict that."""
    if inputs["cache"] is not None or inputs["cache_dir"] is not None:
        problem = "`--record` cannot be used with `--cache` or `--cache-dir`"
        raise InvalidInput(problem, "leave out one of them")
    return {**inputs, "cache_dir": folder, "cache": "replay"}


def _with_failure(error: OutputError, view: ReportView) -> OutputError:
    """The error of a file that cannot be written; a failure that is known stays the outcome."""
    decision = view.review.decision
    if decision.outcome is Outcome.FAILED:
        print(console.outcome_line(decision), file=sys.stderr)
        error.exit_code = ExitCode.FAILED
    return error


def _print(view: ReportView, subject: str) -> None:
    decision = view.review.decision
    console.print_suites(view, sys.stdout)
    console.print_not_passed(view, sys.stdout)
    spent = spending_sentence(view.spending, subject)
    console.print_sentences([spent], sys.stdout)
    for waived in decision.waived:
        print(printable(waived, 500))
    if number := sum(suite.head.borderline for suite in view.review.suites if suite.head):
        tests = f"{counted(number, 'test')} {plural(number, 'is', 'are')} borderline"
        print(f"{tests}: neither passed (score 0.8 or more) nor failed (under 0.6)")
    print(console.outcome_line(decision))


def _select(suites: Sequence[Suite], globs: Sequence[str]) -> Sequence[IndexedTest]:
    """The tests whose ids match one of the globs (all if there are none), with earlier turns of
    their conversations. InvalidInput if there are none."""

    def matches(test: Test) -> bool:
        return not globs or any(fnmatch.fnmatchcase(test.id, glob) for glob in globs)

    found = [(suite, test) for suite in suites for test in select_tests(suite, matches)]
    if not found:
        raise InvalidInput(
            "no test matches",
            "correct the globs of `--test`; `agentevals-action list` prints the ids",
        )
    if number := sum(not matches(test) for _, test in found):
        turns = plural(number, "turn of a conversation runs", "turns of conversations run")
        why = "because an agent that remembers them may answer differently without them"
        print(f"{number:,} earlier {turns} too, {why}", file=sys.stderr)
    return [(index, suite, test) for index, (suite, test) in enumerate(found)]


def _read_kept(
    planned: Sequence[IndexedTest], loaded: LoadedSuites, output: Path, engine: Engine
) -> dict[int, TestResult]:
    """The results in the output that stay, by index; of a conversation all turns stay or none."""
    rows = tuple(read_results(output)) if output.is_file() else ()
    selected = {(suite.path, test.id) for _, suite, test in planned}
    declared = {(suite.path, test.id) for suite in loaded.valid for test in suite.tests}
    shown = {suite.path for suite in loaded.valid}
    for row in rows:
        key = (row.eval_path, row.eval_id)
        if key not in selected and (key in declared or row.eval_path not in shown):
            problem = f"{output} contains results of tests that are not selected now"
            raise InvalidInput(
                f"{problem}, the first `{row.eval_id}`: `--resume` would drop them",
                "select the same tests as before, or name another `--output`",
            )
    valid = valid_results(rows, planned, engine.fingerprints.of, loaded.settings.samples)
    again = incomplete_conversations(planned, valid)
    if again:
        turns = plural(len(again), "turn of a conversation runs", "turns of conversations run")
        why = "because other turns of it run again and an agent may remember them"
        print(f"{len(again):,} {turns} again, {why}", file=sys.stderr)
    return {index: row for index, row in valid.items() if index not in again}


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


async def _source(loaded: LoadedSuites, output: Path) -> tuple[str, tuple[str, ...]]:
    """The commit that runs, and the paths that differ from it, without the files of runs; empty
    outside a repository."""
    repository = loaded.repository
    if repository is None or (commit := await repository.resolve("HEAD")) is None:
        return "", ()
    reports = (report_path(output, name) for name in (_SUMMARY, PAGE))
    own = (loaded.folder / loaded.settings.report_dir, output.resolve(), *reports)
    return commit, tuple(
        path
        for path in await repository.uncommitted()
        if not any((repository.root / path).is_relative_to(one.resolve()) for one in own)
    )


async def _record_watched(engine: Engine, loaded: LoadedSuites, uncommitted: Sequence[str]) -> None:
    """Gives the fingerprints what git knows of the files that `watch` may match."""
    repository = loaded.repository
    if loaded.settings.watch_rules and repository:
        engine.fingerprints.add_tree(repository.root, await repository.blobs(uncommitted))
