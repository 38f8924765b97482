"""The stored history of a suite: the part that a run adds, and the union of two histories."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_core import to_jsonable_python

from agentevals_action.model.history import PastAnswer, PastSample, Series, SuiteHistory
from agentevals_action.model.result import Fingerprint, SampleResult, SuiteRun

#: Samples of a test with one fingerprint, and fingerprints of a test, at most.
SAMPLES = 50
FINGERPRINTS = 3
#: Bytes of JSON of a stored answer, at most.
ANSWER_BYTES = 64 * 1024
#: Levels of lists and objects in its messages, their own list included: with the five levels above
#: them in a file, the 200 that every version reads.
ANSWER_LEVELS = 195
#: Days without a result, before the suite's latest, after which a test counts as removed. Not at
#: once: a slow job of an older commit may end after one of a newer, and the agent of a test may
#: fail for some time.
FORGOTTEN_DAYS = 30


@dataclass(frozen=True)
class Bounds:
    """The size of a stored history."""

    samples: int = SAMPLES
    fingerprints: int = FINGERPRINTS
    answers: bool = True


def of_run(run: SuiteRun, commit: str, time: str) -> tuple[SuiteHistory, int]:
    """The history of one run of a commit (SHA) at a time (ISO 8601 with a zone), and the number of
    answers that cannot be stored.

    Samples that ended in an error, and those of a confirmation, are left out. ValueError for an
    invalid time."""
    moment = _instant(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    tests: dict[str, tuple[Series, ...]] = {}
    rejected = 0
    for result in run.results:
        scored = []
        for index, sample in enumerate(result.main_samples):
            if sample.error or sample.score is None or sample.verdict is None:
                continue
            summary = sample.trace_summary
            past = PastSample(
                moment,
                commit,
                index,
                sample.score,
                sample.verdict,
                sample.gates_failed,
                summary.cost_usd if summary else None,
                summary.duration_ms if summary else None,
                sample.cached,
            )
            scored.append((past, sample))
        if not scored or result.fingerprint is None:
            continue
        answer, is_rejected = _answer(scored)
        rejected += is_rejected
        series = Series(result.fingerprint, tuple(past for past, _ in scored), moment, answer)
        tests[result.eval_id] = (series,)
    return within(SuiteHistory(run.path, run.name, tests), Bounds()), rejected


def _answer(scored: Sequence[tuple[PastSample, SampleResult]]) -> tuple[PastAnswer | None, bool]:
    """The latest answer that can be stored, and whether a later one cannot."""
    is_rejected = False
    fresh = [pair for pair in scored if not pair[0].cached]
    for past, sample in reversed(fresh or scored):
        if not sample.output_messages:
            continue
        answer = PastAnswer(
            past.at, sample.output_messages, sample.trace_summary, sample.file_changes
        )
        if can_be_stored(answer):
            return answer, is_rejected
        is_rejected = True
    return None, is_rejected


def can_be_stored(answer: PastAnswer) -> bool:
    """Whether an answer is JSON, small enough, and not nested too deeply."""
    depth = 0
    level: list[Any] = [answer.output_messages]
    while nested := [value for value in level if isinstance(value, dict | list | tuple)]:
        depth += 1
        if depth > ANSWER_LEVELS:
            return False
        level = [
            inner
            for value in nested
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    try:
        return len(_text(answer)) <= ANSWER_BYTES
    except (TypeError, ValueError):  # data of an agent that JSON cannot hold
        return False


def _text(answer: PastAnswer) -> bytes:
    """An answer as JSON with sorted keys, for its size and its order among answers."""
    summary = to_jsonable_python(answer.trace_summary) if answer.trace_summary else None
    data = [answer.output_messages, summary, answer.file_changes]
    return json.dumps(
        data, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    ).encode("utf-8", "replace")


def merged(one: SuiteHistory, other: SuiteHistory, bounds: Bounds | None = None) -> SuiteHistory:
    """The union of two histories of one suite, whichever came first: each sample once, in order,
    within bounds."""
    tests = {
        name: (*one.tests.get(name, ()), *other.tests.get(name, ()))
        for name in (*one.tests, *other.tests)
    }
    newer = max(one, other, key=lambda history: (_latest(history), history.name))
    return within(SuiteHistory(one.path, newer.name, tests), bounds or Bounds())


def within(history: SuiteHistory, bounds: Bounds) -> SuiteHistory:
    """The history within bounds, in the one form that does not depend on the order of runs."""
    latest = _latest(history)
    since = _instant(latest) - timedelta(days=FORGOTTEN_DAYS) if latest else None
    tests = {}
    for name, several in sorted(history.tests.items()):
        found: dict[Fingerprint, list[Series]] = {}
        for series in several:
            found.setdefault(series.fingerprint, []).append(series)
        joined = [_joined(fingerprint, group, bounds) for fingerprint, group in found.items()]
        joined.sort(key=lambda series: (series.used, _digests(series.fingerprint)), reverse=True)
        if since and _instant(joined[0].used) >= since:
            tests[name] = tuple(joined[: bounds.fingerprints])
    return SuiteHistory(history.path, history.name, tests)


def _latest(history: SuiteHistory) -> str:
    return max(
        (series.used for several in history.tests.values() for series in several), default=""
    )


def _joined(fingerprint: Fingerprint, several: Sequence[Series], bounds: Bounds) -> Series:
    samples = _latest_samples({sample for one in several for sample in one.samples}, bounds.samples)
    known = {sample.at for sample in samples}
    answers = [
        series.answer
        for series in several
        if bounds.answers and series.answer and series.answer.at in known
    ]
    answer = max(answers, key=lambda answer: (answer.at, _text(answer)), default=None)
    return Series(fingerprint, samples, max(series.used for series in several), answer)


def _latest_samples(samples: Iterable[PastSample], most: int) -> tuple[PastSample, ...]:
    """The latest samples, oldest first. A cached answer was given before: cached samples count only
    if there are no others, and then once per index, else one answer would look like many."""
    ordered = sorted(samples, key=_order)
    fresh = [sample for sample in ordered if not sample.cached]
    if not fresh:
        first: dict[int, PastSample] = {}
        for sample in ordered:
            first.setdefault(sample.index, sample)
        fresh = sorted(first.values(), key=_order)
    return tuple(fresh[-most:])


def _order(sample: PastSample) -> tuple[object, ...]:
    costs = (-1.0 if value is None else value for value in (sample.cost_usd, sample.duration_ms))
    return (*sample.at, sample.cached, sample.score, sample.verdict, sample.gates_failed, *costs)


def _digests(fingerprint: Fingerprint) -> tuple[str, str, str]:
    return fingerprint.question, fingerprint.grading, fingerprint.agent


def _instant(time: str) -> datetime:
    moment = datetime.fromisoformat(time)
    if moment.tzinfo is None:
        raise ValueError(f"{time} has no time zone")
    return moment.astimezone(UTC)
