"""The composition root: environment and arguments in, adapters built, errors to text and exit code."""

import gc
import json
import logging
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from agentevals_action import __version__
from agentevals_action.errors import AgentEvalsError, ExitCode, Interrupted, InvalidInput
from agentevals_action.interrupts import interruptible
from agentevals_action.options import as_environment, takes_inputs

#: Objects made since the last look for garbage that are worth another one.
_NEW_OBJECTS = 20_000
ISSUES = "https://github.com/org/agentevals-action/issues"

#: What a run on this machine may be told; `review` adds what concerns a comparison.
_RUN_INPUTS = (
    "suites", "targets", "target", "judge-target", "samples", "max-concurrency", "timeout", "setup", "prepare", "env", "strict",
    "max-cost-usd", "cache", "cache-dir",
    "fail-on", "min-pass-rate", "on-inconclusive", "report-dir", "working-directory", "watch",
)  # fmt: skip
_REVIEW_INPUTS = (*_RUN_INPUTS, "select", "baseline", "baseline-file", "baseline-max-age", "confirm", "alpha", "comment-template")
_SELFTEST_INPUTS = (
    "suites", "targets", "target", "judge-target", "max-concurrency", "timeout", "prepare", "env", "strict", "max-cost-usd", "cache",
    "cache-dir", "report-dir", "working-directory", "confirm", "alpha",
)  # fmt: skip
_READ_INPUTS = ("suites", "targets", "target", "judge-target", "strict", "working-directory")

app = typer.Typer(
    name="agentevals-action",
    help="The merge gate for AI agents: EVAL.yaml suites on every pull request, compared with the base branch.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

baseline_app = typer.Typer(help="Base results that the repository keeps.", no_args_is_help=True)
app.add_typer(baseline_app, name="baseline")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"agentevals-action {__version__}")
        raise typer.Exit


_RESUME_HELP = (
    "Keep results that the output holds and whose test, grading and target are unchanged; what else the agent is made of is not seen."
)
_KEEP_HELP = (
    "Keep the workspaces of tests that did not pass, in `workspaces` of the report folder, as the agent left them: secrets included."
)
_PATHS_HELP = "Suites, or folders that hold them; all of the repository's when left out."
Paths = Annotated[list[Path] | None, typer.Argument(help=_PATHS_HELP, show_default=False)]
Version = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")]
TestGlobs = Annotated[list[str] | None, typer.Option(help="Only tests whose id matches this glob; may be repeated.", metavar="ID-GLOB")]


@app.callback()
def _root(version: Version = False) -> None:
    pass


@app.command()
def action() -> None:
    """Gate the event that the runner's environment describes: the container's entry point."""
    from agentevals_action.commands import action as command

    raise typer.Exit(command.main(os.environ))


@app.command()
@takes_inputs(*_REVIEW_INPUTS)
def review(
    inputs: dict[str, str],
    base: Annotated[str, typer.Option(help="The revision to compare with; its merge base with HEAD is the base.")],
) -> None:
    """Review the working tree against a base as a pull request would be: the comment, the report folder, the exit code."""
    from agentevals_action.commands import review as command

    raise typer.Exit(command.main(os.environ, as_environment(inputs), Path.cwd(), base))


@app.command()
@takes_inputs(*_RUN_INPUTS)
def run(
    inputs: dict[str, str],
    paths: Paths = None,
    output: Annotated[Path | None, typer.Option(help="Where the results go; `results.jsonl` of the report folder when left out.")] = None,
    test: TestGlobs = None,
    resume: Annotated[bool, typer.Option("--resume", help=_RESUME_HELP)] = False,
    keep_workspaces: Annotated[bool, typer.Option("--keep-workspaces", help=_KEEP_HELP)] = False,
) -> None:
    """Run suites as they are and say what came out."""
    from agentevals_action.commands import run as command

    wanted = command.Wanted(tuple(paths or ()), output, tuple(test or ()), resume, keep_workspaces)
    raise typer.Exit(command.main(os.environ, as_environment(inputs), Path.cwd(), wanted))


@app.command()
def compare(
    base: Annotated[Path, typer.Argument(metavar="BASE.jsonl", help="Results of the base.")],
    head: Annotated[Path, typer.Argument(metavar="HEAD.jsonl", help="Results of the head.")],
    fail_on: Annotated[str, typer.Option(help="What ends with exit code 1: gates, regressions, failures, never.")] = "gates,regressions",
) -> None:
    """Compare two files of results, test by test."""
    from agentevals_action.commands import compare as command

    raise typer.Exit(command.main(base, head, fail_on))


@app.command()
@takes_inputs(*_READ_INPUTS)
def validate(inputs: dict[str, str], paths: Paths = None) -> None:
    """Read suites and say every fault with file, line and column."""
    from agentevals_action.commands import validate as command

    raise typer.Exit(command.main(os.environ, as_environment(inputs), Path.cwd(), tuple(paths or ())))


