"""`list`: suites and tests, and which suites a change affects."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agentevals_action.cli.loaded_suites import LoadedSuites, load_suites
from agentevals_action.cli.options import READ_INPUTS, input_options, json_option, paths_argument
from agentevals_action.errors import ExitCode
from agentevals_action.escaping import printable
from agentevals_action.github import events
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.change import base_tree
from agentevals_action.review.change.changed_files import imported_by_judges, linked_files
from agentevals_action.review.change.selection import Change, select_suites
from agentevals_action.system.git import GitRepository


@click.command("list")
@paths_argument
@click.option("--base", help="List only suites that the change since this revision affects.")
@json_option
@input_options(*READ_INPUTS, "select", "watch")
async def command(
    paths: tuple[Path, ...], base: str | None, as_json: bool, **inputs: str | None
) -> int:
    """List suites and tests; with a base, the suites that would run and why."""
    loaded = await load_suites(inputs, paths)
    reasons: dict[str, tuple[str, ...]] = {suite.path: () for suite in loaded.suites}
    if base is not None:
        reasons = await _affected(loaded, base)
    listed = [suite for suite in loaded.suites if suite.path in reasons]
    if as_json:
        entries = [_entry(suite, reasons[suite.path]) for suite in listed]
        print(json.dumps(entries, indent=2, ensure_ascii=False))
    else:
        for suite in listed:
            _print(suite, reasons[suite.path])
        if not listed:
            print("the change affects no suite")
    has_errors = any(isinstance(suite, BrokenSuite) for suite in listed)
    return ExitCode.INVALID if has_errors else ExitCode.PASSED


async def _affected(loaded: LoadedSuites, revision: str) -> dict[str, tuple[str, ...]]:
    """The reasons of each suite that the change since the revision affects."""
    repository = loaded.repository or await GitRepository.open(loaded.folder)
    job = events.local_job(await repository.head(), revision, loaded.settings)
    base = await base_tree.resolve_base(repository, job, job.head_sha)
    files = await repository.changed_files(base.sha) if base.sha else None
    rules = loaded.settings.watch_rules
    imported = imported_by_judges(loaded.suites)
    links = linked_files(files or (), [repository.root])
    change = Change(files, everything=job.select == "all", imported=imported, links=links)
    found = select_suites(loaded.suites, change, rules)
    affected = {selection.path: selection.reasons for selection in found.selections}
    return affected | {suite.path: ("affected, and invalid",) for suite in found.broken}


def _entry(suite: Suite | BrokenSuite, reasons: Sequence[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": suite.path, "reasons": list(reasons)}
    if isinstance(suite, BrokenSuite):
        return entry | {"errors": [str(diagnostic) for diagnostic in suite.errors]}
    tests = [
        {"id": test.id, "path": test.location.path, "line": test.location.line}
        for test in suite.tests
    ]
    return entry | {"name": suite.name, "tests": tests}


def _print(suite: Suite | BrokenSuite, reasons: Sequence[str]) -> None:
    print(printable(suite.path))
    for reason in reasons:
        print(f"  {printable(reason, 1000)}")
    if isinstance(suite, BrokenSuite):
        for diagnostic in suite.errors:
            print(f"  {printable(str(diagnostic), 1000)}")
        return
    for test in suite.tests:
        location = f"{printable(test.location.path)}:{test.location.line}"
        print(f"  - {printable(test.id)}  ({location})")
