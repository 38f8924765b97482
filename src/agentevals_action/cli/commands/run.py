"""`run`: suites without a base: the report folder, a table, an exit code."""

import asyncio
import fnmatch
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from agentevals_action.cli.loaded_suites import open_repository, paths_argument, tests_option
from agentevals_action.cli.options import RUN_INPUTS, as_environment, input_options, json_option
from agentevals_action.cli.output import print_shard, print_warnings
from agentevals_action.errors import InvalidInput
from agentevals_action.escaping import printable
from agentevals_action.execution.conversations import with_earlier_turns
from agentevals_action.execution.resume import incomplete_conversations, valid_results
from agentevals_action.formatting import counted, list_paths, plural
from agentevals_action.github import events
from agentevals_action.github.base import Host
from agentevals_action.model.judge import JudgeRule
from agentevals_action.model.path_patterns import selected_name
from agentevals_action.model.result import Fingerprint, Key, TestResult
from agentevals_action.model.run import Level
from agentevals_action.model.suite import Suite, Test
from agentevals_action.reports.summary_json import review_summary
from agentevals_action.reports.terminal import console
from agentevals_action.reports.view.cost import spending_sentence
from agentevals_action.reports.view.judges import describe_judge
from agentevals_action.reports.view.models import ReportView
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.run_folder import HEAD_RESULTS
from agentevals_action.review import pipeline
from agentevals_action.review.inputs.request import LocalRun, ReviewRequest, ReviewWorkspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository


@click.command("run")
@paths_argument
@click.option(
    "--output",
    type=Path,
    help="The file of results. Default: `results.jsonl` in the report folder.",
)
@tests_option
@click.option(
    "--shard",
    metavar="I/N",
    help="Run only this one of N parts of the tests, which every machine makes alike. `merge` "
    "makes one outcome of the report folders.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Keep results in the output whose test, evaluators and target are unchanged. Changes of "
    "code that the agent's program does not import are not noticed.",
)
@click.option(
    "--record",
    type=str,
    metavar="FOLDER",
    help="Store every request with its reply in this folder, to commit them for `--cache replay`.",
)
@click.option(
    "--variant",
    metavar="NAME",
    help="Run the suites that declare this variant in that arm: with its target, or without the "
    "skill.",
)
@json_option
@input_options(
    *RUN_INPUTS,
    *("samples", "fail-on", "min-pass-rate", "min-pass-all", "judge-floor", "on-inconclusive"),
    "watch",
)
async def command(
    paths: tuple[Path, ...],
    output: Path | None,
    tests: tuple[str, ...],
    resume: bool,
    record: str | None,
    variant: str | None,
    as_json: bool,
    **inputs: str | None,
) -> int:
    """Run suites without a comparison: write the report folder and print a table."""
    if record is not None:
        inputs = _recording_inputs(record, inputs)
    # One sample decides, as nothing is compared.
    settings = Settings.from_environ(as_environment(inputs)).model_copy(update={"confirm": 0})
    workspace, repository = await open_folder(settings)
    output = output or workspace.report / HEAD_RESULTS
    is_part = bool(tests or settings.shard)
    selection = TestSelection(tests, output, resume, settings.samples, is_part)
    run = LocalRun(
        paths,
        tests,
        selection.select,
        selection.keep_results,
        output.parent.resolve() / output.name,
        records=record is not None,
        variant=variant,
    )
    request = await local_request(workspace, repository, run)
    try:
        results = await pipeline.run(request)
    except asyncio.CancelledError:
        print(f"the finished tests are in {output}; `--resume` continues", file=sys.stderr)
        raise
    if settings.shard:
        return print_shard(results)
    if tests:  # suites of runners in which none matches have run, too
        paths_of_rows = {row.eval_path for row in results.head}
        if not paths_of_rows:
            raise _no_match()
        shown = tuple(suite for suite in results.run.suites if suite.path in paths_of_rows)
        results = replace(results, run=results.run.model_copy(update={"suites": shown}))
    view, _ = await asyncio.to_thread(pipeline.report, results, workspace)
    print_warnings(results.run.diagnostics(Level.WARNING))
    console.print_sentences(
        (f"notice: {notice}" for notice in view.review.run.sentences(Level.NOTICE)), sys.stderr
    )
    if as_json:
        print(review_summary(view), end="")
    else:
        _print(view, "these results" if resume else "this run")
    print(f"results: {output}", file=sys.stderr)
    return view.review.decision.exit_code


async def open_folder(settings: Settings) -> tuple[ReviewWorkspace, GitRepository | None]:
    """The workspace that contains the current folder, and its repository, None without one."""
    folder, repository = await open_repository()
    return ReviewWorkspace(folder, settings, os.environ), repository


async def local_request(
    workspace: ReviewWorkspace, repository: GitRepository | None, run: LocalRun
) -> ReviewRequest:
    """The request of a run of the working tree."""
    head = await repository.resolve("HEAD") if repository else None
    job = events.run_job(head or "", workspace.settings)
    return ReviewRequest(job, workspace, repository, Host(), run=run)


