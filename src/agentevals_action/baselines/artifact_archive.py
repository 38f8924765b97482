"""Results out of the archive of a report folder, as an earlier run left it: bounded, and nothing in
it believed by its name."""

import io
import json
import zipfile
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from agentevals_action.model.result import TestResult
from agentevals_action.results.rows import RESULT

_RESULTS, _SUMMARY = "results.jsonl", "summary.json"
#: Entries of an archive, and bytes that one unpacks to, at most.
_ENTRIES = 10_000
_BYTES = 256 * 1024 * 1024

_DAMAGED = (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, OSError, ValueError)


@dataclass(frozen=True)
class ReportArchive:
    """The commit that a report is of, and its results by the path of the suite."""

    commit: str
    results: Mapping[str, tuple[TestResult, ...]]


def read_archive(content: bytes, suites: Collection[str]) -> ReportArchive | str:
    """The results of these suites in a ZIP; in words why it holds none that could be believed."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _read(archive, suites)
    except (ValueError, RecursionError):
        return "its results are not as they were written"
    except _DAMAGED as error:  # whatever else an archive can be made to raise
        return f"it is no whole archive ({type(error).__name__})"


def _read(archive: zipfile.ZipFile, suites: Collection[str]) -> ReportArchive | str:
    entries = {entry.filename: entry for entry in archive.infolist()[: _ENTRIES + 1]}
    if len(entries) > _ENTRIES:
        return f"it holds more than {_ENTRIES} files"
    found = [name for name in entries if PurePosixPath(name).name == _RESULTS]
    if len(found) != 1:
        return f"it holds {'more than one' if found else 'no'} `{_RESULTS}`"
    beside = str(PurePosixPath(found[0]).with_name(_SUMMARY))
    if beside not in entries:
        return f"it holds no `{_SUMMARY}` that tells the commit"
    if any(entries[name].file_size > _BYTES for name in (found[0], beside)):
        return f"its results are larger than {_BYTES >> 20} MiB"
    summary = json.loads(archive.read(beside))
    commit = summary.get("headSha") if isinstance(summary, Mapping) else None
    if not isinstance(commit, str):
        return f"its `{_SUMMARY}` does not tell the commit"
    results: dict[str, list[TestResult]] = {}
    with archive.open(found[0]) as lines:
        for line in lines:
            result = RESULT.validate_json(line) if line.strip() else None
            if result is not None and result.eval_path in suites:
                results.setdefault(result.eval_path, []).append(result)
    return ReportArchive(commit, {path: tuple(found) for path, found in results.items()})
