"""Fields of an answer against those expected: where the JSON is, and each way of comparing."""

from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators import text_checks
from agentevals_action.evaluators.json import field_accuracy as fields
from agentevals_action.evaluators.json.objects import UnreadableReply
from agentevals_action.model.messages import Block, Message
from agentevals_action.model.result import Score


def field(path: str = "a", **more: Any) -> fields.Comparison:
    return fields.Comparison(path=path, **more)


def holds(expected: Any, given: Any, **more: Any) -> bool:
    comparison = field(**more)
    assert fields.expected_problem(comparison, {"a": expected}) == ""
    return fields.holds(comparison, expected, given)


def score(
    output: str,
    *comparisons: fields.Comparison,
    expected: Any,
    aggregation: Any = "weighted_average",
) -> Score:
    return fields.score_fields(comparisons, aggregation, expected, output)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        'The answer is {"a": 1}.',
    ],
)
def test_data__is_found_in_an_answer(text: str) -> None:
    assert fields.read_data(text, [field()]) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('It is {"b": 1}.', "there is no JSON object with `a`"),
        ('{"a": 1', "the JSON object is broken"),
        ('{"a": 1, "a": 2}', "a key is given twice"),
    ],
)
def test_data__is_none(text: str, why: str) -> None:
    with pytest.raises(UnreadableReply, match=why):
        fields.read_data(text, [field()])


def test_data__of_a_list_may_stand_in_fences() -> None:
    listed = [field("[0].a"), field("1")]
    assert fields.read_data('```\n[{"a": 1}, 2]\n```', listed) == [{"a": 1}, 2]
    assert fields.read_data('[{"a": 1}]', listed) == [{"a": 1}]
    for text in ("see [1]", "```json\n" * 50_000):  # an unclosed fence is searched once
        with pytest.raises(UnreadableReply):
            fields.read_data(text, listed)


@pytest.mark.parametrize(
    "message",
    [
        Message("assistant", (Block("json", {"a": 1}),)),
        Message("assistant", '{"a": 1}'),
        Message("assistant", (Block("text", 'so:\n```json\n{"a": 1}\n```'),)),
    ],
)
def test_expected__is_that_of_the_last_assistant_message(message: Message) -> None:
    messages = (Message("assistant", '{"a": 2}'), message, Message("user", '{"a": 3}'))
    assert fields.read_expected(messages, [field()]) == {"a": 1}


def test_expected__is_none() -> None:
    with pytest.raises(UnreadableReply, match="there is none"):
        fields.read_expected((), [field()])
    with pytest.raises(UnreadableReply, match="there is no JSON object"):
        fields.read_expected((Message("assistant", "forty-two"),), [field()])


@pytest.mark.parametrize(
    ("expected", "given", "same"),
    [
        (1, 1.0, True),
        ("a", "A", False),
        ({"x": [1, {}]}, {"x": [1, {}]}, True),
    ],
)
def test_exact__is_deep_equality(expected: Any, given: Any, same: bool) -> None:
    assert holds(expected, given) is same
    assert holds(expected, given, match="exact") is same


@pytest.mark.parametrize(
    ("expected", "given", "same"),
    [
        ("Acme", "Acme Ltd", True),
        ("acme", "Acme Ltd", False),
        (100, "USD 100", True),
        ("1", 412, True),
        ("b", ["a", "b"], True),
        ({"x": 1}, [{"x": 1.0}], True),
        ("b", ["abc"], False),
        ("x", {"x": 1}, False),
        ("x", None, False),
    ],
)
def test_contains__looks_in_texts_and_lists(expected: Any, given: Any, same: bool) -> None:
    assert holds(expected, given, match="contains") is same


@pytest.mark.parametrize(
    ("expected", "given", "same"),
    [
        ("^INV-\\d+$", "INV-42", True),
        ("^INV-\\d+$", "inv-42", False),
        ("^4", 42, True),
        ("x", ["x"], False),
        ("(?<n>a)\\k<n>", "aa", True),
    ],
)
def test_regex__has_the_expected_value_as_its_pattern(
    expected: Any, given: Any, same: bool
) -> None:
    assert holds(expected, given, match="regex") is same


def test_regex__that_runs_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_checks, "TIME_LIMIT", 0.1)
    with pytest.raises(AttemptError, match=r"ran for over 0\.1 s on the field a"):
        holds("(a|a)*$", "a" * 40 + "b", match="regex")


