"""`schema`: the JSON Schemas, for editors and for programs that read results."""

from collections.abc import Callable, Mapping
from functools import partial

import click

from agentevals_action.errors import ExitCode
from agentevals_action.model.result import TestResult
from agentevals_action.reports.summary_json import Summary
from agentevals_action.runners.formats.agentevals import ResultLine
from agentevals_action.suites import json_schema
from agentevals_action.suites.json_schema import Schema

#: The schemas by their names; each is a file of the folder `schemas`.
SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "eval": json_schema.suite_schema,
    "agentevals": json_schema.configuration_schema,
    "results": partial(json_schema.output_schema, TestResult, "A line of results.jsonl"),
    "own-results": partial(
        json_schema.output_schema, ResultLine, "A line of results.jsonl of one's own runner"
    ),
    "summary": partial(json_schema.output_schema, Summary, "summary.json"),
}


@click.command("schema")
@click.argument("name", type=click.Choice([*SCHEMAS]), default="eval")
def command(name: str) -> int:
    """Print the JSON Schema of EVAL.yaml (`eval`), .agentevals.yaml (`agentevals`), a line of
    results.jsonl (`results`), the least that one's own runner writes (`own-results`) or
    summary.json (`summary`)."""
    print(json_schema.write_schema(SCHEMAS[name]()))
    return ExitCode.PASSED
