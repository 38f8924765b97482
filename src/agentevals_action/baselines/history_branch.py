"""The files of a branch for results: one for each suite, an index for programs and one for people;
what a run makes of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel

from agentevals_action.baselines import history
from agentevals_action.baselines.history_format import (
    FILE_BYTES,
    Sha,
    Strict,
    Time,
    decoded,
    encoded,
    file_name,
    json_text,
)
from agentevals_action.escaping import code
from agentevals_action.model.history import SuiteHistory
from agentevals_action.model.result import SuiteRun

INDEX, README = "index.json", "README.md"


class _Entry(Strict):
    """What the index says of one file."""

    suite: str
    name: str
    tests: int
    samples: int
    answers: int
    commit: Sha
    time: Time


class _Index(Strict):
    version: Literal[1] = 1
    suites: dict[str, _Entry]


class _Named(BaseModel):
    """A suite's file, of which no more is asked than whose it is."""

    suite: str


def is_data(names: Collection[str]) -> bool:
    """Whether a branch with these files, or with none, is one for results and nobody's own."""
    return INDEX in names or all(name.startswith("suites/") or name == README for name in names)


@dataclass(frozen=True)
class Update:
    """The files that are to be written, by name, and sentences for the reader of the run."""

    files: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def updated(
    names: Collection[str],
    read: Callable[[str], str],
    runs: Sequence[SuiteRun],
    commit: str,
    time: str,
) -> Update:
    """What runs of a commit at a time (ISO 8601 with a zone) make of the branch's files; no file
    where nothing is new.

    `names` are the files that are there, `read` gives the text of one, empty for what is no text.
    Suites that did not run keep theirs."""
    files: dict[str, str] = {}
    notices: list[str] = []
    entries = _entries(names, read)
    for run in runs:
        fresh, too_large = history.of_run(run, commit, time)
        if not fresh.tests:
            continue
        name = file_name(run.path)
        before = read(name) if name in names else None
        kept = decoded(before, run.path) if before is not None else fresh
        if isinstance(kept, str):
            notices.append(
                f"The stored results of `{run.path}` were damaged ({kept}): they are begun anew with those of this run."
            )
            kept = fresh
        whole = history.merged(kept, fresh)
        text, left = encoded(whole)
        notices += _left_out(run.path, too_large, left)
        if text is not None and text != before:
            files[name], entries[name] = text, _entry(whole)
    if files:
        files[INDEX] = json_text(
            _Index(suites=dict(sorted(entries.items()))).model_dump(mode="json")
        )
        files[README] = _readme(entries.values())
    return Update(files, tuple(notices))


def _left_out(path: str, too_large: int, left: str) -> list[str]:
    words = []
    if too_large:
        some, most = "answer" if too_large == 1 else "answers", history.ANSWER_BYTES // 1024
        why = f"more than {most} KiB, nested too deeply, or no JSON"
        words.append(
            f"{too_large} {some} of `{path}` could not be stored, to be graded again: {why}."
        )
    if left:
        words.append(
            f"The results of `{path}` are more than {FILE_BYTES >> 20} MiB: stored without {left}."
        )
    return words


def _entries(names: Collection[str], read: Callable[[str], str]) -> dict[str, _Entry]:
    """What is known of every suite's file: from the index, and of those that it does not know from
    themselves, as far as they are whole."""
    try:
        known = _Index.model_validate_json(read(INDEX)).suites if INDEX in names else {}
    except ValueError:  # made from the files themselves, so made again from them
        known = {}
    entries = {}
    for name in names:
        if name in known:
            entries[name] = known[name]
        elif name.startswith("suites/") and (found := _entry_of(name, read(name))):
            entries[name] = found
    return entries


def _entry_of(name: str, text: str) -> _Entry | None:
    try:
        path = _Named.model_validate_json(text).suite
    except (ValueError, RecursionError):  # told when the suite is read or written
        return None
    kept = decoded(text, path) if file_name(path) == name else ""
    return None if isinstance(kept, str) else _entry(kept)


def _entry(kept: SuiteHistory) -> _Entry:
    samples = kept.samples()
    latest = max(samples, key=lambda sample: sample.at)
    found = {
        "suite": kept.path,
        "name": kept.name,
        "tests": len(kept.tests),
        "samples": len(samples),
        "answers": sum(any(series.answer for series in several) for several in kept.tests.values()),
        "commit": latest.commit,
        "time": latest.time,
    }
    return _Entry.model_validate(found)


def _readme(entries: Collection[_Entry]) -> str:
    rows = [
        f"| {code(one.suite)} | {one.tests:,} | {one.samples:,} | {one.answers:,} | {code(one.commit[:12])} | {one.time[:16]}Z |"
        for one in sorted(entries, key=lambda entry: entry.suite)
    ]
    return "\n".join(
        [
            "# Results of the evaluation suites",
            "",
            "Written by agentevals-action on the default branch, read when a pull request is compared with its base.",
            "Nothing here is edited by hand: what is not as it was written is not believed, and is begun anew.",
            "",
            "| Suite | Tests | Samples | Answers to grade again | Last commit | Last run |",
            "|---|---:|---:|---:|---|---|",
            *rows,
            "",
        ]
    )
