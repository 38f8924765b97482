"""The results in the archive of an earlier run's report folder; sizes are bounded, and names of
files in it are not trusted."""

import io
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import ValidationError

from agentevals_action.model.result import TestResult
from agentevals_action.model.validation.json_values import decoded
from agentevals_action.results.jsonl import RESULT
from agentevals_action.system.files.archives import DAMAGED

_RESULTS, _SUMMARY = "results.jsonl", "summary.json"
#: Files of an archive, and unpacked bytes of one, at most.
_FILES = 10_000
_BYTES = 256 * 1024 * 1024
#: The errors of an archive that cannot be read.
_UNREADABLE = (*DAMAGED, OSError, ValueError)


@dataclass(frozen=True)
class ReportArchive:
    """The commit of a report, and its results by the path of the suite."""

    commit: str
    results: Mapping[str, tuple[TestResult, ...]]


def read_archive(content: bytes, suites: Collection[str]) -> ReportArchive | str:
    """The results of these suites in a ZIP, or the reason why it has none that can be trusted."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _read(archive, suites)
    except ValidationError:
        return "its results are damaged"
    except _UNREADABLE as error:
        return f"it is not a valid archive ({type(error).__name__})"


def _read(archive: zipfile.ZipFile, suites: Collection[str]) -> ReportArchive | str:
    entries = {entry.filename: entry for entry in archive.infolist()[: _FILES + 1]}
    if len(entries) > _FILES:
        return f"it contains more than {_FILES} files"
    found = [name for name in entries if PurePosixPath(name).name == _RESULTS]
    if len(found) != 1:
        return f"it contains {'more than one' if found else 'no'} `{_RESULTS}`"
    summary_name = str(PurePosixPath(found[0]).with_name(_SUMMARY))
    if summary_name not in entries:
        return f"it contains no `{_SUMMARY}` with the commit"
    if any(entries[name].file_size > _BYTES for name in (found[0], summary_name)):
        return f"its results are larger than {_BYTES >> 20} MiB"
    summary = decoded(archive.read(summary_name))
    commit = summary.get("headSha") if isinstance(summary, Mapping) else None
    if not isinstance(commit, str):
        return f"its `{_SUMMARY}` does not name the commit"
    results: dict[str, list[TestResult]] = {}
    with archive.open(found[0]) as lines:
        for line in lines:
            result = RESULT.validate_json(line) if line.strip() else None
            if result is not None and result.eval_path in suites:
                results.setdefault(result.eval_path, []).append(result)
    return ReportArchive(commit, {path: tuple(several) for path, several in results.items()})
