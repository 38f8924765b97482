"""`review`: the working tree against a base, as a pull request is reviewed; without a code host.
`merge`: the review of the report folders of shards."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import click

from agentevals_action.cli.options import (
    RUN_INPUTS,
    as_environment,
    input_options,
    json_option,
    markdown_option,
)
from agentevals_action.cli.output import print_shard
from agentevals_action.github import events
from agentevals_action.github.base import Host
from agentevals_action.reports import summary_json
from agentevals_action.reports.markdown import texts as markdown
from agentevals_action.reports.page.report_page import PAGE
from agentevals_action.reports.terminal import console
from agentevals_action.results.run_folder import RunResults
from agentevals_action.review import pipeline
from agentevals_action.review.inputs.request import ReviewRequest, ReviewWorkspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

Form = Literal["screen", "markdown", "json"]
_INPUTS = (
    *RUN_INPUTS,
    *("samples", "fail-on", "min-pass-rate", "min-pass-all", "judge-floor", "on-inconclusive"),
    *("watch", "select", "max-cost-increase", "max-latency-increase", "baseline", "untouched"),
    *("baseline-file", "baseline-max-age", "confirm", "alpha", "comment-template", "shard"),
)


@click.command("review")
@click.option(
    "--base",
    required=True,
    help="The revision to compare with. Its merge base with HEAD is the base.",
)
@json_option
@markdown_option
@input_options(*_INPUTS)
async def command(base: str, as_json: bool, as_markdown: bool, **inputs: str | None) -> int:
    """Review the working tree against a base as a pull request is reviewed, and write the report
    folder. With a shard, only run its part and write the results for `merge`."""
    form = _choose_form(as_json, as_markdown)
    return await review_folder(Path.cwd(), base, as_environment(inputs), os.environ, form)


@click.command("merge")
@json_option
@markdown_option
@input_options("report-dir")
async def merge_command(as_json: bool, as_markdown: bool, **inputs: str | None) -> int:
    """Make one review of the report folders of all shards, which are in the folder `shards` of the
    report folder."""
    settings = Settings.from_environ(as_environment(inputs))
    repository = await GitRepository.open(Path.cwd(), environ=os.environ)
    workspace = ReviewWorkspace(repository.root, settings, os.environ)
    head = await repository.head()
    results = await asyncio.to_thread(workspace.merge_shards, head)
    return await _report(results, workspace, _choose_form(as_json, as_markdown))


def _choose_form(as_json: bool, as_markdown: bool) -> Form:
    return "json" if as_json else "markdown" if as_markdown else "screen"


async def review_folder(
    folder: Path,
    base: str,
    inputs: Mapping[str, str],
    environ: Mapping[str, str],
    form: Form = "screen",
) -> int:
    """Prints the review of the repository that contains a folder, and writes the report folder;
    returns the gate's exit code. A `screen` that is not a terminal gets the comment."""
    settings = Settings.from_environ(inputs)
    repository = await GitRepository.open(folder, environ=environ)
    job = events.local_job(await repository.head(), base, settings)
    workspace = ReviewWorkspace(repository.root, settings, environ)
    results = await pipeline.run(ReviewRequest(job, workspace, repository, Host()))
    if settings.shard:
        return print_shard(results)
    return await _report(results, workspace, form)


async def _report(results: RunResults, workspace: ReviewWorkspace, form: Form) -> int:
    """Prints the review of results and writes the report folder; returns the gate's exit code."""
    view, _ = await asyncio.to_thread(pipeline.report, results, workspace)
    exit_code = view.review.decision.exit_code
    if form == "screen" and sys.stdout.isatty():
        console.print_review(view, workspace.report / PAGE, sys.stdout)
        return exit_code
    write = summary_json.review_summary if form == "json" else markdown.comment
    print(await asyncio.to_thread(write, view))
    print(f"report: {workspace.report}", file=sys.stderr)
    return exit_code