def _recording_inputs(folder: str, inputs: Mapping[str, str | None]) -> dict[str, str | None]:
    """The inputs of a run that records in a folder; InvalidInput if they contradict that."""
    if inputs["cache"] is not None or inputs["cache_dir"] is not None:
        problem = "`--record` cannot be used with `--cache` or `--cache-dir`"
        raise InvalidInput(problem, "leave out one of them")
    return {**inputs, "cache_dir": folder, "cache": "replay"}


def _print(view: ReportView, subject: str) -> None:
    decision = view.review.decision
    console.print_suites(view, sys.stdout)
    console.print_tests(view, console.not_passed(view), sys.stdout)
    spent = spending_sentence(view.spending, subject)
    console.print_sentences([spent], sys.stdout)
    console.print_sentences(map(describe_judge, view.advisory_judges), sys.stdout)
    for waived in decision.waived:
        print(printable(waived, 500))
    if number := sum(suite.head.borderline for suite in view.review.suites if suite.head):
        tests = f"{counted(number, 'test')} {plural(number, 'is', 'are')} borderline"
        print(f"{tests}: neither passed (score 0.8 or more) nor failed (under 0.6)")
    print(console.outcome_line(decision))


@dataclass(frozen=True)
class TestSelection:
    """The tests that run: their ids match one of the `globs` (empty: all). If the run `resumes`,
    results in the file `output` stay that have `samples` samples. `is_part` if not all tests of the
    suites run."""

    globs: Sequence[str]
    output: Path
    resumes: bool
    samples: int
    is_part: bool

    def select(self, suites: Sequence[Suite]) -> Sequence[Suite]:
        """The suites with their tests that run, with earlier turns of their conversations.
        InvalidInput without such a test."""
        selected = [suite.with_tests(with_earlier_turns(suite, self._matches)) for suite in suites]
        tests = [test for suite in selected for test in suite.tests]
        if not tests and not any(suite.program for suite in selected):
            raise _no_match()
        if number := sum(not self._matches(test) for test in tests):
            turns = plural(number, "turn of a conversation runs", "turns of conversations run")
            why = "because an agent that remembers them may answer differently without them"
            print(f"{number:,} earlier {turns} too, {why}", file=sys.stderr)
        return [suite for suite in selected if suite.tests or suite.program]

    def _matches(self, test: Test) -> bool:
        globs = self.globs
        return not globs or any(fnmatch.fnmatchcase(test.id, glob) for glob in globs)

    def keep_results(
        self,
        suites: Sequence[Suite],
        fingerprint: Callable[[Suite, Test], Fingerprint],
        rule: JudgeRule,
    ) -> Mapping[Key, TestResult]:
        """The earlier results that stay: results of tests that have not changed. Of a conversation,
        all turns stay or no turn; results of suites of runners do not stay.

        InvalidInput if writing results would destroy another file, or drop results: if only a part
        of the tests runs, no test was deleted."""
        if self.output.exists():
            self._require_results_file(suites)
        if not self.resumes or not self.output.is_file():
            return {}
        rows = tuple(read_results(self.output))
        self._require_selected(rows, suites)
        valid = valid_results(rows, suites, fingerprint, self.samples, rule)
        again = incomplete_conversations(suites, valid)
        if again:
            turns = plural(len(again), "turn of a conversation runs", "turns of conversations run")
            why = "because other turns of it run again and an agent may remember them"
            print(f"{len(again):,} {turns} again, {why}", file=sys.stderr)
        if of_runners := [suite.path for suite in suites if suite.program]:
            print(f"the tests of {list_paths(of_runners)} run again", file=sys.stderr)
        kept = {key: row for key, row in valid.items() if key not in again}
        if kept:
            number = sum(len(suite.tests) for suite in suites)
            print(f"{len(kept)} of {number} tests are kept from {self.output}", file=sys.stderr)
        return kept

    def _require_results_file(self, suites: Sequence[Suite]) -> None:
        output = self.output
        files = {(suite.root / file.path).resolve() for suite in suites for file in suite.files}
        if output.resolve() in files or not output.is_file() or output.suffix != ".jsonl":
            raise InvalidInput(
                f"{output} exists and is not a file of results", "name a file that ends in .jsonl"
            )

    def _require_selected(self, rows: Sequence[TestResult], suites: Sequence[Suite]) -> None:
        """InvalidInput if a row is of a test that this run would not have in its results."""
        selected = {(suite.path, test.id) for suite in suites for test in suite.tests}
        of_runners = {suite.path for suite in suites if suite.program}
        shown = {suite.path for suite in suites}
        for row in rows:
            is_matched = bool(row.error) or selected_name(row.eval_id, self.globs or ("*",))
            is_selected = row.key in selected or (row.eval_path in of_runners and is_matched)
            if not is_selected and (self.is_part or row.eval_path not in shown):
                problem = f"{self.output} contains results of tests that are not selected now"
                raise InvalidInput(
                    f"{problem}, the first `{row.eval_id}`: `--resume` would drop them",
                    "select the same tests as before, or name another `--output`",
                )


def _no_match() -> InvalidInput:
    advice = "correct the globs of `--test`; `agentevals-action list` prints the ids"
    return InvalidInput("no test matches", advice)
