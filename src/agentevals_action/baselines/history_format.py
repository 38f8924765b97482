"""The file in which a suite's history is remembered: JSON, read strictly, written within bounds."""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from agentevals_action.baselines import history
from agentevals_action.baselines.history import Bounds
from agentevals_action.model.history import PastAnswer, PastSample, Series, SuiteHistory
from agentevals_action.model.messages import read_message
from agentevals_action.model.result import Fingerprint, TraceSummary, Verdict
from agentevals_action.results import scoring

#: Bytes that a suite's file may take.
FILE_BYTES = 16 * 1024 * 1024
#: What is let go of, step by step, in a suite that is too large, and in what words.
_STEPS = (
    (Bounds(), ""),
    (Bounds(fingerprints=1), "results of earlier versions of its tests"),
    (Bounds(fingerprints=1, answers=False), "answers to grade again"),
    (
        Bounds(samples=20, fingerprints=1, answers=False),
        f"answers and all but the last 20 of {history.SAMPLES} samples",
    ),
    (
        Bounds(samples=5, fingerprints=1, answers=False),
        f"answers and all but the last 5 of {history.SAMPLES} samples",
    ),
)
_UNSAFE = re.compile(r"[^a-z0-9]+")
_SLUG = 60


#: What is wrong with a file, in characters: a name or a value in it may be of any length.
_PROBLEM = 200

# `\Z`, since `$` would let a line end behind it pass.
Sha = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z")]
Time = Annotated[
    str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z\Z")
]
# No check for infinities and NaN: a number of JSON is neither, and one that is too large is refused
# as it is read.
_Share = Annotated[float, Meta(ge=0, le=1)]
_Place = Annotated[int, Meta(ge=0)]


def check_time(time: Time) -> None:
    """ValueError for a time that there never is, such as one on the 31st of February."""
    datetime.fromisoformat(time)


class Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what is read from the files: the types as they stand there, and nothing beside
    them."""


class _Run(Strict, frozen=True, kw_only=True, array_like=True):
    time: Time
    commit: Sha

    def __post_init__(self) -> None:
        check_time(self.time)


class _Row(Strict, frozen=True, kw_only=True):
    """A sample: `r` its run, `n` its place there, `s` score, `v` verdict, `g` gates that failed,
    `c` US dollars, `t` milliseconds, `k` whether it came out of a cache. Short names, since there
    are many of them."""

    r: _Place
    n: _Place
    s: _Share
    v: Verdict
    g: tuple[str, ...] = ()
    c: float | None = None
    t: float | None = None
    k: bool = False


class _Answer(Strict, frozen=True, kw_only=True):
    r: _Place
    n: _Place
    messages: tuple[dict[str, Any], ...]
    trace: TraceSummary | None = None
    changes: str | None = None


class _Series(Strict, frozen=True, kw_only=True):
    question: str
    grading: str
    agent: str
    used: Time
    samples: Annotated[tuple[_Row, ...], Meta(min_length=1)]
    answer: _Answer | None = None

    def __post_init__(self) -> None:
        check_time(self.used)


class _File(Strict, frozen=True, kw_only=True):
    version: Literal[1]
    suite: str
    name: str
    runs: tuple[_Run, ...]
    tests: dict[str, Annotated[tuple[_Series, ...], Meta(min_length=1)]]


class _Versioned(Struct, frozen=True):
    """A file of any version, and what else is JSON."""

    version: Any = None


def file_name(path: str) -> str:
    """The file of a suite (`path` relative to the repository): safe everywhere, readable, another
    for every path."""
    slug = _UNSAFE.sub("-", path.lower()).strip("-")[:_SLUG].strip("-") or "suite"
    return f"suites/{slug}-{hashlib.sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}.json"


def decoded(text: str, path: str) -> SuiteHistory | str:
    """What a file says of the suite with that path; as a phrase why it is not believed."""
    try:
        return _read(text, path)
    except msgspec.ValidationError as error:
        return _cut(str(error))
    except msgspec.DecodeError as error:
        return f"it is no JSON: {str(error).removeprefix('JSON is malformed: ')}"
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    except OverflowError as error:
        return f"it is not as it was written ({type(error).__name__})"


def _cut(problem: str) -> str:
    # What was expected stands at the beginning, where it is at the end.
    half = _PROBLEM // 2
    return problem if len(problem) <= _PROBLEM else f"{problem[: half - 1]}…{problem[-half:]}"


def _read(text: str, path: str) -> SuiteHistory:
    if not text:
        raise ValueError("it is empty, too large or no text")
    # The version alone first: a later one may differ in anything else.
    version = msgspec.json.decode(text, type=_Versioned).version
    if version != 1:
        raise ValueError(f"it is of version {version!r:.20}, not 1")
    return _history(msgspec.json.decode(text, type=_File), path)


def _history(file: _File, path: str) -> SuiteHistory:
    if file.suite != path:
        raise ValueError("it is of another suite")
    tests = {
        name: tuple(_series(file, series) for series in kept) for name, kept in file.tests.items()
    }
    return history.within(SuiteHistory(path, file.name, tests), Bounds())


def _series(file: _File, series: _Series) -> Series:
    print_ = Fingerprint(question=series.question, grading=series.grading, agent=series.agent)
    samples = tuple(_sample(file, row) for row in series.samples)
    return Series(
        print_, samples, series.used, _read_answer(file, series.answer) if series.answer else None
    )


def _sample(file: _File, row: _Row) -> PastSample:
    if row.v != scoring.verdict_of(row.s, row.g):
        raise ValueError(f"a verdict is {row.v} at a score of {row.s}")
    return PastSample(*_run(file, row.r), row.n, row.s, row.v, row.g, row.c, row.t, row.k)


def _read_answer(file: _File, answer: _Answer) -> PastAnswer:
    for message in answer.messages:
        read_message(message)  # ValueError for what could not be graded again
    past = PastAnswer(
        (*_run(file, answer.r), answer.n), answer.messages, answer.trace, answer.changes
    )
    if not history.can_be_kept(past):
        raise ValueError(
            "an answer is larger or deeper than those that are kept, or holds what is no JSON"
        )
    return past


def _run(file: _File, number: int) -> tuple[str, str]:
    if number >= len(file.runs):
        raise ValueError("a sample is of no run")
    run = file.runs[number]
    return run.time, run.commit


def encoded(kept: SuiteHistory, limit: int = FILE_BYTES) -> tuple[str | None, str]:
    """A suite's file of at most `limit` bytes, and in words what had to be left out for that; None
    when nothing was enough."""
    for bounds, words in _STEPS:
        text = _text(history.within(kept, bounds))
        if len(text.encode()) <= limit:
            return text, words
    return None, "all of it"


def _text(kept: SuiteHistory) -> str:
    runs = sorted({(sample.time, sample.commit) for sample in kept.samples()})
    numbers = {run: number for number, run in enumerate(runs)}
    tests = {
        name: [_wire(series, numbers) for series in several] for name, several in kept.tests.items()
    }
    return json_text(
        {"version": 1, "suite": kept.path, "name": kept.name, "runs": runs, "tests": tests}
    )


def _wire(series: Series, numbers: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    rows = [_row(sample, numbers) for sample in series.samples]
    data: dict[str, Any] = {
        **msgspec.to_builtins(series.fingerprint),
        "used": series.used,
        "samples": rows,
    }
    if answer := series.answer:
        time, commit, place = answer.at
        figures = _known(answer.trace_summary) if answer.trace_summary else None
        whole = {
            "messages": answer.output_messages,
            "trace": figures,
            "changes": answer.file_changes,
        }
        data["answer"] = {
            "r": numbers[time, commit],
            "n": place,
            **{key: value for key, value in whole.items() if value is not None},
        }
    return data


def _known(figures: TraceSummary) -> dict[str, Any]:
    return {
        name: value for name, value in msgspec.to_builtins(figures).items() if value is not None
    }


def _row(sample: PastSample, numbers: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    row = {
        "r": numbers[sample.time, sample.commit],
        "n": sample.place,
        "s": sample.score,
        "v": sample.verdict,
    }
    more = {
        "g": list(sample.gates_failed) or None,
        "c": sample.cost_usd,
        "t": sample.duration_ms,
        "k": sample.cached or None,
    }
    return row | {key: value for key, value in more.items() if value is not None}


def json_text(data: Any) -> str:
    """Compact JSON on one line that any file can hold."""
    # Halves of surrogate pairs, which an agent's JSON can spell, fit in no file.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"