@app.command(name="list")
@takes_inputs(*_READ_INPUTS, "select", "watch")
def list_(
    inputs: dict[str, str],
    base: Annotated[str | None, typer.Option(help="Only suites that the change since this revision touches, and why.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of lines.")] = False,
) -> None:
    """List suites and tests, and with a base why each suite would run."""
    from agentevals_action.commands import list as command

    raise typer.Exit(command.main(os.environ, as_environment(inputs), Path.cwd(), base, as_json))


@app.command()
@takes_inputs(*_READ_INPUTS, "timeout", "watch")
def explain(
    inputs: dict[str, str],
    test: Annotated[str, typer.Argument(help="The id of a test, or a glob over ids.", metavar="TEST", show_default=False)],
    paths: Paths = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document, nothing cut, instead of an outline.")] = False,
) -> None:
    """Explain what one test comes to: messages, evaluators and where each came from, target, judges, gates."""
    from agentevals_action.commands import explain as command

    raise typer.Exit(command.main(os.environ, as_environment(inputs), Path.cwd(), test, tuple(paths or ()), as_json))


@app.command()
@takes_inputs(*_READ_INPUTS, "env", "timeout")
def targets(
    inputs: dict[str, str],
    paths: Paths = None,
    name: Annotated[list[str] | None, typer.Option(help="Only targets of this name, a glob; may be repeated.", metavar="NAME-GLOB")] = None,
    check: Annotated[bool, typer.Option("--check", help="Send each that is used, or named, one token's worth of a request.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of lines.")] = False,
) -> None:
    """List the targets that suites see, where each comes from and what it needs; with --check, whether it answers."""
    from agentevals_action.commands import targets as command

    wanted = command.Wanted(tuple(paths or ()), tuple(name or ()), check, as_json)
    raise typer.Exit(command.main(os.environ, as_environment(inputs), Path.cwd(), wanted))


@app.command()
@takes_inputs(*_SELFTEST_INPUTS)
def selftest(
    inputs: dict[str, str],
    paths: Paths = None,
    samples: Annotated[int, typer.Option(min=2, max=100, help="Runs of each test.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
) -> None:
    """Run suites many times on this commit and say how often a comparison with itself would block, and which tests are to blame."""
    from agentevals_action.commands import selftest as command

    given = as_environment({**inputs, "samples": str(samples)})
    raise typer.Exit(command.main(os.environ, given, Path.cwd(), tuple(paths or ()), as_json))


@baseline_app.command(name="write")
@takes_inputs("report-dir")
def baseline_write(
    inputs: dict[str, str],
    file: Annotated[Path, typer.Argument(help="The file, for the input `baseline-file`.", metavar="FILE", show_default=False)],
    results: Annotated[
        Path | None, typer.Option(help="The results to keep; `results.jsonl` of the report folder when left out.", show_default=False)
    ] = None,
) -> None:
    """Write the results of a run as a file that the repository keeps and people review."""
    from agentevals_action.commands import baseline as command

    raise typer.Exit(command.main(os.environ, as_environment(inputs), Path.cwd(), file, results))


@app.command()
def schema(
    config: Annotated[bool, typer.Option("--config", help="That of `.agentevals.yaml` instead.")] = False,
) -> None:
    """Print the JSON Schema of EVAL.yaml, for editors."""
    from agentevals_action import evaluators
    from agentevals_action.suites.schema import configuration_schema
    from agentevals_action.suites.schema import schema as make

    made = configuration_schema() if config else make(evaluators.catalog())
    print(json.dumps(made, indent=2, ensure_ascii=False))


@app.command()
def demo() -> None:
    """Review a made pull request, without a key and without a network: what a reviewer would see."""
    from agentevals_action.commands import demo as command

    raise typer.Exit(command.main(os.environ))


def main() -> None:
    """Runs the command line; every failure that a user can cause ends in words and an exit code."""
    # Nearly all that a short run builds lives to its end: looking for garbage in it so often takes a fifth of its time.
    gc.set_threshold(_NEW_OBJECTS)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s: %(message)s")
    try:
        with interruptible():
            app()
    except AgentEvalsError as error:
        _tell(error)
        sys.exit(error.exit_code)
    except Interrupted as error:
        print(f"interrupted by {error}", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader (`| head`) has left; there is nobody to tell, and the interpreter must not complain at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.PASSED)
    except Exception:
        _tell_crash()
        print(f"This is a bug of agentevals-action {__version__}. Please report it with the lines above: {ISSUES}", file=sys.stderr)
        sys.exit(ExitCode.BUG)
    finally:
        gc.freeze()  # or the interpreter looks at all of it three times more on its way out


def _tell(error: AgentEvalsError) -> None:
    faults = error.faults if isinstance(error, InvalidInput) else ()
    for line in (*faults, str(error), error.hint):
        if line:
            _print(line)


def _tell_crash() -> None:
    _print(traceback.format_exc())


def _print(text: str) -> None:
    """To standard error, without secrets and without anything that a runner would take for a command."""
    from agentevals_action.hosts.workflow_commands import safe_log_line
    from agentevals_action.redact import Redactor

    print(safe_log_line(Redactor.from_environ(os.environ).redact(text)), file=sys.stderr)
