"""The command line: its commands, and the one handler of errors."""

import asyncio
import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress

import click

from agentevals_action import __version__
from agentevals_action.cli.lazy_group import LazyGroup
from agentevals_action.errors import AgentEvalsError, ExitCode, Interrupted
from agentevals_action.escaping import safe_log_line
from agentevals_action.system.isolation import adopt_orphans, hide_from_children
from agentevals_action.system.redaction import Redactor, redact_record, redacting
from agentevals_action.system.resources import exhausted
from agentevals_action.system.signals import end_process, run

_ISSUES = "https://github.com/org/agentevals-action/issues"
#: The commands in the order of the help text, each with its module, its function in the module, and
#: its line of the help text.
_COMMANDS = {
    "init": ("init", "command", "Write a first suite, its target and the workflow."),
    "review": ("review", "command", "Review the working tree against a base."),
    "run": ("run", "command", "Run suites without a comparison."),
    "merge": ("review", "merge_command", "Make one review of the results of all shards."),
    "compare": ("stored_results", "compare_command", "Compare two files of results."),
    "report": ("stored_results", "report_command", "Write the report page of stored results."),
    "history": ("stored_results", "history_command", "Write the page of the stored runs."),
    "validate": ("validate", "command", "Report every error of suites with file, line, column."),
    "list": ("list", "command", "List suites and tests."),
    "explain": ("explain", "command", "Print a test as it runs."),
    "targets": ("targets", "command", "List the targets; with --check, call each."),
    "selftest": ("selftest", "command", "Run suites often and report how often runs differ."),
    "judge": ("judge", "command", "Label answers, and measure judges by the labels."),
    "record": ("record", "command", "Record the replies of a real MCP server."),
    "schema": ("schema", "command", "Print the JSON Schema of a file."),
    "demo": ("demo", "command", "Review a prepared pull request, without a key."),
    "action": ("action", "command", "Gate the event of a workflow: the container's entry point."),
}

_SETTINGS = {"max_content_width": 120, "help_option_names": ["-h", "--help"]}


@click.group(cls=LazyGroup, members=_COMMANDS, context_settings=_SETTINGS)
@click.version_option(
    __version__,
    prog_name="agentevals-action",
    message="%(prog)s %(version)s",
    help="Print the version and exit.",
)
def app() -> None:
    """The merge gate for AI agents: runs EVAL.yaml suites on every pull request and compares the
    results with the base branch."""


def main() -> None:
    """Runs the command line; every failure that a user can cause ends in a message and an exit
    code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for a terminal whose encoding is not UTF-8
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s: %(message)s"
    )
    hide_from_children()
    adopt_orphans()
    try:
        with redacting(Redactor.from_environ(os.environ)):
            exit_code = _run_app()
    except AgentEvalsError as error:
        exit_code = _report(error)
    except Interrupted as error:
        _print_error(f"interrupted by {error}")
        exit_code = error.exit_code
    except BrokenPipeError:  # nobody reads the output any more
        exit_code = ExitCode.FAILED
    except Exception as error:
        problem = exhausted(error)
        exit_code = _report(problem) if problem else _report_bug()
    end_process(exit_code)


def _run_app() -> int:
    try:
        result = app.main(standalone_mode=False)
        if asyncio.iscoroutine(result):  # a command that waits
            result = run(result)
        return result or ExitCode.PASSED
    except click.ClickException as error:
        _print_document([{"problem": error.format_message(), "advice": "see `--help`"}])
        error.show()
        return error.exit_code
    finally:
        sys.stdout.flush()


def _report(error: AgentEvalsError) -> int:
    """Prints an error, with `--json` also as the document; returns the exit code."""
    summary = {"problem": str(error), "advice": error.hint}
    _print_document([*({"problem": line} for line in error.errors), summary])
    for line in filter(None, (*error.errors, str(error), error.hint)):
        _print_error(line)
    return error.exit_code


def _print_document(errors: Sequence[Mapping[str, str]]) -> None:
    """With `--json`, prints errors as the document."""
    if "--json" in sys.argv:
        document = redact_record({"errors": errors}, Redactor.from_environ(os.environ))
        with suppress(OSError):  # full or closed: the exit code is that of the error
            print(json.dumps(document, indent=2))


def _report_bug() -> int:
    _print_error(traceback.format_exc())
    version = f"agentevals-action {__version__}"
    _print_error(f"This is a bug of {version}. Please report it with the lines above: {_ISSUES}")
    return ExitCode.BUG


def _print_error(text: str) -> None:
    """Prints to standard error, without secrets and without commands to a runner."""
    with suppress(OSError):  # full or closed: only the exit code is left
        print(safe_log_line(Redactor.from_environ(os.environ).redact(text)), file=sys.stderr)
