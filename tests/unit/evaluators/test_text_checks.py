"""The types that look at the output alone: 1 or 0, and words for it."""

import asyncio

import pytest

from agentevals_action.evaluators import base, text_checks
from tests.support import cases

GRADED = [
    ("contains", {"value": "DENIED"}, "Result: DENIED.", 1),
    ("contains", {"value": "DENIED"}, "Result: denied.", 0),
    ("contains", {"value": "a"}, "", 0),
    ("contains_any", {"value": ["Hello", "Hey"]}, "Hey there", 1),
    ("contains_any", {"value": ["Hello", "Hey"]}, "hey there", 0),
    ("contains_all", {"value": ["Alice", "alice@example.com"]}, "Alice only", 0),
    ("contains_all", {"value": ["Alice", "only"]}, "Alice only", 1),
    ("icontains", {"value": "STRASSE"}, "die Straße", 1),
    ("icontains", {"value": "DENIED"}, "granted", 0),
    ("icontains_any", {"value": ["x", "DENIED"]}, "denied", 1),
    ("icontains_any", {"value": ["x", "y"]}, "denied", 0),
    ("icontains_all", {"value": ["ALICE", "bob"]}, "alice and BOB", 1),
    ("icontains_all", {"value": ["ALICE", "bob"]}, "alice", 0),
    ("starts_with", {"value": "begin "}, "  begin … end \n", 1),
    ("starts_with", {"value": "end"}, "begin … end", 0),
    ("ends_with", {"value": " end"}, "  begin … end \n", 1),
    ("ends_with", {"value": "begin"}, "begin … end", 0),
    ("equals", {"value": "42\n"}, " 42 ", 1),
    ("equals", {"value": "42"}, "420", 0),
    ("equals", {"value": ""}, " \n", 1),
    ("is_json", {}, "[1, 2]", 1),
    ("is_json", {}, ' {"a": "1"}\n', 1),
    ("is_json", {}, "42", 1),
    ("is_json", {}, "9" * 5000, 1),
    ("is_json", {}, "{'a': 1}", 0),
    ("is_json", {}, "", 0),
    ("is_json", {}, "NaN", 0),
    ("is_json", {}, "[-Infinity]", 0),
    ("is_json", {}, '```json\n{"a": 1}\n```', 0),
    ("is_json", {}, '{"a": 1} {"b": 2}', 0),
    ("regex", {"value": "good (morning|evening)", "flags": "i"}, "GOOD morning", 1),
    ("regex", {"value": "good (morning|evening)"}, "GOOD morning", 0),
    ("regex", {"value": "^b$", "flags": "m"}, "a\nb\nc", 1),
    ("regex", {"value": "^b$"}, "a\nb\nc", 0),
    ("regex", {"value": "a.c", "flags": "s"}, "a\nc", 1),
    ("regex", {"value": "a.c"}, "a\nc", 0),
    ("regex", {"value": "a  b # no space", "flags": "x"}, "ab", 1),
    ("regex", {"value": "(?P<d>\\d)-(?P=d)"}, "7-7", 1),
    ("regex", {"value": "(?<d>\\d)-\\k<d>"}, "7-7", 1),
    ("regex", {"value": "(?<d>\\d)-\\k<d>"}, "7-8", 0),
    ("regex", {"value": "\\\\k<d>"}, "\\k<d>", 1),
]


@pytest.mark.parametrize(("kind", "data", "output", "score"), GRADED)
def test_score__is_one_or_nought(
    kind: str, data: dict[str, object], output: str, score: float
) -> None:
    result = cases.run(kind, data, cases.case(output))
    assert (result.score, result.error) == (score, None)
    assert bool(result.hits) == (score == 1) or kind == "contains_all" or kind == "icontains_all"
    assert bool(result.misses) == (score == 0)


