"""`merge`: the review of a change by the results of its shards."""

import os
from pathlib import Path

import click

from agentevals_action.cli.commands.review import (
    REVIEW_INPUTS,
    attempt_option,
    base_option,
    form_of,
    open_folder,
    report,
)
from agentevals_action.cli.options import (
    as_environment,
    input_options,
    json_option,
    markdown_option,
)
from agentevals_action.review.sharding.merge import merge_shards
from agentevals_action.review.sharding.plan import RunIdentity


@click.command("merge")
@base_option
@attempt_option
@json_option
@markdown_option
@input_options(*REVIEW_INPUTS)
async def command(
    base: str, attempt: int, as_json: bool, as_markdown: bool, **inputs: str | None
) -> int:
    """Merge the results of all shards, which are in the report folder, into one review as `review`
    makes it. Suspects are confirmed here."""
    request = await open_folder(Path.cwd(), base, as_environment(inputs), os.environ)
    review = await merge_shards(request, RunIdentity(attempt=attempt))
    return await report(review, request.workspace, form_of(as_json, as_markdown))
