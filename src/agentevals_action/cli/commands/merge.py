"""`merge`: the review of a change by the report folders of its shards."""

import asyncio
import os
from pathlib import Path

import click

from agentevals_action.cli.commands.review import choose_form, report
from agentevals_action.cli.options import (
    as_environment,
    input_options,
    json_option,
    markdown_option,
)
from agentevals_action.review.inputs.request import ReviewWorkspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository


@click.command("merge")
@json_option
@markdown_option
@input_options("report-dir")
async def command(as_json: bool, as_markdown: bool, **inputs: str | None) -> int:
    """Make one review of the report folders of all shards, which are in the folder `shards` of the
    report folder."""
    settings = Settings.from_environ(as_environment(inputs))
    repository = await GitRepository.open(Path.cwd(), environ=os.environ)
    workspace = ReviewWorkspace(repository.root, settings, os.environ)
    head = await repository.head()
    results = await asyncio.to_thread(workspace.merge_shards, head)
    return await report(results, workspace, choose_form(as_json, as_markdown))
