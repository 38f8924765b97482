"""`baseline write`: the results of a run as a file in the repository, for `baseline-file`."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from agentevals_action.baselines import baseline_file_format
from agentevals_action.baselines.base import parse_time
from agentevals_action.baselines.baseline_file_format import StoredSuite
from agentevals_action.cli.options import CommandGroup, as_environment, input_options
from agentevals_action.errors import ExitCode, InvalidInput, OutputError
from agentevals_action.escaping import printable
from agentevals_action.formatting import counted, joined
from agentevals_action.model.result import TestResult
from agentevals_action.reports.summary_json import report_path
from agentevals_action.results.jsonl import read_results
from agentevals_action.settings import Settings
from agentevals_action.system.files.tree_files import write_atomically
from agentevals_action.system.git import GitRepository

_SHOWN = 20  # tests in a list


@click.group("baseline", cls=CommandGroup)
def command() -> None:
    """Results of the base that the repository stores."""


@dataclass(frozen=True)
class _Source:
    """Results by suite, and their commit."""

    commit: str
    suites: Mapping[str, Mapping[str, TestResult]]


@command.command()
@click.argument("file", metavar="FILE", type=Path, help="The file for the input `baseline-file`.")
@click.option(
    "--results",
    type=Path,
    help="The results to store. Default: `results.jsonl` in the report folder.",
)
@input_options("report-dir")
def write(file: Path, results: Path | None, **inputs: str | None) -> int:
    """Write the results of a run as a file that the repository stores and people review.

    Suites that did not run keep their stored results; suites that no longer exist are dropped."""
    settings = Settings.from_environ(as_environment(inputs))
    repository = GitRepository(Path.cwd(), environ=os.environ)
    path = file.resolve()
    if not path.is_relative_to(repository.root):
        raise InvalidInput(
            f"{file} is outside the repository {repository.root}", "name a file that git can store"
        )
    stored = _stored_suites(path, file)
    source = _read(
        results or repository.root / settings.report_dir / "results.jsonl",
        repository,
        path.relative_to(repository.root),
    )
    suites = {name: one for name, one in stored.items() if (repository.root / name).is_file()}
    suites |= {name: _to_store(name, rows, source) for name, rows in source.suites.items()}
    text, cut = baseline_file_format.format_suites(suites.values())
    try:
        write_atomically(path, text)
    except OutputError as error:
        raise InvalidInput(str(error), "name a file in a writable folder") from error
    _print(path.relative_to(repository.root).as_posix(), source, suites, stored)
    _print_cut(cut)
    return ExitCode.PASSED


def _stored_suites(path: Path, file: Path) -> dict[str, StoredSuite]:
    """The content of the file; InvalidInput if it is not a baseline file, which would be lost."""
    if not path.exists():
        return {}
    try:
        suites = baseline_file_format.read_suites(path.read_bytes().decode("utf-8"))
        return {suite.path: suite for suite in suites}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(
            f"{file} exists and is not a baseline file: {reason}",
            "name another file, or remove this one",
        ) from error


def _read(path: Path, repository: GitRepository, file: Path) -> _Source:
    commit = _commit(path, file)
    suites: dict[str, dict[str, TestResult]] = {}
    errors = []
    for result in read_results(path, is_complete=True):
        known = suites.setdefault(result.eval_path, {})
        is_twice = result.eval_id in known
        why = "it occurs twice" if is_twice else baseline_file_format.why_not_storable(result)
        known[result.eval_id] = result
        if why:
            errors.append(printable(f"{result.eval_path}: {result.eval_id}: {why}", 500))
    if errors:
        more = [f"and {len(errors) - _SHOWN} more"] if len(errors) > _SHOWN else []
        raise InvalidInput(
            f"{path} has results that cannot be a base, nothing was written",
            "run the suites again; a baseline without these tests would hide their regressions",
            [*errors[:_SHOWN], *more],
        )
    if not suites:
        raise InvalidInput(
            f"{path} contains no result", "run the suites first: `agentevals-action run`"
        )
    return _Source(commit or repository.head(), suites)


def _commit(results: Path, file: Path) -> str | None:
    """The commit that the summary of the results names, None without a summary; InvalidInput if
    the results are not those of all tests of that commit. `file` may differ from it."""
    summary = report_path(results, "summary.json")
    try:
        data = json.loads(summary.read_bytes()) if summary.is_file() else {}
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{summary} cannot be read: {error}", "use the report folder as it was written"
        ) from error
    if not isinstance(data, Mapping):
        return None
    if globs := data.get("testGlobs"):
        raise InvalidInput(
            f"{results} has only the tests that match {joined(globs, 'or')}, nothing was written",
            "run without `--test`: a baseline with some tests would make the others new",
        )
    paths = [path for path in data.get("uncommitted", ()) if path != file.as_posix()]
    if paths:
        raise InvalidInput(
            f"{results} is of a working tree with uncommitted changes, nothing was written",
            "commit or ignore them and run again: a baseline belongs to a commit",
            [printable(f"not committed: {path}", 500) for path in paths[:_SHOWN]],
        )
    commit = data.get("headSha")
    return commit if isinstance(commit, str) and commit else None


def _to_store(path: str, rows: Mapping[str, TestResult], source: _Source) -> StoredSuite:
    results = tuple(rows.values())
    times = [
        (moment, result.timestamp) for result in results if (moment := parse_time(result.timestamp))
    ]
    latest = max(times)[1] if times else ""
    return StoredSuite(path, results[0].dataset, source.commit, latest, results)


def _print(
    name: str, source: _Source, suites: Mapping[str, StoredSuite], before: Mapping[str, StoredSuite]
) -> None:
    tests = counted(sum(len(suite.results) for suite in suites.values()), "test")
    numbers = f"{counted(len(suites), 'suite')}, {tests}"
    print(f"{printable(name)}: {numbers}, results of {source.commit[:12]}")
    for path in sorted(suites.keys() - source.suites.keys()):
        commit = printable(suites[path].commit[:12])
        print(f"  unchanged: {printable(path)} (results of {commit})")
    for path in sorted(before.keys() - suites.keys()):
        print(f"  dropped: {printable(path)} (the suite no longer exists)")
    print(f"commit it, and set `baseline-file: {printable(name)}`")


def _print_cut(cut: tuple[str, ...]) -> None:
    for name in cut[:_SHOWN]:
        why = "its answer is too long to be stored and cannot be scored again"
        print(f"warning: {printable(name, 500)}: {why}", file=sys.stderr)
    if len(cut) > _SHOWN:
        print(f"warning: and {len(cut) - _SHOWN} more", file=sys.stderr)
