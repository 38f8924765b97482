"""`schema`: the JSON Schemas, for editors."""

import json

import click

from agentevals_action.errors import ExitCode
from agentevals_action.suites import json_schema


@click.command("schema")
@click.option("--config", is_flag=True, help="Print the schema of `.agentevals.yaml` instead.")
def command(config: bool) -> int:
    """Print the JSON Schema of EVAL.yaml, for editors."""
    found = json_schema.configuration_schema() if config else json_schema.suite_schema()
    print(json.dumps(found, indent=2, ensure_ascii=False))
    return ExitCode.PASSED
