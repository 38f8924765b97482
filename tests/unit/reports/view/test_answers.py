"""The answers of both sides: wrapped, from the first difference on, or compared word by word."""

from agentevals_action.model.suite import ToolCall
from agentevals_action.reports.view.answers import Answer, block, show_answers, show_calls

VERDICTS = ("pass, 1.00", "fail, 0.20")


def shown(base: str, head: str, limit: int = 1_500) -> tuple[Answer, ...]:
    return show_answers(base, head, VERDICTS, limit)


def words(name: str, number: int) -> str:
    return " ".join(f"{name}{one}" for one in range(number))


def test_block__lines_are_wrapped_at_95_columns_and_indentation_is_kept() -> None:
    text = f"  {words('w', 60)}\n\n{'x' * 200}\n    indented"
    lines = block(text, 1_500).splitlines()
    assert max(map(len, lines)) == 95
    assert lines[1].startswith("  w0 ")
    assert " ".join(lines[1:-1]).split()[:60] == words("w", 60).split()
    assert lines[-2] == "    indented"
    assert "" in lines


def test_answers__short_ones_are_shown_whole() -> None:
    base, head = shown("Hello, Ms Kowalska!", "Hello!")
    assert base == Answer("Base's answer", "pass, 1.00", "```text\nHello, Ms Kowalska!\n```")
    assert head == Answer("Head's answer", "fail, 0.20", "```text\nHello!\n```")


def test_answers__equal_ones_are_shown_once() -> None:
    (one,) = shown("Hello!", "Hello!")
    assert (one.title, one.text) == ("Both answers are equal", "```text\nHello!\n```")


def test_answers__long_similar_ones_are_compared_by_words() -> None:
    before, after = words("a", 200), words("b", 200)
    base = f"{before}\n\n  keep it for 30 days\n{after} end"
    head = f"{before}\n\n  keep it for 14 long days\n{after} end and more"
    (one,) = shown(base, head)
    assert "a0" not in one.text
    assert "[… 19" in one.text
    assert "\n\n  keep it for [-30-] {+14 long+} days\n" in one.text
    assert " ".join(one.text.split()).endswith("end {+and more+} ```")
    assert one.verdict == "base pass, 1.00; head fail, 0.20"


def test_answers__two_differences_that_are_near_are_one() -> None:
    around = words("a", 100)
    (one,) = shown(f"{around} x the y {around}", f"{around} u the v {around}")
    assert "[-x the y-] {+u the v+}" in " ".join(one.text.split())


def test_answers__long_different_ones_are_shown_side_by_side() -> None:
    titles = [one.title for one in shown(words("a", 200), words("b", 200))]
    assert titles == ["Base's answer", "Head's answer"]


def test_answers__the_first_difference_is_visible_far_behind_the_limit() -> None:
    start = words("same", 200)
    base, head = shown(f"{start} DENIED", f"{start} REFUNDED {words('other', 3_000)}", limit=400)
    assert "DENIED" in base.text
    assert "REFUNDED" in head.text
    assert base.text.splitlines()[1].endswith("equal characters)")
    assert "more characters)" in head.text


def test_answers__too_many_words_are_counted() -> None:
    base, head = words("a", 1_400), f"{words('a', 500)} changed {words('b', 900)}"
    (one,) = shown(base, head.replace("b", "a"), limit=50_000)
    assert "[… 401 more words are not compared]" in " ".join(one.text.split())


def test_calls__of_both_sides_with_their_arguments() -> None:
    find = ToolCall("find", {"order": 7})
    base, head = show_calls(
        (find, ToolCall("refund", {"amount": 9.5})),
        (find, ToolCall("refund", {"amount": 100}), ToolCall("delete", None, refused=True)),
        1_500,
    )
    assert (base.title, base.verdict) == ("Base's tool calls", "2 calls")
    assert base.text == '```text\nfind {"order": 7}\nrefund {"amount": 9.5}\n```'
    assert (head.title, head.verdict) == ("Head's tool calls", "3 calls")
    assert head.text.splitlines()[2:4] == ['refund {"amount": 100}', "delete {} (refused)"]


def test_calls__equal_ones_are_shown_once_and_unknown_ones_are_not_none() -> None:
    (both,) = show_calls((ToolCall("a"),), (ToolCall("a"),), 1_500)
    assert (both.title, both.verdict) == ("Tool calls on both sides", "1 call")
    base, head = show_calls(None, (), 1_500)
    assert (base.verdict, base.text) == ("unknown", "*(not stored)*")
    assert (head.verdict, head.text) == ("0 calls", "*(empty)*")


def test_calls__cannot_end_their_block() -> None:
    (_, head) = show_calls((), (ToolCall("```\n# @everyone", {"a": "````\n"}),), 1_500)
    assert len(head.text.splitlines()) == 3
    assert head.text.startswith("~~~")
