"""`record`: what a real MCP server answers to an agent, as files of a suite."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from agentevals_action.cli import output
from agentevals_action.cli.commands.run import TestSelection, local_request, open_folder
from agentevals_action.cli.loaded_suites import tests_option
from agentevals_action.cli.options import RUN_INPUTS, as_environment, input_options
from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.model.suite import Suite
from agentevals_action.model.tools import DEFAULT_SERVER, SERVER_NAME
from agentevals_action.results.run_folder import HEAD_RESULTS
from agentevals_action.review import pipeline
from agentevals_action.review.inputs.request import LocalRun
from agentevals_action.settings import Settings
from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.yaml_reader import read_yaml_file
from agentevals_action.suites.documents.yaml_writer import write_yaml
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.files.tree_files import write_file
from agentevals_action.tools.record import Recording
from agentevals_action.tools.server_list import stdio_server

#: The inputs of `run`, without the inputs that a recording sets itself.
_INPUTS = (
    name for name in RUN_INPUTS if name not in ("suites", "max-concurrency", "cache", "cache-dir")
)
_CI = "a recording is reviewed and committed: record on your machine"


@click.command("record")
@click.argument(
    "suite",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file of the suite.",
)
@click.argument("server", nargs=-1, required=True, metavar="-- COMMAND...")
@tests_option
@click.option(
    "--in",
    "name",
    default=DEFAULT_SERVER,
    show_default=True,
    help="The agent's name of the server.",
)
@input_options(*_INPUTS)
async def command(
    suite: Path,
    server: tuple[str, ...],
    tests: tuple[str, ...],
    name: str,
    **inputs: str | None,
) -> int:
    """Run the agent of a suite with a real MCP server (stdio), and write what it answers.

    COMMAND starts the server, in the suite's folder. The replies that the suite has answer their
    calls, all others reach the server. They are written to `tools/` beside the suite: review them
    before you commit them."""
    if os.environ.get("CI"):
        raise InvalidInput("nothing is recorded where the variable CI is set", _CI)
    if not re.fullmatch(SERVER_NAME, name):
        raise InvalidInput(f"`--in {name}` names no server", "write letters, digits and `-`")
    settings = _settings(inputs)
    workspace, repository = await open_folder(settings)
    path, folder = workspace.report / HEAD_RESULTS, suite.resolve().parent
    existing = _read(folder / "tools" / f"{name}.yaml")
    selection = TestSelection(tests, path, False, 1, True)
    children = ChildContext.from_environ(os.environ, settings.env)
    program = children.program(server, folder, variables=children.allowed)
    async with stdio_server(program) as running:
        recording = Recording(running, name, await running.list_tools())

        def select(suites: Sequence[Suite]) -> Sequence[Suite]:
            return [
                selected.with_tests(
                    test.model_copy(
                        update={"tools": recording.replace_lists(test.tools), "evaluators": ()}
                    )
                    for test in selected.tests
                )
                for selected in selection.select(suites)
            ]

        run = LocalRun((suite,), tests, select, selection.keep_results, path)
        request = await local_request(workspace, repository, run)
        try:
            results = await pipeline.run(request)
            if recording.ended:
                raise recording.ended
        except BaseException:  # also of a user: what was answered so far is kept
            if recording.has_answers:
                _write(recording, existing, folder / "tools", name)
            raise
    _write(recording, existing, folder / "tools", name)
    errors = [f"{row.eval_id}: {row.error.message}" for row in results.head if row.error]
    output.print_warnings([*errors, *recording.notices])
    return ExitCode.INCONCLUSIVE if errors else ExitCode.PASSED


def _settings(inputs: Mapping[str, str | None]) -> Settings:
    """The settings of a run in which one agent at a time uses the server."""
    given = Settings.from_environ(as_environment(inputs))
    folder = f"{given.report_dir}/record"  # the results of other runs stay
    fixed = {"report_dir": folder, "samples": 1, "confirm": 0, "max_concurrency": 1, "cache": "off"}
    return given.model_copy(update=fixed)


def _write(
    recording: Recording, existing: list[Mapping[str, Any]], folder: Path, name: str
) -> None:
    """Writes the list and the entries. A file of entries with another layout than ours, or with
    comments, is not changed, because these would be lost: the missing entries are printed."""
    entries, listing = folder / f"{name}.yaml", folder / f"{name}.tools.json"
    merged = recording.add_entries(existing)
    added = [entry for entry in merged if entry not in existing]
    write_file(listing, [recording.listing().encode("utf-8", "replace")])
    written = " and ".join(map(os.path.relpath, (entries, listing)))
    if added and entries.exists() and entries.read_text("utf-8", "replace") != write_yaml(existing):
        file = os.path.relpath(entries)
        print(f"review {written}; {file} stays as you wrote it, and lacks:", file=sys.stderr)
        output.print_yaml([added])
        return
    if added:
        write_file(entries, [write_yaml(merged).encode("utf-8", "replace")])
    server = {} if name == DEFAULT_SERVER else {"in": name}
    print(f"review {written}; the suite reads them with:", file=sys.stderr)
    names = {"from": f"tools/{listing.name}", **server}, {"file": f"tools/{entries.name}"}
    output.print_yaml([{"tools": [*names]}])


def _read(file: Path) -> list[Mapping[str, Any]]:
    """The entries of a file; none without a file. InvalidInput."""
    if not file.exists():
        return []
    try:
        data = read_yaml_file(file, file.name).data
    except Unreadable as error:
        data = error.errors[0]
    entries: list[Any] = data if isinstance(data, list) else [None]
    names = {str(entry.get("name")) for entry in entries if isinstance(entry, dict)}
    if len(names) < len(entries):
        raise InvalidInput(f"{file} is no list of different tools", "correct it, or move it away")
    return entries