@pytest.mark.parametrize(("kind", "data", "output", "score"), GRADED)
def test_negate__turns_the_score_and_states_what_must_not_be(
    kind: str, data: dict[str, object], output: str, score: float
) -> None:
    plain, negated = (
        cases.run(kind, data, cases.case(output), negate=negate) for negate in (False, True)
    )
    assert (negated.score, negated.hits) == (1 - score, plain.misses)
    assert len(negated.misses) == (len(plain.hits) if score else 0)
    for miss in negated.misses:
        assert miss.startswith("must not ")
        assert miss.endswith((", but does", ", but is"))


@pytest.mark.parametrize(
    ("kind", "data", "miss"),
    [
        ("contains", {"value": "b"}, 'must not contain "b", but does'),
        ("starts_with", {"value": "a"}, 'must not start with "a", but does'),
        ("ends_with", {"value": "c"}, 'must not end with "c", but does'),
        ("equals", {"value": "abc"}, 'must not equal "abc", but does'),
        ("regex", {"value": "a.c"}, 'must not match "a.c", but does'),
    ],
)
def test_negate__names_the_text_that_must_not_be_there(
    kind: str, data: dict[str, object], miss: str
) -> None:
    assert cases.run(kind, data, cases.case("abc"), negate=True).misses == (miss,)


def test_contains_all__tells_each_text_apart() -> None:
    result = cases.run("contains_all", {"value": ["Alice", "Bob", "Carol"]}, cases.case("Bob"))
    assert result.hits == ('contains "Bob"',)
    assert result.misses == ('does not contain "Alice"', 'does not contain "Carol"')


def test_contains_any__names_all_that_were_looked_for() -> None:
    result = cases.run("contains_any", {"value": ["Alice", "Bob"]}, cases.case("Carol"))
    assert result.misses == ('does not contain any of "Alice", "Bob"',)


def test_words__are_one_line_and_cut() -> None:
    result = cases.run("contains", {"value": "first\nsecond " + "x" * 200}, cases.case(""))
    assert result.misses[0].startswith('does not contain "first second xxx')
    assert len(result.misses[0]) < 110
    assert "\n" not in result.misses[0]


def test_is_json__says_where_it_breaks() -> None:
    assert cases.run("is_json", {}, cases.case('{\n "a": }')).misses == (
        "is not valid JSON: Expecting value at line 2, column 7",
    )


def test_is_json__too_deep_to_tell_is_an_error() -> None:
    result = cases.run("is_json", {}, cases.case("[" * 200_000), negate=True)
    assert result.score is None
    assert result.error is not None
    assert result.error.kind == "evaluator"


@pytest.mark.slow
def test_regex__runaway_pattern_is_an_error_also_negated() -> None:
    result = cases.run("regex", {"value": "(a|aa)+$"}, cases.case("a" * 60 + "b"), negate=True)
    assert result.score is None
    assert result.error is not None
    assert result.error.kind == "evaluator"
    assert "(a|aa)+$" in result.error.message


@pytest.mark.parametrize(
    ("kind", "data", "label"),
    [
        ("contains", {"value": "DENIED"}, "DENIED"),
        ("contains_any", {"value": ["a", "b"]}, "a-b"),
        ("icontains_all", {"value": ["a", "b"]}, "a-b"),
        ("regex", {"value": "a+"}, "a+"),
        ("is_json", {}, ""),
    ],
)
def test_label__is_the_operand(kind: str, data: dict[str, object], label: str) -> None:
    assert cases.evaluator(kind, data).label() == label


def test_regex__runaway_pattern_holds_up_no_other_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_checks, "TIME_LIMIT", 0.2)

    async def both() -> bool:
        slow = asyncio.create_task(
            base.run_evaluator(
                cases.evaluator("regex", {"value": "(a|aa)+$"}), cases.case("a" * 60 + "b")
            )
        )
        await asyncio.sleep(0)
        await base.run_evaluator(cases.evaluator("contains", {"value": "b"}), cases.case("b"))
        waited = not slow.done()
        await slow
        return waited

    assert asyncio.run(both())
