"""What commands print to standard output: JSON, YAML and lines."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from agentevals_action.errors import ExitCode
from agentevals_action.escaping import printable
from agentevals_action.formatting import counted
from agentevals_action.model.suite import Suite
from agentevals_action.results import shards
from agentevals_action.results.run_folder import RunResults
from agentevals_action.suites.documents.yaml_writer import write_yaml
from agentevals_action.system.files.tree_files import write_file
from agentevals_action.system.redaction import redact, without_secrets

_LINE = 100_000  # characters


def suite_entry(suite: Suite) -> dict[str, Any]:
    """The JSON object of a suite, for `print_json`. The tests of a runner are unknown."""
    if suite.program:
        return {"path": suite.path, "name": suite.name, "tests": None, "runner": suite.program}
    tests = [{"id": test.id, "location": test.location} for test in suite.tests]
    return {"path": suite.path, "name": suite.name, "tests": tests}


def describe_tests(suite: Suite) -> str:
    """The number of a suite's tests, or why it is unknown."""
    if suite.program:
        return f"the tests are known when the runner `{suite.program}` has run"
    return counted(len(suite.tests), "test")


def print_json(data: Any) -> None:
    """One JSON document of plain data, records and dataclasses."""
    # ASCII: a text may contain lone surrogates, which UTF-8 cannot encode.
    print(json.dumps(without_secrets(to_jsonable_python(data)), indent=2, allow_nan=False))


def print_yaml(documents: Iterable[Any]) -> None:
    """YAML documents of JSON data. A line that the log of a job would take for a command has `| `
    before it."""
    print_lines("---\n".join(map(write_yaml, documents)).splitlines())


def print_lines(lines: Iterable[str]) -> None:
    """Lines without anything that a terminal or the log of a job would take for a command."""
    for line in lines:
        print(printable(redact(line), _LINE))


def print_warnings(warnings: Iterable[object]) -> None:
    """Each warning once, on standard error."""
    for warning in dict.fromkeys(map(str, warnings)):
        print(f"warning: {printable(redact(warning), _LINE)}", file=sys.stderr)


def print_shard(results: RunResults) -> ExitCode:
    """Prints what a shard ran, after its errors on standard error; returns the exit code."""
    for error in shards.errors(results):
        print(f"error: {printable(redact(error), _LINE)}", file=sys.stderr)
    print(shards.describe(results))
    return shards.exit_code(results)


def write_page(title: str, text: str, path: Path) -> None:
    """Writes a page, and prints where it is."""
    write_file(path.parent.resolve() / path.name, [text.encode("utf-8", "replace")])
    print(f"{title}: {path}")
