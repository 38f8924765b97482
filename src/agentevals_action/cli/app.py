"""The composition root: environment and arguments in, adapters built, errors to text and exit
code."""

import errno
import io
import json
import logging
import os
import sys
import traceback
from pathlib import Path
from typing import TextIO

import click

from agentevals_action import __version__
from agentevals_action.cli.options import as_environment, takes_inputs
from agentevals_action.errors import (
    AgentEvalsError,
    ExitCode,
    Interrupted,
    InvalidInput,
    OutputError,
)
from agentevals_action.system.signals import interruptible

ISSUES = "https://github.com/org/agentevals-action/issues"

#: What a run on this machine may be told; `review` adds what concerns a comparison.
_RUN_INPUTS = (
    "suites", "targets", "target", "judge-target", "samples", "max-concurrency", "timeout", "setup", "prepare", "env", "strict",
    "max-cost-usd", "cache", "cache-dir",
    "fail-on", "min-pass-rate", "on-inconclusive", "report-dir", "working-directory", "watch",
)  # fmt: skip
_REVIEW_INPUTS = (
    *_RUN_INPUTS,
    "select",
    "baseline",
    "baseline-file",
    "baseline-max-age",
    "confirm",
    "alpha",
    "comment-template",
)
_SELFTEST_INPUTS = (
    "suites", "targets", "target", "judge-target", "max-concurrency", "timeout", "prepare", "env", "strict", "max-cost-usd", "cache",
    "cache-dir", "report-dir", "working-directory", "confirm", "alpha",
)  # fmt: skip
_READ_INPUTS = ("suites", "targets", "target", "judge-target", "strict", "working-directory")

_RESUME_HELP = "Keep results that the output holds and whose test, grading and target are unchanged; what else the agent is made of is not seen."
_KEEP_HELP = "Keep the workspaces of tests that did not pass, in `workspaces` of the report folder, as the agent left them: secrets included."
_PATHS_HELP = "Suites, or folders that hold them; all of the repository's when left out."
_PATHS = click.argument("paths", nargs=-1, type=Path, help=_PATHS_HELP)
_JSON_LINES = click.option(
    "--json", "as_json", is_flag=True, help="One JSON document instead of lines."
)


class _Commands(click.Group):
    """Commands in the order in which they are written here, each with its whole sentence: Click
    would sort them and cut it."""

    # the signature is Click's
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.help or "") for name, command in self.commands.items()]
            )


@click.group(cls=_Commands, context_settings={"max_content_width": 120})
@click.version_option(
    __version__,
    prog_name="agentevals-action",
    message="%(prog)s %(version)s",
    help="Print the version and leave.",
)
def app() -> None:
    """The merge gate for AI agents: EVAL.yaml suites on every pull request, compared with the base
    branch."""


@app.command()
def action() -> None:
    """Gate the event that the runner's environment describes: the container's entry point."""
    from agentevals_action.cli import action as command

    sys.exit(command.main(os.environ))


@app.command()
@click.option(
    "--base",
    required=True,
    help="The revision to compare with; its merge base with HEAD is the base.",
)
@takes_inputs(*_REVIEW_INPUTS)
def review(base: str, **inputs: str | None) -> None:
    """Review the working tree against a base as a pull request would be: the comment, the report
    folder, the exit code."""
    from agentevals_action.cli import review as command

    sys.exit(command.main(os.environ, as_environment(inputs), Path.cwd(), base))


@app.command()
@_PATHS
@click.option(
    "--output",
    type=Path,
    help="Where the results go; `results.jsonl` of the report folder when left out.",
)
@click.option(
    "--test",
    multiple=True,
    metavar="ID-GLOB",
    help="Only tests whose id matches this glob; may be repeated.",
)
@click.option("--resume", is_flag=True, help=_RESUME_HELP)
@click.option("--keep-workspaces", is_flag=True, help=_KEEP_HELP)
@takes_inputs(*_RUN_INPUTS)
def run(
    paths: tuple[Path, ...],
    output: Path | None,
    test: tuple[str, ...],
    resume: bool,
    keep_workspaces: bool,
    **inputs: str | None,
) -> None:
    """Run suites as they are and say what came out."""
    from agentevals_action.cli import run as command

    wanted = command.Wanted(paths, output, test, resume, keep_workspaces)
    sys.exit(command.main(os.environ, as_environment(inputs), Path.cwd(), wanted))


@app.command()
@click.argument("base", metavar="BASE.jsonl", type=Path, help="Results of the base.")
@click.argument("head", metavar="HEAD.jsonl", type=Path, help="Results of the head.")
@click.option(
    "--fail-on",
    default="gates,regressions",
    show_default=True,
    help="What ends with exit code 1: gates, regressions, failures, never.",
)
def compare(base: Path, head: Path, fail_on: str) -> None:
    """Compare two files of results, test by test."""
    from agentevals_action.cli import compare as command

    sys.exit(command.main(base, head, fail_on))


@app.command()
@_PATHS
@takes_inputs(*_READ_INPUTS)
def validate(paths: tuple[Path, ...], **inputs: str | None) -> None:
    """Read suites and say every fault with file, line and column."""
    from agentevals_action.cli import validate as command

    sys.exit(command.main(os.environ, as_environment(inputs), Path.cwd(), paths))


@app.command(name="list")
@click.option("--base", help="Only suites that the change since this revision touches, and why.")
@_JSON_LINES
@takes_inputs(*_READ_INPUTS, "select", "watch")
def list_(base: str | None, as_json: bool, **inputs: str | None) -> None:
    """List suites and tests, and with a base why each suite would run."""
    from agentevals_action.cli import list as command

    sys.exit(command.main(os.environ, as_environment(inputs), Path.cwd(), base, as_json))


