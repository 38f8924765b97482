"""`baseline write`: the results of a run as a file that the repository keeps, for
`baseline-file`."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.baselines import baseline_file_format
from agentevals_action.baselines.base import instant
from agentevals_action.baselines.baseline_file_format import StoredSuite
from agentevals_action.errors import InvalidInput, OutputError
from agentevals_action.model.result import TestResult
from agentevals_action.reports import terminal
from agentevals_action.results.jsonl import read_results
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository
from agentevals_action.system.tree_files import write_atomically

#: Tests that are told one by one.
_SHOWN = 20


@dataclass(frozen=True)
class _Source:
    """Results by suite, and the commit that they are of."""

    path: Path
    commit: str
    suites: Mapping[str, Mapping[str, TestResult]]


def main(
    environ: Mapping[str, str],
    inputs: Mapping[str, str],
    folder: Path,
    target: Path,
    results: Path | None,
) -> int:
    """Writes the file. Suites that did not run keep what it has of them; those that are gone from
    the repository are dropped."""
    settings = Settings.from_environ(inputs)
    repository = GitRepository(folder, environ=environ)
    place = (folder / target).resolve()
    if not place.is_relative_to(repository.root):
        raise InvalidInput(
            f"{target} lies outside the repository {repository.root}",
            "name a file that git can keep",
        )
    kept = _kept(place, target)
    source = _read(results or folder / settings.report_dir / "results.jsonl", repository)
    suites = {path: one for path, one in kept.items() if (repository.root / path).is_file()}
    suites |= {path: _stored(path, rows, source.commit) for path, rows in source.suites.items()}
    text, cut = baseline_file_format.written(suites.values())
    try:
        write_atomically(place, text)
    except OutputError as error:
        raise InvalidInput(str(error), "name a file in a folder that can be written") from error
    _tell(place.relative_to(repository.root).as_posix(), source, suites, kept)
    _tell_cut(cut)
    return 0


def _kept(place: Path, target: Path) -> dict[str, StoredSuite]:
    """What the file has already; InvalidInput when it is something else, which would be lost."""
    if not place.exists():
        return {}
    try:
        return {
            suite.path: suite
            for suite in baseline_file_format.read(place.read_bytes().decode("utf-8"))
        }
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(
            f"{target} is there and is no baseline file: {reason}",
            "name another file, or take this one away",
        ) from error


def _read(path: Path, repository: GitRepository) -> _Source:
    suites: dict[str, dict[str, TestResult]] = {}
    errors = []
    for result in read_results(path, whole=True):
        known = suites.setdefault(result.eval_path, {})
        why = (
            "it is there twice"
            if result.eval_id in known
            else baseline_file_format.storable(result)
        )
        known[result.eval_id] = result
        if why:
            errors.append(terminal.printable(f"{result.eval_path}: {result.eval_id}: {why}", 500))
    if errors:
        more = [f"and {len(errors) - _SHOWN} more"] if len(errors) > _SHOWN else []
        hint = (
            "run the suites again; a baseline without these tests would hide what becomes of them"
        )
        raise InvalidInput(
            f"{path} has results that no base can be made of, nothing was written",
            hint,
            [*errors[:_SHOWN], *more],
        )
    if not suites:
        raise InvalidInput(
            f"{path} holds no result", "run the suites first: `agentevals-action run`"
        )
    return _Source(path, _commit(path) or repository.head(), suites)


def _commit(results: Path) -> str | None:
    """The commit that the summary beside the results names; None where it names none."""
    summary = results.with_name("summary.json")
    try:
        data = json.loads(summary.read_bytes()) if summary.is_file() else {}
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{summary} cannot be read: {error}", "give the report folder as it was written"
        ) from error
    commit = data.get("headSha") if isinstance(data, Mapping) else None
    return commit if isinstance(commit, str) and commit else None


def _stored(path: str, rows: Mapping[str, TestResult], commit: str) -> StoredSuite:
    results = tuple(rows.values())
    times = sorted(
        (moment, result.timestamp) for result in results if (moment := instant(result.timestamp))
    )
    return StoredSuite(path, results[0].dataset, commit, times[-1][1] if times else "", results)


def _tell(
    name: str, source: _Source, suites: Mapping[str, StoredSuite], kept: Mapping[str, StoredSuite]
) -> None:
    tests = sum(len(suite.results) for suite in suites.values())
    print(
        f"{terminal.printable(name)}: {_counted(len(suites), 'suite')}, {_counted(tests, 'test')}, results of {source.commit[:12]}"
    )
    left = sorted(suites.keys() - source.suites.keys())
    for path in left:
        print(
            f"  kept as it was: {terminal.printable(path)} (results of {terminal.printable(suites[path].commit[:12])})"
        )
    for path in sorted(kept.keys() - suites.keys()):
        print(f"  dropped: {terminal.printable(path)} (no such suite any more)")
    print(f"commit it, and set `baseline-file: {terminal.printable(name)}`")


def _tell_cut(cut: tuple[str, ...]) -> None:
    for name in cut[:_SHOWN]:
        print(
            f"warning: {terminal.printable(name, 500)}: its answer is too long to be kept and cannot be graded again",
            file=sys.stderr,
        )
    if len(cut) > _SHOWN:
        print(f"warning: and {len(cut) - _SHOWN} more", file=sys.stderr)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
