"""The results of base from stored results, if they are results of the base's own tree."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentevals_action.baselines.base import Unavailable
from agentevals_action.formatting import counted, plural
from agentevals_action.model.result import Fingerprint, SampleResult, TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.results import build, scoring


def complete_rows(
    suite: Suite,
    results: Sequence[TestResult],
    expected: Mapping[str, Fingerprint],
    compared: Mapping[str, Fingerprint],
) -> tuple[TestResult, ...]:
    """The stored results of a suite as those of base. Unavailable states why they are not.

    Every test of the suite must have one scored result with the three digests of the base's tree
    (`expected`): a missing test would count as new on head, and hide its regression. They have
    the fingerprints to compare it with head by (`compared`). Only the samples of a result
    are used (without those of a confirmation); everything else follows from them and from the
    suite."""
    by_id = {result.eval_id: result for result in results}
    tests = tuple(suite.tests)
    problem = _missing(tests, by_id, len(results)) or _different(tests, by_id, expected)
    if problem:
        raise Unavailable(problem)
    found = {test.id: _result(suite, test, by_id[test.id], compared[test.id]) for test in tests}
    scored = tuple(result for result in found.values() if result is not None)
    if len(scored) < len(found):
        errored = [name for name, result in found.items() if result is None]
        raise Unavailable(f"{_names(errored)} ended in an error there")
    return scored


def _sound_samples(result: TestResult) -> tuple[SampleResult, ...]:
    """The scored samples of the run itself, without those of a confirmation."""
    return tuple(
        sample for sample in result.main_samples if sample.error is None and _is_sound(sample)
    )


def _is_sound(sample: SampleResult) -> bool:
    """Whether score and verdict of a stored sample fit each other."""
    score = sample.score
    if score is None or not math.isfinite(score) or not 0 <= score <= 1:
        return False
    return sample.verdict == scoring.verdict_of(score, sample.gates_failed)


def _result(
    suite: Suite, test: Test, stored: TestResult, fingerprint: Fingerprint
) -> TestResult | None:
    samples = _sound_samples(stored)
    if not samples:
        return None
    result = replace(
        build.test_result(suite, test, samples, stored.duration_ms or 0.0, fingerprint),
        timestamp=stored.timestamp,
        duration_ms=stored.duration_ms,
        spent=stored.spent,
    )
    # Older samples may have no answer: the latest stored answer with the verdict is shown.
    answered = [
        sample for sample in samples if sample.output_messages and sample.verdict == result.verdict
    ]
    if not answered:
        return result
    return replace(
        result,
        candidate_answer=answered[-1].candidate_answer,
        trace_summary=answered[-1].trace_summary,
    )


def _missing(tests: Sequence[Test], results: Mapping[str, TestResult], count: int) -> str:
    if not results:
        return "there are no results of it"
    if len(results) != count:
        return "a test has more than one result there"
    missing = [test.id for test in tests if test.id not in results]
    if not missing:
        return ""
    return f"{_names(missing)} of {len(tests)} {plural(len(missing), 'is', 'are')} not in it"


def _different(
    tests: Sequence[Test], results: Mapping[str, TestResult], expected: Mapping[str, Fingerprint]
) -> str:
    parts: dict[str, None] = {}
    names = []
    for test in tests:
        stored, wanted = results[test.id].fingerprint, expected[test.id]
        if stored != wanted:
            names.append(test.id)
            parts |= {
                part: None
                for part in ("question", "grading", "agent")
                if stored is None or getattr(stored, part) != getattr(wanted, part)
            }
    if not names:
        return ""
    were = plural(len(names), "was", "were")
    return f"{_names(names)} {were} run with another {' and '.join(parts)} than the base has"


def _names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the test `{names[0]}`"
    return f"{counted(len(names), 'test')} (the first is `{names[0]}`)"
