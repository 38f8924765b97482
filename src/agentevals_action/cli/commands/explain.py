"""`explain`: the effective form of a test, for people who ask why it is scored as it is."""

import difflib
import fnmatch
from collections.abc import Iterable
from pathlib import Path

import click

from agentevals_action.cli import output
from agentevals_action.cli.explanation import effective_test
from agentevals_action.cli.loaded_suites import LoadedSuites, load_suites
from agentevals_action.cli.options import READ_INPUTS, input_options, json_option, paths_argument
from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.model.suite import Suite, Test
from agentevals_action.system.redaction import Redactor, redact_record


@click.command("explain")
@click.argument("test", metavar="TEST", help="The id of a test, or a glob over ids.")
@paths_argument
@json_option
@input_options(*READ_INPUTS, "timeout")
async def command(test: str, paths: tuple[Path, ...], as_json: bool, **inputs: str | None) -> int:
    """Print the effective form of a test as YAML: messages, evaluators and their origins, target,
    judges, gates."""
    loaded = await load_suites(inputs, paths)
    found = _find(loaded, test)
    output.print_warnings(
        f"{broken.path} has errors and was not searched" for broken in loaded.broken
    )
    settings = loaded.settings
    redactor = Redactor.from_environ(loaded.environ, settings.env)
    explained = [
        redact_record(effective_test(suite, each, settings.timeout), redactor)
        for suite, each in found
    ]
    if as_json:
        output.print_json(explained)
    else:
        output.print_yaml(explained)
    return ExitCode.PASSED


def _find(loaded: LoadedSuites, wanted: str) -> Iterable[tuple[Suite, Test]]:
    """The tests with the id, or else those that the glob matches; InvalidInput if there is none."""
    ids = dict.fromkeys(test.id for suite in loaded.valid for test in suite.tests)
    matching = {wanted} if wanted in ids else set(fnmatch.filter(ids, wanted))
    if matching:
        return (
            (suite, test) for suite in loaded.valid for test in suite.tests if test.id in matching
        )
    if loaded.broken:
        raise InvalidInput(
            f"no test of the suites without errors has the id {wanted!r}",
            "correct the errors, or the id",
            [str(diagnostic) for suite in loaded.broken for diagnostic in suite.errors],
        )
    near = difflib.get_close_matches(wanted, ids, 1)
    near = near or [name for name in ids if wanted and wanted in name]
    hint = f"did you mean {near[0]!r}?" if near else "`agentevals-action list` prints every id"
    raise InvalidInput(f"no test has the id {wanted!r}, or an id that matches it", hint)
