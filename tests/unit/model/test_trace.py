"""Sums of usage: an unknown figure is not zero."""

import pytest

from agentevals_action.model.trace import Spending, Trace, Usage, total, total_spending


@pytest.mark.parametrize(
    ("usages", "strict", "partial"),
    [
        ([], Usage(), Usage()),
        ([Usage(1, 2, 0, 1, 0.5), Usage(3, 4, 1, 1, 0.25)], *[Usage(4, 6, 1, 2, 0.75)] * 2),
        ([Usage(1, 2), Usage(3)], Usage(4), Usage(4, 2)),
        ([Usage(5, 2, 3), Usage(4, 1)], *[Usage(9, 3, 3)] * 2),
        ([Usage(5, 2, 3), Usage(output_tokens=1)], Usage(None, 3), Usage(5, 3, 3)),
        ([Usage(cost_usd=0.5), Usage(cost_usd=0.0)], *[Usage(cost_usd=0.5)] * 2),
    ],
)
def test_total(usages: list[Usage], strict: Usage, partial: Usage) -> None:
    assert (total(usages), total(usages, partial=True)) == (strict, partial)


def test_or_else__zero_is_known() -> None:
    assert Usage(0, None, 2).or_else(Usage(9, 8, 7, 6)) == Usage(0, 8, 2, 6)


def test_total_tokens__needs_both() -> None:
    assert (Usage(3, 4).total_tokens, Usage(3).total_tokens, Usage(None, 3).total_tokens) == (
        7,
        None,
        None,
    )


def test_total_spending() -> None:
    replies = [
        Trace((), usage=Usage(cost_usd=0.5), cost_source="price table"),
        Trace((), usage=Usage(cost_usd=0.25)),
        Trace((), usage=Usage(cost_usd=9.0), cached=True),
        Trace(()),
    ]
    spent = total_spending(reply.spent for reply in replies)
    assert spent == Spending(0.75, ("price table", "reply"), 4, 1, 1)
    assert total_spending([Trace(()).spent]).cost_usd is None
