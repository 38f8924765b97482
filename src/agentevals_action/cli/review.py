"""`review`: the working tree against a base, as a pull request is reviewed; without a code host."""

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click

from agentevals_action.cli.options import RUN_INPUTS, as_environment, input_options
from agentevals_action.github import events
from agentevals_action.github.base import LocalHost
from agentevals_action.reports.view.build import build_view
from agentevals_action.review import pipeline, publish
from agentevals_action.review.workspace import Workspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

_INPUTS = (
    *RUN_INPUTS,
    *("samples", "fail-on", "min-pass-rate", "on-inconclusive", "watch", "select", "baseline"),
    *("baseline-file", "baseline-max-age", "confirm", "alpha", "comment-template"),
)


@click.command("review")
@click.option(
    "--base",
    required=True,
    help="The revision to compare with. Its merge base with HEAD is the base.",
)
@input_options(*_INPUTS)
def command(base: str, **inputs: str | None) -> int:
    """Review the working tree against a base as a pull request is reviewed: print the comment and
    write the report folder."""
    return review_folder(Path.cwd(), base, as_environment(inputs), os.environ)


def review_folder(
    folder: Path, base: str, inputs: Mapping[str, str], environ: Mapping[str, str]
) -> int:
    """Prints the comment and writes the report folder; gives the gate's exit code."""
    settings = Settings.from_environ(inputs)
    repository = GitRepository(folder, environ=environ)
    job = events.local_job(
        repository.head(), base, events.JobOptions(settings.select, settings.fail_on)
    )
    workspace = Workspace(folder, settings, environ)
    template = workspace.comment_template()
    host = LocalHost(sys.stdout)
    result = pipeline.review(job, workspace, repository, host)
    view = publish.write(result, partial(build_view, template=template), workspace)
    publish.publish(view, host)
    print(f"report: {workspace.report}", file=sys.stderr)
    return view.review.decision.exit_code
