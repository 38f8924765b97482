"""Turns of conversations."""

from agentevals_action.reports.conversations import Turn, Turns, together
from tests.support import results

TALK = [
    results.result(name, conversation_id=talk)
    for name, talk in (("a", "x"), ("b", None), ("c", "x"), ("d", "y"))
]


def test_turns__by_suite_order() -> None:
    turns = Turns(TALK)
    assert [turns.of(result) for result in TALK] == [Turn("x", 1, 2), None, Turn("x", 2, 2), None]
    assert Turn("x", 1200, 3000).words == "turn 1,200 of 3,000"


def test_turns__what_was_not_shown_is_none() -> None:
    elsewhere = results.result("a", path="other/EVAL.yaml", conversation_id="x")
    assert [
        Turns(TALK).of(result)
        for result in (None, elsewhere, results.result("z", conversation_id="x"))
    ] == [None, None, None]


def test_turns__a_test_that_is_shown_twice_is_one_turn() -> None:
    assert Turns([*TALK, *TALK]).of(TALK[2]) == Turn("x", 2, 2)


def test_together__where_the_first_of_them_stands() -> None:
    words = ["b2", "-", "a3", "b1", "-", "a1"]
    groups = together(
        words, lambda word: None if word == "-" else word[0], lambda word: int(word[1:] or 0)
    )
    assert [list(group) for group in groups] == [["b1", "b2"], ["-"], ["a1", "a3"], ["-"]]


def test_together__a_key_that_looks_like_a_number_is_no_place() -> None:
    assert len(together(["a", "b"], lambda word: 0 if word == "b" else None)) == 2
