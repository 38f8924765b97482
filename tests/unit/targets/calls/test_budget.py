import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace, Usage
from agentevals_action.targets.calls.budget import Budget


def reply(cost: float | None = None, cached: bool = False) -> Trace:
    return Trace((Message("assistant", "hi"),), usage=Usage(cost_usd=cost), cached=cached)


def test_budget__without_a_limit_nothing_is_refused_or_reported() -> None:
    budget = Budget()
    budget.add("a", reply(1000.0))
    budget.add("b", reply())
    budget.check()
    assert (budget.spent, budget.notices()) == (1000.0, ())


def test_budget__a_reached_limit_refuses_and_says_so() -> None:
    budget = Budget(0.3)
    budget.add("a", reply(0.1))
    budget.check()
    budget.add("a", reply(0.2))
    with pytest.raises(AttemptError, match=r"`max-cost-usd` \(\$0\.30\) is reached") as caught:
        budget.check()
    assert caught.value.kind == "budget"
    assert budget.notices() == (
        "`max-cost-usd` ($0.30) was reached after $0.3000; 1 call was not made.",
    )


def test_budget__stored_replies_cost_nothing() -> None:
    budget = Budget(0.3)
    budget.add("a", reply(5.0, cached=True))
    budget.add("b", reply(cached=True))
    budget.check()
    assert (budget.spent, budget.notices()) == (0.0, ())


def test_budget__a_limit_of_nothing_allows_nothing() -> None:
    with pytest.raises(AttemptError):
        Budget(0).check()


def test_budget__what_cannot_be_counted_is_named() -> None:
    budget = Budget(1)
    budget.add("agent", reply())
    assert budget.notices() == (
        "The cost of calls to `agent` is not known and not counted in `max-cost-usd`; give a target a `price`.",
    )


def test_budget__a_large_limit_is_shown_as_money() -> None:
    budget = Budget(1_000_000)
    budget.add("a", reply(1_000_000.5))
    with pytest.raises(AttemptError, match=r"`max-cost-usd` \(\$1,000,000\) is reached"):
        budget.check()
    assert budget.notices() == (
        "`max-cost-usd` ($1,000,000) was reached after $1,000,000.50; 1 call was not made.",
    )
