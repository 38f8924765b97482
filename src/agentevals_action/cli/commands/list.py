"""`list`: suites and tests, and which suites a change affects."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from agentevals_action.cli import output
from agentevals_action.cli.loaded_suites import load_suites, paths_argument
from agentevals_action.cli.options import READ_INPUTS, as_environment, input_options, json_option
from agentevals_action.errors import ExitCode
from agentevals_action.github import events
from agentevals_action.judges.standing import Standings
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.reports.terminal import console
from agentevals_action.review.inputs import base_tree
from agentevals_action.review.inputs.changed_files import Head, read_change
from agentevals_action.review.inputs.notices import describe_uncovered
from agentevals_action.review.inputs.selection import select_suites
from agentevals_action.runners.suites import LoadedSuites, files_of_all
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository


@click.command("list")
@paths_argument
@click.option("--base", help="List only suites that the change since this revision affects.")
@json_option
@input_options(*READ_INPUTS, "select", "watch", "judge-floor")
async def command(
    paths: tuple[Path, ...], base: str | None, as_json: bool, **inputs: str | None
) -> int:
    """List suites, the calibration of their judges, and tests; with a base, the suites that would
    run and why."""
    loaded = await load_suites(inputs, paths)
    reasons: dict[str, tuple[str, ...]] = {suite.path: () for suite in loaded.suites}
    notice = ""
    if base is not None:
        given = Settings.from_environ(as_environment(inputs))
        reasons, notice = await _affected(loaded, base, given)
    listed = [suite for suite in loaded.suites if suite.path in reasons]
    standings = Standings(loaded.checkout)
    judges = {suite.path: _judges(suite, standings) for suite in loaded.valid}
    output.print_warnings((*loaded.warnings, *standings.errors))
    console.print_sentences(filter(None, [notice]), sys.stderr)
    described = [(suite, reasons[suite.path], judges.get(suite.path, {})) for suite in listed]
    if as_json:
        output.print_json([_entry(*entry) for entry in described])
    else:
        lines = [line for entry in described for line in _lines(*entry)]
        output.print_lines(lines or ["the change affects no suite"])
    has_errors = any(isinstance(suite, BrokenSuite) for suite in listed)
    return ExitCode.INVALID if has_errors else ExitCode.PASSED


async def _affected(
    loaded: LoadedSuites, revision: str, given: Settings
) -> tuple[dict[str, tuple[str, ...]], str]:
    """The reasons of each suite that the change since the revision affects, and a sentence about
    files that no suite covers."""
    checkout = loaded.checkout
    repository = checkout.repository or await GitRepository.open(checkout.folder)
    settings = checkout.settings
    job = events.local_job(await repository.head(), revision, settings)
    base = await base_tree.resolve_base(repository, job, job.head_sha)
    async with AsyncExitStack() as opened:
        if base.sha is not None:
            tree = await opened.enter_async_context(base_tree.base_worktree(repository, base.sha))
            base = replace(base, root=tree)
            base = await base_tree.with_suites(base, settings, given, checkout.environ)
        head = Head(checkout, loaded.suites, files_of_all(loaded))
        change = await read_change(head, base, everything=job.select == "all")
    selected = select_suites(loaded.suites, change)
    affected = {selection.path: selection.reasons for selection in selected.selections}
    running = [suite for suite in loaded.valid if suite.path in affected]
    reasons = affected | {suite.path: ("affected, and invalid",) for suite in selected.broken}
    return reasons, describe_uncovered(change, running, settings.samples)


def _judges(suite: Suite, standings: Standings) -> Mapping[str, str]:
    """The standing of the judges of a suite, by their paths in results."""
    by_path: dict[str, dict[str, None]] = {}
    for test in suite.tests:
        for path, standing in standings.of(suite, test).items():
            by_path.setdefault(path, {})[standing] = None
    return {path: "; ".join(different) for path, different in by_path.items()}


def _entry(
    suite: Suite | BrokenSuite, reasons: Sequence[str], judges: Mapping[str, str]
) -> dict[str, Any]:
    if isinstance(suite, BrokenSuite):
        errors = [error.entry() for error in suite.errors]
        return {"path": suite.path, "errors": errors, "reasons": reasons}
    return {**output.suite_entry(suite), "reasons": reasons, "judges": judges}


def _lines(
    suite: Suite | BrokenSuite, reasons: Sequence[str], judges: Mapping[str, str]
) -> Sequence[str]:
    below: Sequence[str]
    if isinstance(suite, BrokenSuite):
        below = [str(error) for error in suite.errors]
    elif suite.program:
        below = [output.describe_tests(suite)]
    else:
        places = ((test.id, test.location) for test in suite.tests)
        below = [f"judge {path}: {standing}" for path, standing in judges.items()]
        below += [f"- {name}  ({place.path}:{place.line})" for name, place in places]
    return [suite.path, *(f"  {line}" for line in (*reasons, *below))]