@app.command()
@click.argument("test", metavar="TEST", help="The id of a test, or a glob over ids.")
@_PATHS
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON document, nothing cut, instead of an outline."
)
@takes_inputs(*_READ_INPUTS, "timeout", "watch")
def explain(test: str, paths: tuple[Path, ...], as_json: bool, **inputs: str | None) -> None:
    """Explain what one test comes to: messages, evaluators and where each came from, target,
    judges, gates."""
    from agentevals_action.cli import explain as command

    sys.exit(command.main(os.environ, as_environment(inputs), Path.cwd(), test, paths, as_json))


@app.command()
@_PATHS
@click.option(
    "--name",
    multiple=True,
    metavar="NAME-GLOB",
    help="Only targets of this name, a glob; may be repeated.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Send each that is used, or named, one token's worth of a request.",
)
@_JSON_LINES
@takes_inputs(*_READ_INPUTS, "env", "timeout")
def targets(
    paths: tuple[Path, ...], name: tuple[str, ...], check: bool, as_json: bool, **inputs: str | None
) -> None:
    """List the targets that suites see, where each comes from and what it needs; with --check,
    whether it answers."""
    from agentevals_action.cli import targets as command

    wanted = command.Wanted(paths, name, check, as_json)
    sys.exit(command.main(os.environ, as_environment(inputs), Path.cwd(), wanted))


@app.command()
@_PATHS
@click.option(
    "--samples",
    type=click.IntRange(2, 100),
    default=10,
    show_default=True,
    help="Runs of each test.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")
@takes_inputs(*_SELFTEST_INPUTS)
def selftest(paths: tuple[Path, ...], samples: int, as_json: bool, **inputs: str | None) -> None:
    """Run suites many times on this commit and say how often a comparison with itself would block,
    and which tests are to blame."""
    from agentevals_action.cli import selftest as command

    given = as_environment({**inputs, "samples": str(samples)})
    sys.exit(command.main(os.environ, given, Path.cwd(), paths, as_json))


@app.command()
@click.option("--config", is_flag=True, help="That of `.agentevals.yaml` instead.")
def schema(config: bool) -> None:
    """Print the JSON Schema of EVAL.yaml, for editors."""
    from agentevals_action import evaluators
    from agentevals_action.suites.json_schema import configuration_schema
    from agentevals_action.suites.json_schema import suite_schema as make

    made = configuration_schema() if config else make(evaluators.EVALUATORS_BY_NAME)
    print(json.dumps(made, indent=2, ensure_ascii=False))


@app.command()
def demo() -> None:
    """Review a made pull request, without a key and without a network: what a reviewer would
    see."""
    from agentevals_action.cli import demo as command

    sys.exit(command.main(os.environ))


@app.group(cls=_Commands)
def baseline() -> None:
    """Base results that the repository keeps."""


@baseline.command(name="write")
@click.argument("file", metavar="FILE", type=Path, help="The file, for the input `baseline-file`.")
@click.option(
    "--results",
    type=Path,
    help="The results to keep; `results.jsonl` of the report folder when left out.",
)
@takes_inputs("report-dir")
def baseline_write(file: Path, results: Path | None, **inputs: str | None) -> None:
    """Write the results of a run as a file that the repository keeps and people review."""
    from agentevals_action.cli import baseline as command

    sys.exit(command.main(os.environ, as_environment(inputs), Path.cwd(), file, results))


def main() -> None:
    """Runs the command line; every failure that a user can cause ends in words and an exit code."""
    _prepare_streams()
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s: %(message)s"
    )
    try:
        with interruptible():
            try:
                app()
            finally:
                # or the interpreter does on its way out, when nobody can be told any more
                sys.stdout.flush()
    except AgentEvalsError as error:
        _tell(error)
        sys.exit(error.exit_code)
    except Interrupted as error:
        _say(f"interrupted by {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (`2>&1 | head`) left before Click's own words; what a command prints to nobody
        # ends in this code within Click. There is nobody to tell, and nothing has passed.
        _silence(sys.stdout, sys.stderr)
        sys.exit(ExitCode.FAILED)
    except Exception as error:
        sys.exit(_tell_unforeseen(error))


def _prepare_streams() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # what its encoding cannot say must not end a run
        sys.stdout.reconfigure(errors="replace")


def _silence(*streams: TextIO) -> None:
    """Lets what is still to be written go nowhere, or the interpreter complains at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())


def _tell(error: AgentEvalsError) -> None:
    errors = error.errors if isinstance(error, InvalidInput) else ()
    for line in (*errors, str(error), error.hint):
        if line:
            _print(line)


def _tell_unforeseen(error: Exception) -> ExitCode:
    if (
        isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None
    ):  # no file, so a stream
        _silence(sys.stdout)
        _tell(
            OutputError(
                "standard output cannot be written: no space is left there",
                "make room where it goes",
            )
        )
        return OutputError.exit_code
    _print(traceback.format_exc())
    _say(
        f"This is a bug of agentevals-action {__version__}. Please report it with the lines above: {ISSUES}"
    )
    return ExitCode.BUG


def _print(text: str) -> None:
    """To standard error, without secrets and without anything that a runner would take for a
    command."""
    from agentevals_action.github.workflow_commands import safe_log_line
    from agentevals_action.system.redaction import Redactor

    _say(safe_log_line(Redactor.from_environ(os.environ).redact(text)))


def _say(text: str) -> None:
    try:
        print(text, file=sys.stderr)
    except OSError:  # full, or read by nobody: the exit code says it all the same
        _silence(sys.stderr)
