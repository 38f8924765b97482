"""Pure: what a run adds to what is remembered of a suite, and how two memories become one."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic_core import to_jsonable_python

from agentevals_action.model.history import PastAnswer, PastSample, Series, SuiteHistory
from agentevals_action.model.result import Fingerprint, SampleResult, SuiteRun

#: Samples that are kept of a test with one fingerprint, and fingerprints of a test.
SAMPLES = 50
FINGERPRINTS = 3
#: Bytes of JSON that a test's answer may take to be kept.
ANSWER_BYTES = 64 * 1024
#: Levels of lists and objects that its messages may have, their own list included: with the five
#: that are above them in a file, the 200 that every version has read.
ANSWER_LEVELS = 195
#: Days without a result, before the suite's latest, after which a test is taken for removed. Not at
#: once: a slow job of an older commit may end after one of a newer, and a test whose agent fails
#: for some time comes back.
FORGOTTEN_DAYS = 30


@dataclass(frozen=True)
class Bounds:
    """How much is kept of a suite."""

    samples: int = SAMPLES
    fingerprints: int = FINGERPRINTS
    answers: bool = True


def of_run(run: SuiteRun, commit: str, time: str) -> tuple[SuiteHistory, int]:
    """What a run of a commit (SHA) at a time (ISO 8601 with a zone) adds, and the number of answers
    that could not be kept.

    Samples that ended in an error tell nothing, those that were taken to confirm a suspicion were
    taken because of what came before: neither is one of the run's samples. ValueError when the time
    is none."""
    moment = _instant(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    tests: dict[str, tuple[Series, ...]] = {}
    too_large = 0
    for result in run.results:
        told = [
            (
                PastSample(
                    moment,
                    commit,
                    place,
                    sample.score,
                    sample.verdict,
                    sample.gates_failed,
                    *_figures(sample),
                    sample.cached,
                ),
                sample,
            )
            for place, sample in enumerate(result.main_samples)
            if sample.error is None and sample.score is not None and sample.verdict is not None
        ]
        if not told or result.fingerprint is None:
            continue
        answer, large = _answer(told)
        too_large += large
        tests[result.eval_id] = (
            Series(result.fingerprint, tuple(past for past, _ in told), moment, answer),
        )
    return _settled(SuiteHistory(run.path, run.name, tests), Bounds()), too_large


def _figures(sample: SampleResult) -> tuple[float | None, float | None]:
    figures = sample.trace_summary
    return (figures.cost_usd, figures.duration_ms) if figures else (None, None)


def _answer(told: Sequence[tuple[PastSample, SampleResult]]) -> tuple[PastAnswer | None, bool]:
    """The answer of the latest sample that can be kept, and whether one could not be, being too
    large, too deep or no JSON."""
    large = False
    fresh = [pair for pair in told if not pair[0].cached]
    for past, sample in reversed(fresh or told):
        if not sample.output_messages:
            continue
        answer = PastAnswer(
            past.at, sample.output_messages, sample.trace_summary, sample.file_changes
        )
        if can_be_kept(answer):
            return answer, large
        large = True
    return None, large


def can_be_kept(answer: PastAnswer) -> bool:
    """Whether an answer is JSON, small enough, and not nested too deeply."""
    try:
        return len(_text(answer)) <= ANSWER_BYTES and _levels_are_few(answer.output_messages)
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # an agent's own data in it that JSON does not know
        return False


def _levels_are_few(messages: object) -> bool:
    depth, level = 0, [messages]
    while nests := [value for value in level if isinstance(value, dict | list | tuple)]:
        depth += 1
        if depth > ANSWER_LEVELS:
            return False
        level = [
            inner
            for value in nests
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return True


def _text(answer: PastAnswer) -> bytes:
    """An answer as JSON with its keys in order: its size, and what tells two apart."""
    figures = to_jsonable_python(answer.trace_summary) if answer.trace_summary else None
    data = [answer.output_messages, figures, answer.file_changes]
    return json.dumps(
        data, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    ).encode("utf-8", "replace")


def merged(one: SuiteHistory, other: SuiteHistory, bounds: Bounds | None = None) -> SuiteHistory:
    """Both together, whichever came first: each sample once, in order, within bounds. `other` is of
    the same suite."""
    tests = {
        name: (*one.tests.get(name, ()), *other.tests.get(name, ()))
        for name in (*one.tests, *other.tests)
    }
    newer = max(one, other, key=lambda history: (_latest(history), history.name))
    return _settled(SuiteHistory(one.path, newer.name, tests), bounds or Bounds())


def within(history: SuiteHistory, bounds: Bounds) -> SuiteHistory:
    """As much of it as the bounds let stand."""
    return _settled(history, bounds)


def _latest(history: SuiteHistory) -> str:
    return max((series.used for kept in history.tests.values() for series in kept), default="")


def _settled(history: SuiteHistory, bounds: Bounds) -> SuiteHistory:
    """The one form that the same samples have in whatever order they came."""
    latest = _latest(history)
    since = _instant(latest) - timedelta(days=FORGOTTEN_DAYS) if latest else None
    tests = {}
    for name, kept in sorted(history.tests.items()):
        found: dict[Fingerprint, list[Series]] = {}
        for series in kept:
            found.setdefault(series.fingerprint, []).append(series)
        whole = [_joined(print_, several, bounds) for print_, several in found.items()]
        whole.sort(key=lambda series: (series.used, _digests(series.fingerprint)), reverse=True)
        if since and _instant(whole[0].used) >= since:
            tests[name] = tuple(whole[: bounds.fingerprints])
    return SuiteHistory(history.path, history.name, tests)


def _joined(print_: Fingerprint, several: Sequence[Series], bounds: Bounds) -> Series:
    samples = _kept({sample for series in several for sample in series.samples}, bounds.samples)
    there = {sample.at for sample in samples}
    answers = [
        series.answer
        for series in several
        if series.answer and series.answer.at in there and bounds.answers
    ]
    used = max(series.used for series in several)
    return Series(
        print_,
        samples,
        used,
        max(answers, key=lambda answer: (answer.at, _text(answer)), default=None),
    )


def _kept(samples: Iterable[PastSample], most: int) -> tuple[PastSample, ...]:
    """The latest, oldest first. An answer out of the cache is one that was given before: it counts
    only where no other is known, and then once, or the same answer would look like many."""
    ordered = sorted(samples, key=_order)
    fresh = [sample for sample in ordered if not sample.cached]
    if not fresh:
        first: dict[int, PastSample] = {}
        for sample in ordered:
            first.setdefault(sample.place, sample)
        fresh = sorted(first.values(), key=_order)
    return tuple(fresh[-most:])


def _order(sample: PastSample) -> tuple[object, ...]:
    costs = (-1.0 if figure is None else figure for figure in (sample.cost_usd, sample.duration_ms))
    return (*sample.at, sample.cached, sample.score, sample.verdict, sample.gates_failed, *costs)


def _digests(print_: Fingerprint) -> tuple[str, str, str]:
    return print_.question, print_.grading, print_.agent


def _instant(time: str) -> datetime:
    moment = datetime.fromisoformat(time)
    if moment.tzinfo is None:
        raise ValueError(f"{time} names no time zone")
    return moment.astimezone(UTC)
