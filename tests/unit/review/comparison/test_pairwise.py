"""The counts and the test of pairs of answers, against numbers that are known."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import pytest

from agentevals_action.model.baseline import BaseSuite
from agentevals_action.model.comparison import Outcome, PairwiseComparison
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.model.result import ErrorInfo, EvaluatorResult, SampleResult, TestResult
from agentevals_action.model.run import Policy
from agentevals_action.review.comparison.pairwise import compare_pairs, with_pairwise
from agentevals_action.review.comparison.statistics import sign_test
from tests.support import compared, data
from tests.support.results import result

POLICY = Policy(frozenset({"gates", "regressions"}))
WIN, LOSS, TIE, FLIP, EQUAL = (1.0, 1.0), (0.0, 0.0), (0.75, 0.75), (1.0, 0.0), ()


def judged(orders: tuple[float, ...], name: str = "pairwise") -> EvaluatorResult:
    """What the evaluator says of a pair, with its preference for head in each order."""
    decisive = orders[0] if len({*orders}) == 1 and orders[0] in (0, 1) else 0.5
    return EvaluatorResult(
        name=name,
        type="pairwise",
        score=decisive,
        evaluator_results=tuple(
            EvaluatorResult(name="order", type="pairwise", score=score) for score in orders
        ),
    )


def row(number: int, orders: tuple[float, ...], conversation: str | None = None) -> TestResult:
    pair = SampleResult(evaluator_results=(judged(orders),))
    return replace(result(f"t{number}"), pairs=(pair,), conversation_id=conversation)


def rows(*orders: tuple[float, ...]) -> Iterator[TestResult]:
    return (row(number, each) for number, each in enumerate(orders))


def counts(found: PairwiseComparison) -> tuple[int, int, int, int]:
    return found.wins, found.losses, found.ties, found.flips


def test_pairs__are_counted() -> None:
    (found,) = compare_pairs(rows(WIN, LOSS, LOSS, TIE, FLIP, EQUAL))
    assert counts(found) == (1, 2, 3, 1)
    assert (found.better, found.worse) == (("t0",), ("t1", "t2"))


def test_turns_of_a_conversation__are_one_pair() -> None:
    turns = [row(0, WIN, "c"), row(1, LOSS, "c"), row(2, LOSS, "c"), row(3, WIN)]
    (found,) = compare_pairs(turns)
    assert counts(found) == (1, 1, 0, 0)


def test_evaluators__are_counted_each_for_itself() -> None:
    pair = SampleResult(evaluator_results=(judged(WIN), judged(LOSS, "brief")))
    found = compare_pairs([replace(result("t"), pairs=(pair,))])
    assert [(each.name, each.wins, each.losses) for each in found] == [
        ("pairwise", 1, 0),
        ("brief", 0, 1),
    ]


@pytest.mark.parametrize(
    ("successes", "trials", "expected"),
    [
        (0, 0, 1),
        (0, 5, 1),
        (5, 5, 1 / 32),
        (39, 60, 0.013670),
        (38, 60, 0.025946),
        (600, 1200, 0.511513),
    ],
)
def test_sign_test__known_values(successes: int, trials: int, expected: float) -> None:
    """As `scipy.stats.binomtest(successes, trials, alternative="greater")`."""
    assert sign_test(successes, trials) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("wins", "losses", "ties", "finding"),
    [
        (0, 5, 0, "worse"),
        (0, 4, 0, "too few pairs"),  # p = 1/16
        (0, 5, 20, "worse"),  # a fifth of all pairs
        (0, 5, 21, "nothing"),  # too few to matter
        (5, 0, 0, "better"),
        (40, 60, 0, "worse"),  # 20 more losses of 100 pairs
        (41, 60, 0, "nothing"),
        (0, 0, 9, "too few pairs"),
    ],
)
def test_loss__is_significant_and_large(wins: int, losses: int, ties: int, finding: str) -> None:
    (found,) = compare_pairs(rows(*[WIN] * wins, *[LOSS] * losses, *[TIE] * ties))
    assert replace(found, level=0.05).finding == finding


def test_alpha__is_divided_among_the_comparisons_of_a_run() -> None:
    suite = compared.suite(*[(each, result(each.eval_id)) for each in rows(*[LOSS] * 5)])
    found = with_pairwise([suite, suite], POLICY)
    levels = [(each.level, each.finding) for own in found for each in own.pairwise]
    assert levels == [(0.025, "too few pairs")] * 2


BLOCKING = Policy(frozenset({"pairwise"}), confirm=6)


def pair(score: float | None, role: str = "main", advisory: str = "") -> SampleResult:
    result = replace(judged((0.5, 0.5)), score=score, advisory=advisory)
    if score is None:
        result = replace(result, error=ErrorInfo(kind="judge", message="no reply"))
    return SampleResult(role="fresh" if role == "fresh" else "main", evaluator_results=(result,))


def outcomes(
    first: str, fresh: str | None, policy: Policy = BLOCKING, advisory: str = ""
) -> tuple[Outcome | None, Outcome]:
    """The outcome of the comparison, and of a review, of a suite with these pairs: `L` a loss, `W`
    a win, `=` a tie, `?` not judged."""
    scores = {"L": 0.0, "W": 1.0, "=": 0.5, "?": None}
    rows = []
    for number, said in enumerate(first):
        pairs = [pair(scores[said], advisory=advisory)]
        pairs += [pair(scores[fresh[number]], "fresh")] if fresh else []
        rows.append(replace(result(f"t{number}"), pairs=tuple(pairs)))
    suites = with_pairwise([compared.suite(*[(row, row) for row in rows])], policy)
    (found,) = suites[0].pairwise
    return found.outcome, compared.decide(*suites, fail_on=policy.fail_on).outcome


@pytest.mark.parametrize(
    ("first", "fresh", "expected"),
    [
        ("LLLLL", "LLLLL", Outcome.FAILED),
        ("LLLLL===", "=LLLLLLL", Outcome.FAILED),
        ("LLLLL", "LLLL=", Outcome.PASSED),
        ("LLLLL", "WWWWW", Outcome.PASSED),
        ("LLLLL", None, Outcome.INCONCLUSIVE),
        ("LLLLL", "?????", Outcome.INCONCLUSIVE),
        ("LLLLL", "LLLL?", Outcome.INCONCLUSIVE),
        ("LLLLL", "WLL??", Outcome.PASSED),  # two more losses would not show it
        ("LLLLLL", "LLLLL?", Outcome.FAILED),
        ("LLLL", None, Outcome.PASSED),
        ("LLLL?", None, Outcome.INCONCLUSIVE),
        ("?????", None, Outcome.INCONCLUSIVE),
        ("????", None, Outcome.PASSED),  # so few can show nothing
        ("=====", None, Outcome.PASSED),
        ("WWWWW", None, Outcome.PASSED),
    ],
)
def test_condition__fails_if_the_fresh_answers_alone_are_worse(
    first: str, fresh: str | None, expected: Outcome
) -> None:
    assert outcomes(first, fresh) == (expected, expected)


def test_condition__needs_no_fresh_answers_without_a_confirmation() -> None:
    assert outcomes("LLLLL", None, replace(BLOCKING, confirm=0))[0] is Outcome.FAILED


@pytest.mark.parametrize("fail_on", ["gates", "regressions", "never"])
def test_condition__is_none_unless_fail_on_names_it(fail_on: str) -> None:
    policy = replace(BLOCKING, fail_on=frozenset({fail_on}))
    assert outcomes("LLLLL", "LLLLL", policy) == (None, Outcome.PASSED)


def test_condition__is_none_for_a_judge_that_decides_nothing() -> None:
    assert outcomes("LLLLL", None, advisory="it has no calibration") == (None, Outcome.PASSED)


def test_alpha__is_divided_among_the_conditions() -> None:
    both = replace(BLOCKING, fail_on=frozenset({"regressions", "pairwise"}))
    assert (BLOCKING.level, both.level) == (0.05, 0.025)
    assert outcomes("LLLLL", "LLLLL", both)[0] is Outcome.PASSED
    assert outcomes("LLLLLL", "LLLLLL", both)[0] is Outcome.FAILED


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (BaseSuite(problem="it could not be prepared"), Outcome.INCONCLUSIVE),
        (BaseSuite(same_service=("t0",)), Outcome.INCONCLUSIVE),
        (BaseSuite(is_new=True), Outcome.PASSED),
    ],
)
def test_suite_without_pairs__is_undecided_if_base_should_have_answers(
    base: BaseSuite, expected: Outcome
) -> None:
    suite = compared.suite((result("t0"), None))
    suite = replace(suite, run=replace(suite.run, base=base, comparing=("t0",)))
    suites = with_pairwise([suite], BLOCKING)
    assert compared.decide(*suites, fail_on=BLOCKING.fail_on).outcome is expected


def test_stored_results_without_answers__leave_the_condition_undecided() -> None:
    suite = compared.suite((result("t0"), result("t0")))
    assert with_pairwise([suite], BLOCKING)[0].pairwise == ()
    suite = replace(suite, run=replace(suite.run, comparing=("t0",)))
    (found,) = with_pairwise([suite], BLOCKING)[0].pairwise
    assert (found.outcome, found.problem) == (
        Outcome.INCONCLUSIVE,
        "the results of base have no answers to compare",
    )


def test_test_in_quarantine__does_not_count() -> None:
    suite = compared.suite((row(0, LOSS), result("t0")), (row(1, LOSS), result("t1")))
    entry = Quarantine(tests=("t0",), owner="ada", reason="flaky", expires=date(2999, 1, 1))
    held = replace(suite.tests[0], quarantine=entry)
    (found,) = with_pairwise([replace(suite, tests=(held, suite.tests[1]))], POLICY)
    assert [each.losses for each in found.pairwise] == [1]


@pytest.mark.parametrize(
    ("judge", "part", "expected"),
    [
        ("gpt-4", "Natural", (93, 2, 5)),
        ("gpt-4", "Adversarial", (246, 48, 25)),
        ("chatgpt", "Natural", (67, 4, 29)),
        ("chatgpt", "Adversarial", (29, 176, 114)),
    ],
)
def test_public_pairs__have_the_published_figures(
    judge: str, part: str, expected: tuple[int, int, int]
) -> None:
    """People's choice is in the place of head: right, wrong, and flipped."""
    lines = (data.FOLDER / "judges/pairs.jsonl").read_text().splitlines()
    pairs = [pair for pair in map(json.loads, lines) if pair["id"].startswith(part)]
    orders = [tuple(float(pair["people"] == said) for said in pair[judge]) for pair in pairs]
    (found,) = compare_pairs(rows(*orders))
    assert (found.wins, found.losses, found.flips) == expected
    assert found.flips == found.ties
