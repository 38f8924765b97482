"""The files of a results branch: one per suite, the trends, an index for programs and a README; and
their update by a run."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel

from agentevals_action.baselines import history, trends
from agentevals_action.baselines.history_format import (
    FILE_BYTES,
    Sha,
    StoredModel,
    Time,
    file_name,
    format_history,
    json_text,
    read_history,
)
from agentevals_action.baselines.trends import QuarantinedTest, SuiteTrend
from agentevals_action.escaping import code
from agentevals_action.formatting import counted
from agentevals_action.model.history import SuiteHistory
from agentevals_action.model.result import SuiteRun

INDEX, README, TRENDS = "index.json", "README.md", "trends.json"


class _Entry(StoredModel):
    """The index entry of one file."""

    suite: str
    name: str
    tests: int
    samples: int
    answers: int
    commit: Sha
    time: Time


class _Index(StoredModel):
    version: Literal[1] = 1
    suites: dict[str, _Entry]


class _Named(BaseModel):
    """The suite's path in its file."""

    suite: str


def is_data(names: Collection[str]) -> bool:
    """Whether a branch with these files (or none) is a results branch."""
    return INDEX in names or all(name.startswith("suites/") or name == README for name in names)


@dataclass(frozen=True)
class Update:
    """The files to write, by name, sentences for the reader of the run, and the trends of all
    suites."""

    files: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    trends: Sequence[SuiteTrend] = ()


def update_files(
    names: Collection[str],
    read: Callable[[str], str],
    runs: Sequence[SuiteRun],
    commit: str,
    time: str,
    quarantine: Mapping[str, Sequence[QuarantinedTest]],
) -> Update:
    """The files that runs of a commit at a time (ISO 8601 with a zone) change; none without news.

    `names` are the files of the branch, `read` gives the text of one, empty for a binary file.
    `quarantine` has the tests of head in quarantine by suite path. Files of suites that did not run
    stay."""
    files: dict[str, str] = {}
    notices: list[str] = []
    entries = _entries(names, read)
    texts = {TRENDS: read(TRENDS)} if TRENDS in names else {}
    known = {trend.path: trend for trend in read_trends(texts)}
    for run in runs:
        fresh, rejected = history.of_run(run, commit, time)
        if not fresh.tests:
            continue
        name = file_name(run.path)
        before = read(name) if name in names else None
        kept = read_history(before, run.path) if before is not None else fresh
        if isinstance(kept, str):
            notices.append(
                f"The stored results of `{run.path}` were damaged ({kept}): "
                "they start again with those of this run."
            )
            kept = fresh
        stored = None if kept is fresh else kept
        joined = history.merged(kept, fresh)
        text, left = format_history(joined)
        notices += _left_out(run.path, rejected, left)
        if text is not None and text != before:
            files[name], entries[name] = text, _entry(joined)
            held = quarantine.get(run.path, ())
            before_run = known.get(run.path)
            known[run.path] = trends.with_run(before_run, run, fresh, stored, joined, held)
    found = trends.bounded(known.values())
    if files:
        files[TRENDS] = trends.format_trends(found)
        files[INDEX] = json_text(
            _Index(suites=dict(sorted(entries.items()))).model_dump(mode="json")
        )
        files[README] = _readme(entries.values())
    return Update(files, tuple(notices), found)


def read_trends(texts: Mapping[str, str]) -> tuple[SuiteTrend, ...]:
    """The trends in the files of a branch; none if the file is missing or damaged: the next run
    starts it again with the stored samples."""
    try:
        return trends.read_trends(texts[TRENDS]) if TRENDS in texts else ()
    except ValueError:
        return ()


def all_trends(names: Collection[str], read: Callable[[str], str]) -> tuple[SuiteTrend, ...]:
    """The trends of a branch with these files; what its file of trends does not have is from the
    stored samples."""
    known = {
        one.path: one for one in read_trends({TRENDS: read(TRENDS)} if TRENDS in names else {})
    }
    written = {file_name(path) for path in known}
    for name in sorted(set(names) - written):
        stored = _history_of(name, read(name)) if name.startswith("suites/") else None
        if stored and (trend := trends.of_history(stored)):
            known[trend.path] = trend
    return trends.bounded(known.values())


def _left_out(path: str, rejected: int, left: str) -> list[str]:
    notices = []
    if rejected:
        notices.append(
            f"{counted(rejected, 'answer')} of `{path}` could not be stored to be scored again: "
            f"more than {history.ANSWER_BYTES // 1024} KiB, nested too deeply, or not JSON."
        )
    if left:
        notices.append(
            f"The results of `{path}` are more than {FILE_BYTES >> 20} MiB: stored without {left}."
        )
    return notices


def _entries(names: Collection[str], read: Callable[[str], str]) -> dict[str, _Entry]:
    """The entry of every suite's file: from the index, else from the file itself if it is valid."""
    try:
        known = _Index.model_validate_json(read(INDEX)).suites if INDEX in names else {}
    except ValueError:  # the files themselves have all entries
        known = {}
    entries = {}
    for name in names:
        if name in known:
            entries[name] = known[name]
        elif name.startswith("suites/") and (kept := _history_of(name, read(name))):
            entries[name] = _entry(kept)
    return entries


def _history_of(name: str, text: str) -> SuiteHistory | None:
    """The history in a suite's file; None for one that is not valid, which is reported when the
    suite is read or written."""
    try:
        path = _Named.model_validate_json(text).suite
    except ValueError:
        return None
    kept = read_history(text, path) if file_name(path) == name else ""
    return None if isinstance(kept, str) else kept


def _entry(kept: SuiteHistory) -> _Entry:
    samples = kept.samples()
    latest = max(samples, key=lambda sample: sample.at)
    return _Entry(
        suite=kept.path,
        name=kept.name,
        tests=len(kept.tests),
        samples=len(samples),
        answers=sum(any(series.answer for series in several) for several in kept.tests.values()),
        commit=latest.commit,
        time=latest.time,
    )


def _readme(entries: Collection[_Entry]) -> str:
    rows = [
        f"| {code(one.suite)} | {one.tests:,} | {one.samples:,} | {one.answers:,} "
        f"| {code(one.commit[:12])} | {one.time[:16]}Z |"
        for one in sorted(entries, key=lambda entry: entry.suite)
    ]
    return "\n".join(
        [
            "# Results of the evaluation suites",
            "",
            "agentevals-action writes these files on the default branch and reads them when it "
            "compares a pull request with its base.",
            "Do not edit them: a damaged file is ignored and written again.",
            "",
            "| Suite | Tests | Samples | Answers to grade again | Last commit | Last run |",
            "|---|---:|---:|---:|---|---|",
            *rows,
            "",
        ]
    )
