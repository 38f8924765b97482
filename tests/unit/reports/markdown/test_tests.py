"""One test as Markdown: its facts, and the answers of both sides."""

from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.result import TestResult
from agentevals_action.model.run import CommentTemplate
from agentevals_action.reports.markdown.tests import Part, compare_answers, compare_calls
from agentevals_action.reports.view.models import Links
from tests.support import results, reviews

LIMIT = 400


def sides(base: str, head: str) -> SuiteComparison:
    return reviews.compared(
        (reviews.result("a", "fail", answer=head),), (reviews.result("a", answer=base),)
    )


def answers(base: str, head: str) -> list[Part]:
    return compare_answers(sides(base, head).tests[0], LIMIT)


def calls(base: TestResult, head: TestResult) -> list[Part]:
    return compare_calls(reviews.compared((head,), (base,)).tests[0], LIMIT)


def entry(*suites: SuiteComparison) -> list[str]:
    """The lines of the first test that the comment shows in detail."""
    text = reviews.comment(reviews.review(*suites), Links())
    return text.partition("\n#### ")[2].partition("</details>")[0].splitlines()


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
    found = calls(
        reviews.said(reviews.result("a"), *base), reviews.said(reviews.result("a", "fail"), *head)
    )
    assert found == [
        Part(f"{whose} tool calls that differ", number, text) for whose, number, text in shown
    ]


def test_calls__what_an_agent_does_not_show_is_not_compared() -> None:
    head = reviews.said(reviews.result("a", "fail"), MAIL)
    silent = reviews.result("a")  # its trace does not know its calls
    stored = replace(head, samples=tuple(replace(s, output_messages=()) for s in head.samples))
    damaged = replace(
        head, samples=tuple(replace(s, output_messages=({"tool_calls": 5},)) for s in head.samples)
    )
    for base in (silent, stored, damaged):
        assert calls(base, head) == []


def words(name: str, number: int) -> str:
    return " ".join(f"{name}{word}" for word in range(number))


def test_answers__equal_ones_are_shown_once_and_others_each_whole() -> None:
    assert answers("Hello!", "Hello!") == [
        Part("Both answers are equal", "base pass, 1.00; head fail, 0.20", "Hello!")
    ]
    assert answers("Hello, Ms Kowalska!", "Hello!") == [
        Part("Base's answer", "pass, 1.00", "Hello, Ms Kowalska!"),
        Part("Head's answer", "fail, 0.20", "Hello!"),
    ]


def test_answers__long_ones_are_shown_from_the_first_difference_on() -> None:
    start = words("same", 200)
    base, head = answers(f"{start} DENIED", f"{start} REFUNDED {words('other', 3_000)}")
    for part, word in ((base, "DENIED"), (head, "REFUNDED")):
        first, text = (part.text or "").split("\n")
        assert first.endswith("equal characters)")
        assert word in text[:LIMIT]


def test_answers__lines_are_wrapped_at_95_columns_and_indentation_is_kept() -> None:
    lines = entry(sides("", f"  {words('w', 30)}\n\n{'x' * 150}\n    indented"))
    lines = lines[lines.index("**Head's answer** (fail, 0.20)") + 2 :]
    assert max(map(len, lines)) == 95
    assert lines[1].startswith("  w0 ")
    assert lines[-3] == "    indented"
    assert "" in lines


def test_answers__one_that_is_not_stored_is_not_called_empty() -> None:
    assert "*(not stored)*" in entry(sides("", "Hello!"))


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
    template = CommentTemplate(
        "facts.j2",
        '{% import "parts.md.j2" as parts with context %}{{ marker }}\n'
        "{{ parts.facts(view.tests[0]) }}",
    )
    review = reviews.review(reviews.compared((head,), (base,)))
    assert reviews.comment(review, Links(), template).splitlines()[1].startswith(facts)


def test_facts__of_grading_question_and_error() -> None:
    head = reviews.result("a", "fail")
    suite = reviews.compared((head,), (reviews.result("a"),))
    rescored = replace(suite, tests=(replace(suite.tests[0], rescored=True),))
    assert "re-scored: head's evaluators scored the base's answer" in entry(rescored)[2]
    other = replace(head, fingerprint=results.fingerprint(question="other"))
    assert "not compared: " in entry(reviews.compared((other,), (reviews.result("a"),)))[2]
    error = reviews.result("a", None, error="no route to <host>")
    shown = entry(reviews.compared((error,), ()))[2]
    assert shown == "target failed: no route to &#60;host&#62;"


def test_misses__are_each_listed_once_and_cut() -> None:
    head = reviews.result("a", "fail", misses=("m1", "m1", "m2", "m3", "m4", "m5", "m6", "m7"))
    misses = [line for line in entry(reviews.compared((head,), ())) if line.startswith("- ")]
    assert misses[:2] == ["- missed: m1", "- missed: m2"]
    assert misses[-1] == "- … and 2 more"
