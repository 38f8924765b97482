"""Turns of conversations."""

from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.conversations import TurnNumber, number_turns
from tests.support import reviews

PATH = "evals/EVAL.yaml"
TALK = [(PATH, talk, test) for test, talk in (("a", "x"), ("b", None), ("c", "x"), ("d", "y"))]


def turns(*tests: str) -> list[TurnNumber | None]:
    return [number_turns([*TALK, *TALK]).get((PATH, test)) for test in tests]


def test_turns__are_numbered_in_suite_order_and_once() -> None:
    assert turns("a", "b", "c") == [TurnNumber("x", 1, 2), None, TurnNumber("x", 2, 2)]
    assert str(TurnNumber("x", 1200, 3000)) == "turn 1,200 of 3,000"


def test_turns__of_one_turn_or_another_suite_have_no_number() -> None:
    assert turns("d", "z") == [None, None]
    assert ("other/EVAL.yaml", "a") not in number_turns(TALK)


def test_order__turns_are_next_to_each_other_where_the_first_is() -> None:
    head = tuple(
        reviews.result(name, conversation_id=talk)
        for name, talk in (
            ("a2", "a"),
            ("-", None),
            ("b1", "b"),
            ("a1", "a"),
            ("+", None),
            ("b2", "b"),
        )
    )
    view = build_view(reviews.review(reviews.compared(head, None)))
    assert [one.comparison.id for one in view.tests] == ["a2", "a1", "-", "b1", "b2", "+"]
