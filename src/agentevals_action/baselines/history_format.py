"""The file in which a suite's history is remembered: JSON, read strictly, written within bounds."""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_jsonable_python

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


def _check_time(time: str) -> str:
    """Rejects a time that does not exist, such as one on the 31st of February."""
    datetime.fromisoformat(time)
    return time


Sha = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
Time = Annotated[
    str,
    Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"),
    AfterValidator(_check_time),
]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Index = Annotated[int, Field(ge=0)]


class Strict(BaseModel):
    """Base of the models of the stored files: exact types, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class _Row(Strict):
    """A sample: `r` its run, `n` its place there, `s` score, `v` verdict, `g` gates that failed,
    `c` US dollars, `t` milliseconds, `k` whether it came out of a cache. Short names, since there
    are many of them."""

    r: _Index
    n: _Index
    s: _Share
    v: Verdict
    g: tuple[str, ...] = ()
    c: float | None = None
    t: float | None = None
    k: bool = False


class _Answer(Strict):
    r: _Index
    n: _Index
    messages: tuple[dict[str, Any], ...]
    trace: TraceSummary | None = None
    changes: str | None = None


class _Series(Strict):
    question: str
    grading: str
    agent: str
    used: Time
    samples: Annotated[tuple[_Row, ...], Field(min_length=1)]
    answer: _Answer | None = None


class _File(Strict):
    version: Literal[1]
    suite: str
    name: str
    runs: tuple[tuple[Time, Sha], ...]
    tests: dict[str, Annotated[tuple[_Series, ...], Field(min_length=1)]]


class _Versioned(BaseModel):
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
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return _cut(f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": "))
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
    version = _Versioned.model_validate_json(text).version
    if version != 1:
        raise ValueError(f"it is of version {version!r:.20}, not 1")
    return _history(_File.model_validate_json(text), path)


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
    return file.runs[number]


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
        **to_jsonable_python(series.fingerprint),
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
    return {name: value for name, value in to_jsonable_python(figures).items() if value is not None}


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
