"""A suite's base run out of stored results, or in words why they do not stand for the base's
tree."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentevals_action.model.result import Fingerprint, SampleResult, SuiteRun, TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.results import build, scoring
from agentevals_action.results.summary import summarise


def whole_run(
    suite: Suite, results: Sequence[TestResult], expected: Mapping[str, Fingerprint]
) -> SuiteRun | str:
    """The stored results of a suite as a run of the base's own; why they are none as a phrase.

    Every test that the suite has must be there, told, once, and with the three digests that the
    base's tree gives it: a test that is missing would count as new on head, and hide that it
    regressed. Of a result only its samples are believed (not those that were taken to confirm a
    suspicion); what they come to, and where the test stands, follows from them and from the suite.
    """
    by_id = {result.eval_id: result for result in results}
    tests = tuple(suite.tests)
    problem = _missing(tests, by_id, len(results)) or _different(tests, by_id, expected)
    if problem:
        return problem
    told = {test.id: _told(suite, test, by_id[test.id], expected[test.id]) for test in tests}
    if untold := [name for name, result in told.items() if result is None]:
        return f"{_counted(untold)} ended in an error there"
    kept = tuple(result for result in told.values() if result is not None)
    return SuiteRun(suite.path, suite.name, kept, summarise(suite.path, suite.name, kept))


def sound_samples(result: TestResult) -> tuple[SampleResult, ...]:
    """The samples of the run itself that could be told, without those taken to confirm a
    suspicion."""
    return tuple(
        sample for sample in result.main_samples if sample.error is None and _is_sound(sample)
    )


def _is_sound(sample: SampleResult) -> bool:
    """Whether score and verdict of a stored sample are ones that grading could have given."""
    score = sample.score
    if score is None or not math.isfinite(score) or not 0 <= score <= 1:
        return False
    return sample.verdict == scoring.verdict_of(score, sample.gates_failed)


def _told(
    suite: Suite, test: Test, stored: TestResult, fingerprint: Fingerprint
) -> TestResult | None:
    samples = sound_samples(stored)
    if not samples:
        return None
    result = build.test_result(suite, test, samples, stored.duration_ms or 0.0, fingerprint)
    known: dict[str, object] = {
        "timestamp": stored.timestamp,
        "duration_ms": stored.duration_ms,
        "cost_usd": stored.cost_usd,
    }
    # Of older samples no answer may be kept: what is shown is the latest answer that there is to
    # the verdict.
    answered = [
        sample for sample in samples if sample.output_messages and sample.verdict == result.verdict
    ]
    if answered:
        known |= {
            "candidate_answer": answered[-1].candidate_answer,
            "trace_summary": answered[-1].trace_summary,
        }
    return replace(result, **known)


def _missing(tests: Sequence[Test], results: Mapping[str, TestResult], count: int) -> str:
    if not results:
        return "there are no results of it"
    if len(results) != count:
        return "a test has more than one result there"
    gone = [test.id for test in tests if test.id not in results]
    return (
        f"{_counted(gone)} of {len(tests)} {'is' if len(gone) == 1 else 'are'} not in it"
        if gone
        else ""
    )


def _different(
    tests: Sequence[Test], results: Mapping[str, TestResult], expected: Mapping[str, Fingerprint]
) -> str:
    parts: dict[str, None] = {}
    names = []
    for test in tests:
        stored, wanted = results[test.id].fingerprint, expected[test.id]
        if stored == wanted:
            continue
        names.append(test.id)
        pairs = (
            (part, stored and getattr(stored, part), getattr(wanted, part))
            for part in ("question", "grading", "agent")
        )
        parts |= dict.fromkeys(part for part, was, now in pairs if was != now)
    if not names:
        return ""
    return f"{_counted(names)} {'was' if len(names) == 1 else 'were'} run with another {' and '.join(parts)} than the base has"


def _counted(names: Sequence[str]) -> str:
    return (
        f"the test `{names[0]}`"
        if len(names) == 1
        else f"{len(names)} tests (the first is `{names[0]}`)"
    )
