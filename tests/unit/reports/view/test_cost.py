"""What agents took against base, and what a run cost."""

from dataclasses import replace

import pytest

from agentevals_action.model.baseline import BaselineOrigin, BaseSuite
from agentevals_action.model.comparison import Finding
from agentevals_action.model.trace import Spending
from agentevals_action.reports.view.cost import (
    AgentCost,
    compare_costs,
    spending_sentence,
    spent_by_review,
)
from agentevals_action.results.build import with_suite_samples
from tests.support import reviews

UNKNOWN = AgentCost()


def whole(total: float, tests: int = 4, samples: int = 1) -> AgentCost:
    return AgentCost(total, tests * samples, tests * samples, tests)


@pytest.mark.parametrize(
    ("base", "head", "words"),
    [
        (None, whole(0.5), "$0.5000"),
        (None, UNKNOWN, "–"),
        (UNKNOWN, UNKNOWN, "–"),
        (UNKNOWN, whole(0.5), "– → $0.5000"),
        (whole(0.5), UNKNOWN, "$0.5000 → –"),
        (whole(0.5), whole(0.6), "$0.5000 → $0.6000 (+20%)"),
        (whole(0.5), whole(0.25), "$0.5000 → $0.2500 (−50%)"),
        (whole(0.5), whole(0.0), "$0.5000 → $0.0000 (−100%)"),
        (whole(0.0), whole(0.5), "$0.0000 → $0.5000"),
        (whole(1.0), whole(1.004), "$1.00"),
        (whole(0.5), whole(0.501), "$0.5010"),
        (whole(0.001), whole(2.0), "$0.0010 → $2.00 (+199,900%)"),
    ],
)
def test_against__unknown_is_a_dash_and_rounding_no_change(
    base: AgentCost | None, head: AgentCost, words: str
) -> None:
    assert compare_costs(base, head) == words


def test_against__another_number_of_samples_is_compared_by_the_sample() -> None:
    assert compare_costs(whole(0.4), whole(1.5, samples=3)) == "$0.1000 → $0.1250 per sample (+25%)"
    assert compare_costs(whole(4.0), whole(12.0, samples=3)) == "$1.00 per sample"
    assert compare_costs(whole(0.4), AgentCost(None, 0, 12, 4)) == "$0.4000 → –"


def test_against__more_tests_of_as_many_samples_are_a_larger_suite() -> None:
    assert (
        compare_costs(whole(0.4, tests=4, samples=2), whole(0.5, tests=5, samples=2))
        == "$0.4000 → $0.5000 (+25%)"
    )


def test_against__a_sum_that_lacks_samples_is_at_least_that_and_no_share_of_anything() -> None:
    half = AgentCost(0.2, 2, 4, 4)
    assert compare_costs(None, half) == "≥ $0.2000"
    assert compare_costs(whole(0.4), half) == "$0.4000 → ≥ $0.2000"
    assert compare_costs(half, whole(0.4)) == "≥ $0.2000 → $0.4000"
    assert compare_costs(half, AgentCost(0.2, 1, 4, 4)) == "≥ $0.2000"
    assert (
        compare_costs(AgentCost(0.2, 2, 4, 4), whole(0.9, samples=3))
        == "$0.1000 → $0.0750 per sample"
    )


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (
            Spending(0.314, (), 120, 40, 0),
            "This run cost $0.31; 40 of 120 replies came from the cache.",
        ),
        (Spending(0.0123, (), 120, 0, 0), "This run cost $0.0123."),
        (
            Spending(0.0123, ("reply", "price table 2026-01-02"), 120, 0, 7),
            "Known cost: $0.0123 (113 of 120 replies; source: price table 2026-01-02, reply).",
        ),
        (Spending(1234.5, (), 1, 0, 0), "This run cost $1,234.50."),
        (
            Spending(0.0, (), 120, 120, 0),
            "This run cost nothing; 120 of 120 replies came from the cache.",
        ),
        (Spending(0.0, (), 1, 1, 0), "This run cost nothing; 1 of 1 reply came from the cache."),
        (
            Spending(0.31, (), 120, 0, 7),
            "Known cost: $0.31 (113 of 120 replies).",
        ),
        (Spending(0.00002, (), 5, 0, 3), "Known cost: under $0.0001 (2 of 5 replies)."),
        (Spending(None, (), 120, 0, 120), ""),
        (Spending(None, (), 0, 0, 0), ""),
        (
            Spending(0.0, (), 4, 2, 2),
            "The cost of 2 of 4 replies is unknown; 2 of 4 replies came from the cache.",
        ),
    ],
)
def test_words__what_is_not_known_is_not_nothing(spent: Spending, words: str) -> None:
    assert spending_sentence(spent) == words


def test_words__of_something_else() -> None:
    spent = Spending(0.5, (), 1)
    assert spending_sentence(spent, "these results") == "These results cost $0.50."


def test_spent__stored_results_cost_nothing_but_their_fresh_samples_do() -> None:
    fresh = replace(reviews.result("a").samples[0], spent=Spending(0.5, replies=2))
    found = {"a": reviews.evidence(Finding.CLEARED, (5, 5), (3, 3), base_samples=(fresh, fresh))}
    head, base = (reviews.result("a", "fail", cost_usd=0.25),), (reviews.result("a", cost_usd=7.0),)
    suite = reviews.compared(head, base, evidence=found, origin=BaselineOrigin("branch"))
    spent = spent_by_review(reviews.review(suite))
    assert spent.cost_usd == pytest.approx(1.25)
    again = replace(suite, run=replace(suite.run, base=BaseSuite(BaselineOrigin("rerun"))))
    assert spent_by_review(reviews.review(again)).cost_usd == pytest.approx(7.25)


@pytest.mark.parametrize(("source", "paid"), [("branch", 1.25), ("rerun", 8.25)])
def test_spent__samples_that_confirm_something_about_a_suite_cost(source: str, paid: float) -> None:
    fresh = replace(reviews.result("a").samples[0], spent=Spending(0.5, replies=1))
    head, base = (
        (with_suite_samples(reviews.result("a", cost_usd=cost), [fresh]),) for cost in (0.25, 7.0)
    )
    suite = reviews.compared(head, base, origin=BaselineOrigin(source))
    assert spent_by_review(reviews.review(suite)).cost_usd == pytest.approx(paid)