@pytest.mark.parametrize(
    ("expected", "given", "more", "same"),
    [
        (100, 100.004, {"tolerance": 0.01}, True),
        (0, 0.30000000000000004, {"tolerance": 0.3}, True),
        (0.3, 0.30000000000000004, {}, True),
        (100, 100.01, {"tolerance": 0.01}, True),
        (100, 99.98, {"tolerance": 0.01}, False),
        (100, 100, {}, True),
        (100, 100.001, {}, False),
        ("100", " 100.0 ", {}, True),
        (200, 190, {"tolerance": 0.05, "relative": True}, True),
        (-200, -211, {"tolerance": 0.05, "relative": True}, False),
        (0, 0.01, {"tolerance": 0.05, "relative": True}, False),
        (100, "100 USD", {"tolerance": 1}, False),
        (1, True, {"tolerance": 1}, False),
        (1, None, {"tolerance": 1}, False),
        (1, "Infinity", {"tolerance": 1}, False),
        (1, "1_0", {"tolerance": 100}, False),
        (1, "1e999999999", {"tolerance": 1}, False),
        (1, 1e30, {"tolerance": 1}, False),
        (0.1, 0.3, {"tolerance": 0.2}, True),
    ],
)
def test_numeric_tolerance__is_counted_in_digits(
    expected: Any, given: Any, more: dict[str, Any], same: bool
) -> None:
    assert holds(expected, given, match="numeric_tolerance", **more) is same


@pytest.mark.parametrize(
    ("expected", "given", "more", "same"),
    [
        ("2025-01-15", "15-JAN-2025", {}, True),
        ("2025-01-15", "2025-01-15T12:00:00Z", {}, False),
        ("2025-03-04", "03/04/2025", {}, False),
        ("2025-03-04", "03/04/2025", {"formats": ["MM/DD/YYYY"]}, True),
        ("2025-01-15", "soon", {}, False),
        ("2025-01-15", 20250115, {}, False),
    ],
)
def test_date__is_the_same_instant(
    expected: Any, given: Any, more: dict[str, Any], same: bool
) -> None:
    assert holds(expected, given, match="date", **more) is same


@pytest.mark.parametrize(
    ("match", "expected", "problem"),
    [
        ("exact", {}, "is not in `expected_output`; write the expected value there"),
        ("contains", {"a": ""}, 'is "" in `expected_output`, which every text contains'),
        ("regex", {"a": 5}, "is 5 in `expected_output`, which is not a valid pattern"),
        ("regex", {"a": "("}, "is not a valid regular expression"),
        (
            "numeric_tolerance",
            {"a": "ten"},
            'is "ten" in `expected_output`, which is not a valid number',
        ),
        ("date", {"a": "soon"}, 'is "soon" in `expected_output`, which is not a valid date'),
        ("date", {"a": "03/04/2025"}, "which may mean two dates"),
        ("date", {"a": 5}, "which is not a valid date"),
    ],
)
def test_expected__that_does_not_suit_is_refused(match: Any, expected: Any, problem: str) -> None:
    assert problem in fields.expected_problem(field(match=match), expected)


def test_score__is_weighted_and_tells_each_field() -> None:
    scored = score(
        '{"n": 100.004, "name": "Acme"}',
        field("n", match="numeric_tolerance", tolerance=0.01, weight=2),
        field("name"),
        field("date", match="date"),
        expected={"n": 100, "name": "Acme Ltd", "date": "2025-01-15"},
    )
    assert scored.value == 0.5
    assert scored.hits == ("n is 100.004, expected 100 ± 0.01",)
    assert scored.misses == (
        'name is "Acme", expected "Acme Ltd"',
        'date is missing, expected the date "2025-01-15"',
    )
    assert scored.details == {"fields": {"n": 1.0, "name": 0.0, "date": 0.0}}


@pytest.mark.parametrize(
    ("aggregation", "output", "value"),
    [
        ("minimum", '{"a": 1, "b": 2}', 1),
        ("minimum", '{"a": 1, "b": 3}', 0),
        ("all_or_nothing", '{"a": 1, "b": 2}', 1),
        ("all_or_nothing", '{"a": 1}', 0),
        ("weighted_average", '{"a": 1}', 0.5),
    ],
)
def test_aggregation__makes_the_score(aggregation: str, output: str, value: float) -> None:
    assert (
        score(
            output, field("a"), field("b"), expected={"a": 1, "b": 2}, aggregation=aggregation
        ).value
        == value
    )


def test_required__missing_is_0_and_wrong_is_not() -> None:
    both = field("a"), field("b", required=True)
    missing = score('{"a": 1}', *both, expected={"a": 1, "b": 2})
    assert (missing.value, missing.misses) == (0, ("b is missing, and it is required, expected 2",))
    assert score('{"a": 1, "b": 3}', *both, expected={"a": 1, "b": 2}).value == 0.5
    assert score('{"a": 1, "b": null}', *both, expected={"a": 1, "b": 2}).value == 0.5


def test_no_json__is_all_fields_missing_and_reported() -> None:
    scored = score("done", field("a"), field("b"), expected={"a": 1, "b": 2})
    assert scored.value == 0
    assert scored.misses == (
        "the output has no JSON that can be read: there is no JSON object with `a` or `b`",
        "a is missing, expected 1",
        "b is missing, expected 2",
    )


def test_deep_json__is_no_crash() -> None:
    assert score("[" * 5000 + "]" * 5000, field("a"), expected={"a": 1}).value == 0
