"""Kinds of errors in words."""

from agentevals_action import kinds


def test_words__known_and_strange() -> None:
    assert (kinds.words("budget"), kinds.words("workspace"), kinds.words("odd")) == (
        "budget spent",
        "workspace failed",
        "odd error",
    )


def test_counted__the_frequent_first() -> None:
    assert kinds.counted(["target", "budget", "budget"]) == "budget spent (2), target failed (1)"
    assert kinds.counted(["budget", "budget"]) == "budget spent"
