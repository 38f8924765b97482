"""One test as Markdown: its facts, and the answers of both sides."""

from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.result import TestResult
from agentevals_action.reports.markdown.tests import Answer, CommentedTest, Limits, TestText
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.links import Links
from tests.support import results, reviews

LIMITS = Limits(detailed=1, answer=400, suites=1, items=10, errors=10, text=200)


def entry_of(suite: SuiteComparison) -> CommentedTest:
    (test,) = build_view(reviews.review(suite)).tests
    return TestText(Links(), LIMITS, {}).entry(test)


def answers(base: str, head: str) -> tuple[Answer, ...]:
    sides = (reviews.result("a", "fail", answer=head),), (reviews.result("a", answer=base),)
    return entry_of(reviews.compared(*sides)).answers


Call = tuple[str, dict[str, Any]]
LOOK: Call = ("look", {"a": 1, "b": 2})
MAIL: Call = ("mail", {})


@pytest.mark.parametrize(
    ("base", "head", "shown"),
    [
        ([LOOK, MAIL], [("look", {"b": 2, "a": 1}), MAIL], []),
        ([LOOK], [LOOK, MAIL], [("Head's", "1 of 2", "mail {}")]),
        ([LOOK, MAIL], [MAIL], [("Base's", "1 of 2", 'look {"a": 1, "b": 2}')]),
        ([], [LOOK, LOOK], [("Head's", "2 of 2", "\n".join(['look {"a": 1, "b": 2}'] * 2))]),
        (
            [LOOK],
            [("look", {"a": 1, "b": 3})],
            [
                ("Base's", "1 of 1", 'look {"a": 1, "b": 2}'),
                ("Head's", "1 of 1", 'look {"a": 1, "b": 3}'),
            ],
        ),
        (
            [("one", {}), MAIL],
            [MAIL, ("one", {})],
            [
                ("Base's", "the same in another order", "one {}\nmail {}"),
                ("Head's", "the same in another order", "mail {}\none {}"),
            ],
        ),
        (
            [],
            [("write", {"text": "x" * 500}), MAIL],
            [("Head's", "2 of 2", f'write {{"text": "{"x" * 63}…\nmail {{}}')],
        ),
    ],
)
def test_calls__those_that_differ_are_listed_whatever_the_answers(
    base: list[Call], head: list[Call], shown: list[tuple[str, str, str]]
) -> None:
    sides = (
        reviews.said(reviews.result("a", "fail"), *head),
        reviews.said(reviews.result("a"), *base),
    )
    calls = entry_of(reviews.compared((sides[0],), (sides[1],))).calls
    assert calls == tuple(
        Answer(f"{whose} tool calls that differ", number, f"```text\n{text}\n```")
        for whose, number, text in shown
    )


def test_calls__what_an_agent_does_not_show_is_not_compared() -> None:
    head = reviews.said(reviews.result("a", "fail"), MAIL)
    silent = reviews.result("a")  # its trace does not know its calls
    stored = replace(head, samples=tuple(replace(s, output_messages=()) for s in head.samples))
    damaged = replace(
        head, samples=tuple(replace(s, output_messages=({"tool_calls": 5},)) for s in head.samples)
    )
    for base in (silent, stored, damaged):
        assert entry_of(reviews.compared((head,), (base,))).calls == ()


def words(name: str, number: int) -> str:
    return " ".join(f"{name}{word}" for word in range(number))


def test_answers__short_ones_are_shown_whole() -> None:
    base, head = answers("Hello, Ms Kowalska!", "Hello!")
    assert base == Answer("Base's answer", "pass, 1.00", "```text\nHello, Ms Kowalska!\n```")
    assert head == Answer("Head's answer", "fail, 0.20", "```text\nHello!\n```")


def test_answers__equal_ones_are_shown_once() -> None:
    assert answers("Hello!", "Hello!") == (
        Answer(
            "Both answers are equal", "base pass, 1.00; head fail, 0.20", "```text\nHello!\n```"
        ),
    )


def test_answers__long_ones_are_shown_from_the_first_difference_on() -> None:
    start = words("same", 200)
    base, head = answers(f"{start} DENIED", f"{start} REFUNDED {words('other', 3_000)}")
    assert "DENIED" in base.text
    assert "REFUNDED" in head.text
    assert base.text.splitlines()[1].endswith("equal characters)")
    assert "more characters)" in head.text


def test_answers__lines_are_wrapped_at_95_columns_and_indentation_is_kept() -> None:
    (_, head) = answers("", f"  {words('w', 30)}\n\n{'x' * 150}\n    indented")
    lines = head.text.splitlines()
    assert max(map(len, lines)) == 95
    assert lines[1].startswith("  w0 ")
    assert lines[-2] == "    indented"
    assert "" in lines


def test_answers__one_that_is_not_stored_is_not_called_empty() -> None:
    base, _ = answers("", "Hello!")
    assert base.text == "*(not stored)*"


GATES = ("held", "failed", "new")


def gate_head(held: int) -> TestResult:
    return reviews.history("a", held, 3, gates=GATES, failed=GATES)


@pytest.mark.parametrize(
    ("head", "facts"),
    [
        (
            gate_head(1),
            "required gate `held` failed (held in 1 of 3 samples on head, in 1 of 1 on base)"
            " · required gate `failed` failed (held in 1 of 3 samples on head, in 0 of 1 on base)"
            " · required gate `new` failed (held in 1 of 3 samples on head)"
            " · 1 of 3 samples pass",
        ),
        (
            gate_head(0),
            "required gate `held` failed (held on base)"
            " · required gate `failed` failed (on base too)"
            " · required gate `new` failed (new on head) · 0 of 3 samples pass",
        ),
        (
            gate_head(2),
            "required gate `held` held in 2 of 3 samples on head, in 1 of 1 on base"
            " · required gate `failed` held in 2 of 3 samples on head, in 0 of 1 on base"
            " · required gate `new` held in 2 of 3 samples on head · 2 of 3 samples pass",
        ),
    ],
)
def test_facts__of_gates_and_samples(head: TestResult, facts: str) -> None:
    base = reviews.result("a", "fail", gates=("held", "failed"), failed=("failed",))
    assert entry_of(reviews.compared((head,), (base,))).facts.startswith(facts)


def test_facts__of_grading_question_and_error() -> None:
    head = reviews.result("a", "fail")
    suite = reviews.compared((head,), (reviews.result("a"),))
    rescored = replace(suite, tests=(replace(suite.tests[0], rescored=True),))
    assert "re-scored: head's evaluators scored the base's answer" in entry_of(rescored).facts
    other = replace(head, fingerprint=results.fingerprint(question="other"))
    assert "not compared: " in entry_of(reviews.compared((other,), (reviews.result("a"),))).facts
    error = reviews.result("a", None, error="no route to <host>")
    shown = entry_of(reviews.compared((error,), ())).facts
    assert shown == "target failed: no route to &#60;host&#62;"


def test_misses__are_each_listed_once_and_cut() -> None:
    head = reviews.result("a", "fail", misses=("m1", "m1", "m2", "m3", "m4", "m5", "m6", "m7"))
    misses = entry_of(reviews.compared((head,), (reviews.result("a"),))).misses
    assert misses[:2] == ("missed: m1", "missed: m2")
    assert misses[-1] == "… and 2 more"


def test_suite__has_the_name_of_its_runner() -> None:
    text = TestText(Links(), LIMITS, {"a.py": "py|test", "b.yaml": ""})
    assert text.suite("a.py") == "`a.py` (py&#124;test)"
    assert text.suite("b.yaml") == "`b.yaml`"
