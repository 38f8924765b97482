"""The file format of a suite's stored history: JSON, validated strictly, written within bounds."""

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
from agentevals_action.model.validation.field_errors import invalid_json
from agentevals_action.results import scoring

#: Bytes of a suite's file, at most.
FILE_BYTES = 16 * 1024 * 1024
#: The reductions of a suite that is too large, step by step, and their descriptions.
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


def _check_time(time: str) -> str:
    try:
        datetime.fromisoformat(time)
    except ValueError:
        raise ValueError("this time does not exist") from None
    return time


Sha = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
Time = Annotated[
    str,
    Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"),
    AfterValidator(_check_time),
]
_Share = Annotated[float, Field(ge=0, le=1)]
_Index = Annotated[int, Field(ge=0)]


class StoredModel(BaseModel):
    """Base of the models of the stored files: exact types, no unknown fields."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )


class _Row(StoredModel):
    """A sample: `r` index of its run, `n` its own index there, `s` score, `v` verdict, `g` failed
    gates, `c` US dollars, `t` milliseconds, `k` whether the answer is a cached one. The names are
    short because there are many samples."""

    r: _Index
    n: _Index
    s: _Share
    v: Verdict
    g: tuple[str, ...] = ()
    c: float | None = None
    t: float | None = None
    k: bool = False


class _Answer(StoredModel):
    r: _Index
    n: _Index
    messages: tuple[dict[str, Any], ...]
    trace: TraceSummary | None = None
    changes: str | None = None


class _Series(StoredModel):
    question: str
    grading: str
    agent: str
    used: Time
    samples: Annotated[tuple[_Row, ...], Field(min_length=1)]
    answer: _Answer | None = None


class _File(StoredModel):
    version: Literal[1]
    suite: str
    name: str
    runs: tuple[tuple[Time, Sha], ...]
    tests: dict[str, Annotated[tuple[_Series, ...], Field(min_length=1)]]


class _Versioned(BaseModel):
    version: Any = None


def file_name(path: str) -> str:
    """The name of a suite's file: readable, valid on every system, unique for each path."""
    slug = _UNSAFE.sub("-", path.lower()).strip("-")[:_SLUG].strip("-") or "suite"
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()
    return f"suites/{slug}-{digest[:16]}.json"


def read_history(text: str, path: str) -> SuiteHistory | str:
    """The history in the file of the suite with that path, or the reason why it is damaged."""
    if not text:
        return "it is empty, too large or not a text"
    try:
        # The version first: a later version may differ in everything else.
        version = _Versioned.model_validate_json(text).version
        if version != 1:
            return f"it is of version {version!r:.20}, not 1"
        return _history(_File.model_validate_json(text), path)
    except ValidationError as error:
        return invalid_json(error, text)
    except ValueError as error:
        return str(error)
    except OverflowError:
        return "a time in it is out of range"


def _history(file: _File, path: str) -> SuiteHistory:
    if file.suite != path:
        raise ValueError("it is of another suite")
    tests = {
        name: tuple(_series(file, series) for series in kept) for name, kept in file.tests.items()
    }
    return history.within(SuiteHistory(path, file.name, tests), Bounds())


def _series(file: _File, series: _Series) -> Series:
    fingerprint = Fingerprint(question=series.question, grading=series.grading, agent=series.agent)
    samples = tuple(_sample(file, row) for row in series.samples)
    return Series(
        fingerprint,
        samples,
        series.used,
        _read_answer(file, series.answer) if series.answer else None,
    )


def _sample(file: _File, row: _Row) -> PastSample:
    if row.v != scoring.verdict_of(row.s, row.g):
        raise ValueError(f"a verdict is `{row.v}` with a score of {row.s:g}")
    return PastSample(*_run(file, row.r), row.n, row.s, row.v, row.g, row.c, row.t, row.k)


def _read_answer(file: _File, answer: _Answer) -> PastAnswer:
    for message in answer.messages:
        read_message(message)  # ValueError for a message that could not be scored again
    past = PastAnswer(
        (*_run(file, answer.r), answer.n), answer.messages, answer.trace, answer.changes
    )
    if not history.can_be_stored(past):
        raise ValueError(
            "an answer is too large, nested too deeply, or contains values that are not JSON"
        )
    return past


def _run(file: _File, number: int) -> tuple[str, str]:
    if number >= len(file.runs):
        raise ValueError("a sample belongs to no run")
    return file.runs[number]


def format_history(kept: SuiteHistory, limit: int = FILE_BYTES) -> tuple[str | None, str]:
    """A suite's file of at most `limit` bytes (None: impossible), and a description of the parts
    that are left out."""
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
    data: dict[str, Any] = {
        **to_jsonable_python(series.fingerprint),
        "used": series.used,
        "samples": [_row(sample, numbers) for sample in series.samples],
    }
    if answer := series.answer:
        time, commit, index = answer.at
        figures = answer.trace_summary and _known(to_jsonable_python(answer.trace_summary))
        values = {
            "messages": answer.output_messages,
            "trace": figures,
            "changes": answer.file_changes,
        }
        data["answer"] = {"r": numbers[time, commit], "n": index, **_known(values)}
    return data


def _row(sample: PastSample, numbers: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    row = {
        "r": numbers[sample.time, sample.commit],
        "n": sample.index,
        "s": sample.score,
        "v": sample.verdict,
    }
    more = {
        "g": list(sample.gates_failed),
        "c": sample.cost_usd,
        "t": sample.duration_ms,
        "k": sample.cached or None,
    }
    return row | _known(more)


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, [])}


def json_text(data: Any) -> str:
    """Compact JSON on one line, in valid Unicode."""
    # Lone surrogates, which the JSON of an agent can contain, cannot be encoded.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"
