"""Weights, gates and verdicts: the arithmetic that decides a merge."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.result import ErrorInfo, EvaluatorResult, SampleResult
from agentevals_action.results import scoring

ERROR = ErrorInfo(kind="evaluator", message="crashed")
SCORES = st.floats(0, 1)
WEIGHTS = st.just(0.0) | st.floats(1e-6, 1e6)


def result(
    score: float | None,
    weight: float = 1,
    gates: tuple[str, ...] = (),
    error: ErrorInfo | None = None,
) -> EvaluatorResult:
    return EvaluatorResult(
        name="e", type="contains", score=score, weight=weight, gates_failed=gates, error=error
    )


def sample(score: float | None, *gates: str, error: ErrorInfo | None = None) -> SampleResult:
    verdict = "fail" if gates else None if score is None else scoring.compute_verdict(score)
    return SampleResult(score=score, verdict=verdict, gates_failed=gates, error=error)


@pytest.mark.parametrize(
    ("score", "threshold", "reached"),
    [
        (0.8, 0.8, True),
        (0.1 + 0.7, 0.8, True),
        (0.7999999999, 0.8, True),
        (0.799999999, 0.8, False),
        (0.0, 0.8, False),
        (1e-12, 0.0, True),
    ],
)
def test_reaches__decides_after_rounding(score: float, threshold: float, reached: bool) -> None:
    assert scoring.reaches(score, threshold) is reached


@pytest.mark.parametrize(
    ("pairs", "mean"),
    [
        ([(1, 0.8), (0, 0.2)], 0.8),
        ([(1, 0), (0, 0)], 0.5),
        ([(1, 0), (0.25, 2)], 0.25),
        ([(1, 9), (0, 1)], 0.9),
        ([(0.5, 0)], 0.5),
    ],
)
def test_weighted_mean__by_weight_or_plain(pairs: list[tuple[float, float]], mean: float) -> None:
    assert scoring.weighted_mean(pairs) == pytest.approx(mean)


@given(st.lists(st.tuples(SCORES, WEIGHTS), min_size=1, max_size=8))
def test_weighted_mean__lies_between_the_scores(pairs: list[tuple[float, float]]) -> None:
    scores = [score for score, _ in pairs]
    assert min(scores) - 1e-9 <= scoring.weighted_mean(pairs) <= max(scores) + 1e-9


@pytest.mark.parametrize(
    ("score", "gates", "verdict"),
    [
        (1, (), "pass"),
        (0.8, (), "pass"),
        (0.79, (), "borderline"),
        (0.6, (), "borderline"),
        (0.59, (), "fail"),
        (0, (), "fail"),
        (1, ("safe",), "fail"),
    ],
)
def test_verdict__follows_score_and_gates(
    score: float, gates: tuple[str, ...], verdict: str
) -> None:
    assert scoring.compute_verdict(score, gates) == verdict
    assert scoring.compute_verdict(score, iter(gates)) == verdict


def advisory(of: EvaluatorResult) -> EvaluatorResult:
    return replace(of, advisory="it is not calibrated")


Scored = tuple[float | None, str | None, tuple[str, ...]]
UNKNOWN: Scored = (None, None, ())
#: The results of evaluators, and the score, verdict and failed gates of their sample.
SAMPLES: dict[str, tuple[list[EvaluatorResult], Scored]] = {
    "the weighted mean": ([result(1, 3), result(0, 1)], (0.75, "borderline", ())),
    "a failed gate": ([result(1, 9), result(0, 1, ("must",))], (0.9, "fail", ("must",))),
    "an error": ([result(1), result(None, error=ERROR)], UNKNOWN),
    "an error and a failed gate": (
        [result(1), result(0, 1, ("must",)), result(None, 7, error=ERROR)],
        (0.5, "fail", ("must",)),
    ),
    "advisory results decide nothing": (
        [result(1), advisory(result(0, 9, ("must",))), advisory(result(None, error=ERROR))],
        (1.0, "pass", ()),
    ),
    "a failed gate beside an advisory pass": (
        [result(0, 1, ("must",)), advisory(result(1, 9))],
        (0.0, "fail", ("must",)),
    ),
    "only advisory results": ([advisory(result(1))], UNKNOWN),
    "one without weight beside advisory results": ([result(1, 0), advisory(result(0))], UNKNOWN),
    "a gate without weight beside advisory results": (
        [replace(result(1, 0), required=0.8), advisory(result(0))],
        (1.0, "pass", ()),
    ),
    "a failed gate without weight beside advisory results": (
        [result(0, 0, ("must",)), advisory(result(1))],
        (0.0, "fail", ("must",)),
    ),
    "nothing has a weight": ([result(1, 0), advisory(result(0, 0))], (1.0, "pass", ())),
    "nothing": ([], UNKNOWN),
    "each gate once": (
        [result(0, 1, ("b", "b/x")), result(0, 1, ("a", "b"))],
        (0.0, "fail", ("b", "b/x", "a")),
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_sample__by_its_evaluators(name: str) -> None:
    evaluators, expected = SAMPLES[name]
    assert scoring.score_sample(evaluators) == expected


def test_error__of_a_sample_that_no_evaluator_decides_about() -> None:
    error = scoring.find_error([result(1, 0), advisory(result(0))])
    assert error
    assert (error.kind, error.message) == ("advisory", "it is not calibrated")
    assert scoring.find_error([result(1), advisory(result(None, error=ERROR))]) is None


def test_samples__that_no_evaluator_decides_about_are_left_out() -> None:
    advisory = sample(None, error=ErrorInfo(kind="advisory", message="it is not calibrated"))
    assert scoring.combine_samples([sample(1), advisory]) == (1.0, "pass", ())
    assert scoring.combine_samples([sample(0, "g"), advisory, advisory]) == (0.0, "fail", ("g",))
    assert scoring.combine_samples([advisory, sample(None, error=ERROR)]) == UNKNOWN
    assert scoring.deciding_samples([advisory, sample(None, error=ERROR)])[0].error == ERROR
    assert scoring.combine_samples([advisory]) == UNKNOWN


@given(st.lists(st.tuples(SCORES, WEIGHTS, st.booleans(), st.booleans()), max_size=6))
def test_sample__passes_only_when_nothing_failed_and_nothing_erred(
    parts: list[tuple[float, float, bool, bool]],
) -> None:
    results = [
        result(None, weight, error=ERROR)
        if erred
        else result(score, weight, ("g",) if gated else ())
        for score, weight, gated, erred in parts
    ]
    _, verdict, gates = scoring.score_sample(results)
    if verdict == "pass":
        assert not gates
        assert not any(erred or gated for _, _, gated, erred in parts)


ERRED = sample(None, error=ERROR)
#: Samples, and the score, verdict and failed gates of their test.
TESTS: dict[str, tuple[list[SampleResult], Scored]] = {
    "the mean": ([sample(1), sample(0.7)], (0.85, "pass", ())),
    "the verdict of the mean": ([sample(1), sample(0.4)], (0.7, "borderline", ())),
    "one error": ([sample(1), sample(1), ERRED], UNKNOWN),
    "a gate that most failed beside an error": (
        [sample(0.5, "must"), sample(0.5, "must"), ERRED],
        (0.5, "fail", ("must",)),
    ),
    "a gate that half failed beside an error": ([sample(0.5, "must"), ERRED], UNKNOWN),
    "a gate and an error in one sample": (
        [sample(None, "must", error=ERROR)],
        (None, "fail", ("must",)),
    ),
    "no sample": ([], UNKNOWN),
}


@pytest.mark.parametrize("name", TESTS)
def test_samples__of_a_test(name: str) -> None:
    samples, expected = TESTS[name]
    assert scoring.combine_samples(samples) == expected


@pytest.mark.parametrize(
    ("failed", "of", "fails"),
    [(1, 1, True), (1, 2, False), (2, 3, True), (1, 3, False), (2, 4, False), (3, 4, True)],
)
def test_samples__fail_a_gate_that_failed_in_more_than_half(
    failed: int, of: int, fails: bool
) -> None:
    samples = [sample(0.9, "must")] * failed + [sample(0.9)] * (of - failed)
    score, verdict, gates = scoring.combine_samples(samples)
    assert score == pytest.approx(0.9)
    assert (verdict, gates) == (("fail", ("must",)) if fails else ("pass", ()))
