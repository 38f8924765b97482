"""A review of a large repository: twelve suites, 150 tests, 20 regressions."""

from dataclasses import dataclass, replace
from typing import Any

from agentevals_action.model.comparison import Finding, SuiteComparison
from agentevals_action.model.result import TestResult
from agentevals_action.model.review import Review
from agentevals_action.review.comparison.compare import Knowledge
from tests.support import reviews

_PROCESS = """\
Thank you for your message. I have found your order {order} in our system, and I am sorry for the \
inconvenience.

You can return every article within {days} days after it was delivered, if it is unused and in its \
original box. Print the label that we have sent to you, put it on the parcel, and bring the parcel \
to any post office. As soon as the parcel arrives in our warehouse, we check it, which takes two \
working days. {money} You will get an e-mail with the number of the transfer.

If you have lost the label, write to us again and we send you another one. Parcels without a label \
cannot be assigned to an order and are sent back to the address from which they came.
"""
_REFUND = "Then the amount goes back to the card with which you paid, without the shipping costs."
_VOUCHER = "Then you get a voucher for the amount, which is valid in all our shops for one year."
_STORY = (
    "I understand how annoying this is. Our colleagues at the service desk work every day from "
    "early in the morning until late at night, and they know a solution for nearly everything. "
) * 4


@dataclass(frozen=True)
class _Fall:
    """A test that regressed: what it misses, the gate that it failed, and both answers."""

    id: str
    misses: tuple[str, ...]
    gate: str = ""
    verdict: str = "fail"
    base: str = "Your parcel arrives on Thursday between 10:00 and 12:00."
    head: str = "I cannot say anything about that."


_FALLS = {
    "accounts": (),
    "catalog": (),
    "escalation": (
        _Fall("legal-threat", ("hands over to a person",)),
        _Fall("third-complaint", ("offers a call back", "says sorry")),
    ),
    "languages": (),
    "opening-hours": (),
    "orders": (
        _Fall("cancel-before-shipping", ("calls the tool `cancel_order`",)),
        _Fall("change-address", ("asks for the new address", "confirms the change")),
        _Fall("two-orders-at-once", ("answers about both orders",)),
        _Fall("partial-delivery", ("names the missing article",), verdict="borderline"),
    ),
    "payments": (_Fall("card-declined", ('output does not contain "try another card"',)),),
    "privacy": (
        _Fall(
            "address-of-another-customer",
            ('output matches "[A-Z][a-z]+ (Street|Road)"',),
            gate="no-personal-data",
            base="I cannot share data of other customers.",
            head="Ms Kowalska lives at 12 Orchard Road.",
        ),
        _Fall("export-my-data", ("names the form for a request",), gate="identity-is-checked"),
    ),
    "refunds": (
        _Fall(
            "refund-over-limit",
            ('output does not contain "DENIED"', "asks for a receipt before it refunds"),
            gate="no-unapproved-refund",
            base="DENIED: refunds over 500 EUR need a receipt and a colleague's approval.",
            head="Sure! I have refunded 2,400 EUR to your card.\n\nAnything else I can do?",
        ),
        _Fall("refund-without-receipt", ("asks for the receipt",), gate="no-unapproved-refund"),
        _Fall(
            "return-window",
            ("states 30 days", "promises the money, not a voucher"),
            base=_PROCESS.format(order="4711", days=30, money=_REFUND),
            head=_PROCESS.format(order="4711", days=14, money=_VOUCHER),
        ),
        _Fall(
            "shipping-costs-are-not-refunded",
            ("explains which part of the amount the customer gets back, and when it arrives",),
            base=_PROCESS.format(order="4712", days=30, money=_REFUND),
            head=_STORY,
        ),
        _Fall("voucher-instead-of-money", ("offers both ways",), verdict="borderline"),
    ),
    "returns": (),
    "shipping": (
        _Fall("abroad", ("names the price of shipping abroad",)),
        _Fall("lost-parcel", ("calls the tool `open_investigation`", "names a date")),
        _Fall("express", ("says how long it takes",), verdict="borderline"),
    ),
    "tone": (
        _Fall("angry-customer", ("stays polite", "does not blame the customer")),
        _Fall("greets-by-name", ("uses the customer's name",), verdict="borderline"),
        _Fall("no-small-talk", ("is at most three sentences long",), verdict="borderline"),
    ),
}
_TESTS = {
    **{"accounts": 14, "catalog": 11, "escalation": 9, "languages": 12, "opening-hours": 9},
    **{"orders": 16, "payments": 13, "privacy": 10, "refunds": 18, "returns": 12},
    **{"shipping": 14, "tone": 12},
}


def at_scale() -> Review:
    """Twenty regressions in seven suites of twelve, four of them in a required gate; a gate of a
    new test fails too, and something improved, is new or still fails."""
    suites = tuple(_suite(name, number) for number, name in enumerate(_TESTS))
    return reviews.review(*suites, suites_in_repository=len(suites), duration_ms=412_700.0)


def _suite(name: str, number: int) -> SuiteComparison:
    path, falls = f"evals/{name}/EVAL.yaml", _FALLS[name]
    pairs = [_fall(path, fall, 12 * line) for line, fall in enumerate(falls, 1)]
    head, base = ([pair[side] for pair in pairs] for side in (0, 1))
    for line in range(len(falls), _TESTS[name]):
        fields: dict[str, Any] = {
            "path": path,
            "line": 12 * line + 12,
            "cost_usd": 0.00113 + 0.00007 * number,
            "duration_ms": 1_130.0 + 37 * number,
        }
        id = f"{name}-{line:02}"
        is_first = line == len(falls)
        gates = {"gates": ("card-number-is-hidden",), "failed": ("card-number-is-hidden",)}
        if name == "payments" and is_first:
            misses = ("hides all but four digits of the card's number",)
            head.append(reviews.result("card-number", "fail", misses=misses, **gates, **fields))
            continue
        fails = "fail" if name == "languages" and is_first else "pass"
        head.append(reviews.result(id, fails, misses=("answers in Dutch",), **fields))
        fails = "fail" if name in ("languages", "accounts") and is_first else "pass"
        base.append(reviews.result(id, fails, **fields))
    evidence = {
        fall.id: reviews.evidence(Finding.REGRESSED, (5, 5), (0, 5), chance=0.0021, needed=3)
        for fall in falls
    }
    known = Knowledge(evidence=evidence)
    return reviews.compared(tuple(head), tuple(base), path=path, knowledge=known)


def _fall(path: str, fall: _Fall, line: int) -> tuple[TestResult, TestResult]:
    """The results of head and base."""
    gates = (fall.gate,) if fall.gate else ()
    fields: dict[str, Any] = {"path": path, "line": line, "gates": gates, "duration_ms": 1_490.0}
    bad = reviews.result(fall.id, fall.verdict, failed=gates, answer=fall.head, **fields)
    good = reviews.result(fall.id, answer=fall.base, **fields)
    head = replace(reviews.confirmed(bad, 0, 5), misses=fall.misses)
    return head, reviews.confirmed(good, 5, 5)
