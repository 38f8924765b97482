"""`review`: the working tree against a base, as a pull request is reviewed; without a code host."""

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
from agentevals_action.github import events
from agentevals_action.github.base import Host
from agentevals_action.model.review import Review
from agentevals_action.reports import markdown, screen, summary_json
from agentevals_action.reports.view.build import build_view
from agentevals_action.review import pipeline, publish
from agentevals_action.review.change.workspace import ReviewWorkspace
from agentevals_action.review.request import ReviewRequest
from agentevals_action.review.sharding.plan import RunIdentity
from agentevals_action.review.sharding.shard import run_shard
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

Form = Literal["screen", "markdown", "json"]
#: The inputs of commands that review a change.
REVIEW_INPUTS = (
    *RUN_INPUTS,
    *("samples", "fail-on", "min-pass-rate", "on-inconclusive", "watch", "select", "baseline"),
    "untouched",
    *("baseline-file", "baseline-max-age", "confirm", "alpha", "comment-template"),
)

base_option = click.option(
    "--base",
    required=True,
    help="The revision to compare with. Its merge base with HEAD is the base.",
)
attempt_option = click.option(
    "--attempt",
    type=click.IntRange(1, 10_000),
    default=1,
    help="The number of this attempt; of each shard the newest counts. [default: 1]",
)


@click.command("review")
@base_option
@attempt_option
@json_option
@markdown_option
@input_options(*REVIEW_INPUTS, "shard")
async def command(
    base: str, attempt: int, as_json: bool, as_markdown: bool, **inputs: str | None
) -> int:
    """Review the working tree against a base as a pull request is reviewed, and write the report
    folder. With a shard, only run its part and write the results for `merge`."""
    if inputs["shard"]:
        return await _run_shard(base, as_environment(inputs), attempt)
    form = form_of(as_json, as_markdown)
    return await review_folder(Path.cwd(), base, as_environment(inputs), os.environ, form)


def form_of(as_json: bool, as_markdown: bool) -> Form:
    """The form of the output."""
    return "json" if as_json else "markdown" if as_markdown else "screen"


async def _run_shard(base: str, inputs: Mapping[str, str], attempt: int) -> int:
    request = await open_folder(Path.cwd(), base, inputs, os.environ)
    result = await run_shard(request, RunIdentity(attempt=attempt))
    print(result.describe())
    return result.exit_code


async def open_folder(
    folder: Path, base: str, inputs: Mapping[str, str], environ: Mapping[str, str]
) -> ReviewRequest:
    """The review of the repository that contains a folder."""
    settings = Settings.from_environ(inputs)
    repository = await GitRepository.open(folder, environ=environ)
    job = events.local_job(await repository.head(), base, settings)
    return ReviewRequest(
        job, ReviewWorkspace(repository.root, settings, environ), repository, Host()
    )


async def review_folder(
    folder: Path,
    base: str,
    inputs: Mapping[str, str],
    environ: Mapping[str, str],
    form: Form = "screen",
) -> int:
    """Prints the review of the repository that contains a folder, and writes the report folder;
    gives the gate's exit code. A `screen` that is not a terminal gets the comment."""
    request = await open_folder(folder, base, inputs, environ)
    return await report(await pipeline.review(request), request.workspace, form)


async def report(result: Review, workspace: ReviewWorkspace, form: Form) -> int:
    """Prints a review and writes the report folder; gives the gate's exit code."""
    view, _ = await asyncio.to_thread(publish.write, result, build_view, workspace)
    exit_code = view.review.decision.exit_code
    if form == "screen" and sys.stdout.isatty():
        screen.print_review(view, workspace.report, sys.stdout)
        return exit_code
    text_of = summary_json.review_summary if form == "json" else markdown.comment
    print(await asyncio.to_thread(text_of, view))
    print(f"report: {workspace.report}", file=sys.stderr)
    return exit_code
