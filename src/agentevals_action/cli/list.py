"""`list`: suites and tests, and with a base why each suite would run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.github import events
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.model.watch import WatchRule
from agentevals_action.reports import terminal
from agentevals_action.review import base_tree
from agentevals_action.review import selection as discover
from agentevals_action.settings import Settings
from agentevals_action.suites import checkout as wiring
from agentevals_action.system.git import GitRepository


def main(
    environ: Mapping[str, str],
    inputs: Mapping[str, str],
    folder: Path,
    base: str | None,
    as_json: bool,
) -> int:
    """Prints a line a suite and a line a test, or one JSON document; a broken suite is listed with
    its faults, exit code 2."""
    settings = Settings.from_environ(inputs)
    checkout = wiring.Checkout.at(folder, settings, environ)
    suites = wiring.load_all(checkout, settings, wiring.suite_paths(checkout, settings), folder)
    if not suites:
        raise InvalidInput(
            "there is no suite in this repository",
            "write an EVAL.yaml, or mend `suites` and `working-directory`",
        )
    repository = GitRepository(folder, environ=environ)
    reasons = (
        {suite.path: () for suite in suites}
        if base is None
        else _touched(suites, settings.watch, repository, base, settings.select)
    )
    listed = [_entry(suite, reasons[suite.path]) for suite in suites if suite.path in reasons]
    if as_json:
        print(json.dumps(listed, indent=2, ensure_ascii=False))
    else:
        _print(listed)
        if base is not None and not listed:
            print("no suite is touched by the change")
    return (
        ExitCode.INVALID
        if any(isinstance(suite, BrokenSuite) and suite.path in reasons for suite in suites)
        else ExitCode.PASSED
    )


def _touched(
    suites: Sequence[Suite | BrokenSuite],
    watch: Sequence[WatchRule],
    repository: GitRepository,
    revision: str,
    select: str,
) -> dict[str, tuple[str, ...]]:
    job = events.local_job(repository.head(), revision, events.JobOptions(select))
    base = base_tree.resolve_base(repository, job, job.head_sha)
    files = repository.changed_files(base.sha) if base.sha else None
    found = discover.select_suites(
        suites, discover.Change(files, everything=job.select == "all"), watch
    )
    touched = {selection.path: selection.reasons for selection in found.selections}
    return touched | {suite.path: ("touched, and broken",) for suite in found.broken}


def _entry(suite: Suite | BrokenSuite, reasons: Sequence[str]) -> dict[str, object]:
    entry: dict[str, object] = {"path": suite.path, "reasons": list(reasons)}
    if isinstance(suite, BrokenSuite):
        return entry | {"faults": [str(diagnostic) for diagnostic in suite.errors]}
    tests = [
        {"id": test.id, "path": test.location.path, "line": test.location.line}
        for test in suite.tests
    ]
    return entry | {"name": suite.name, "tests": tests}


def _print(listed: Sequence[Mapping[str, object]]) -> None:
    for entry in listed:
        print(terminal.printable(str(entry["path"])))
        for key in ("reasons", "faults"):
            for line in _lines(entry.get(key)):
                print(f"  {terminal.printable(str(line), 1000)}")
        for test in _lines(entry.get("tests")):
            if isinstance(test, Mapping):
                print(
                    f"  - {terminal.printable(str(test['id']))}  ({terminal.printable(str(test['path']))}:{test['line']})"
                )


def _lines(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
