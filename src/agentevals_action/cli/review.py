"""`review`: the working tree against a base, as a pull request is reviewed; without a code host."""

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
from agentevals_action.reports import markdown, screen, summary_json
from agentevals_action.reports.view.build import build_view
from agentevals_action.review import pipeline, publish
from agentevals_action.review.workspace import Workspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

Form = Literal["screen", "markdown", "json"]
_INPUTS = (
    *RUN_INPUTS,
    *("samples", "fail-on", "min-pass-rate", "on-inconclusive", "watch", "select", "baseline"),
    "untouched",
    *("baseline-file", "baseline-max-age", "confirm", "alpha", "comment-template"),
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
def command(base: str, as_json: bool, as_markdown: bool, **inputs: str | None) -> int:
    """Review the working tree against a base as a pull request is reviewed, and write the report
    folder."""
    form: Form = "json" if as_json else "markdown" if as_markdown else "screen"
    return review_folder(Path.cwd(), base, as_environment(inputs), os.environ, form)


def review_folder(
    folder: Path,
    base: str,
    inputs: Mapping[str, str],
    environ: Mapping[str, str],
    form: Form = "screen",
) -> int:
    """Prints the review of the repository that contains a folder, and writes the report folder;
    gives the gate's exit code. A `screen` that is not a terminal gets the comment."""
    settings = Settings.from_environ(inputs)
    repository = GitRepository(folder, environ=environ)
    job = events.local_job(
        repository.head(), base, events.JobOptions(settings.select, settings.fail_on)
    )
    workspace = Workspace(repository.root, settings, environ)
    result = pipeline.review(job, workspace, repository, Host())
    view, _ = publish.write(result, build_view, workspace)
    exit_code = view.review.decision.exit_code
    if form == "screen" and sys.stdout.isatty():
        screen.print_review(view, workspace.report, sys.stdout)
        return exit_code
    print(summary_json.review_summary(view) if form == "json" else markdown.comment(view))
    print(f"report: {workspace.report}", file=sys.stderr)
    return exit_code
