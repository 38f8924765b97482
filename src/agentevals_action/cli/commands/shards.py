"""`shards`: plans the shards of a review, and prints the matrix of their jobs."""

import json
import os
import sys
from pathlib import Path

import click

from agentevals_action.cli.commands.review import REVIEW_INPUTS, base_option, open_folder
from agentevals_action.cli.options import as_environment, input_options
from agentevals_action.reports import console
from agentevals_action.review.sharding.plan import RunIdentity, matrix_of, plan_shards
from agentevals_action.settings import INPUTS


@click.command("shards")
@base_option
@click.option("--max", "max_shards", metavar="INTEGER", help=INPUTS["max-shards"].description)
@input_options("target-seconds", *REVIEW_INPUTS)
async def command(base: str, **inputs: str | None) -> int:
    """Plan a review on several machines: write the plan into the report folder, and print the
    matrix of the jobs as JSON."""
    request = await open_folder(Path.cwd(), base, as_environment(inputs), os.environ)
    plan, workspace = await plan_shards(request, RunIdentity()), request.workspace
    console.print_sentences(plan.notes, sys.stderr)
    print(f"plan: {workspace.folder / workspace.shards.path}", file=sys.stderr)
    print(json.dumps(matrix_of(plan)))
    return 0
