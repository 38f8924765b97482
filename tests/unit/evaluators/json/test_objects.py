"""The JSON object in a text: found among prose, and never in what is broken."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.json import objects as json_objects

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)
PROSE = st.text(st.characters(codec="utf-8", exclude_characters='{}[]",:'), max_size=60)


def found(text: str) -> Any:
    return json_objects.find_object(text, ("score",))


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"score": 0.5}', 0.5),
        ('Here you go:\n```json\n{"score": 0.6, "hits": []}\n```\nHope it helps.', 0.6),
        ('{"score": 0.1} no, rather {"score": 0.2}', 0.2),
        ('My verdict ({"score": 0.5}).', 0.5),
        ('The set {a, b} is right: {"score": 1} (of {0, 1}).', 1),
        ('{"thought": {"score": 1}}\n{"score": 0}', 0),
        ('{"score": 0.3, "details": {"score": 1}}', 0.3),
        ('{"broken": , }\n{"score": 0.4}', 0.4),
        ('{"score": 0.7, "reasoning": "the } and { and \\" of it"}', 0.7),
        ('{"draft": "said "x"", "score": 1}\n{"score": 0.4}', 0.4),
    ],
)
def test_find_object__takes_the_last_with_the_key(text: str, score: float) -> None:
    assert found(text)["score"] == score


@pytest.mark.parametrize(
    "text",
    [
        "",
        "looks good to me",
        "score: 1",
        '{"scores": 1}',
        '{"result": {"score": 1}}',
        '[{"score": 1}]',
        '[{"a": 1}, {"score": 1}',
        '{"score": 1',
        '{"score": 1} {',
        '{"score": 1}\n{"score": 0.2, "hits": [',
        '{"score": 0.2, "details": {"score": 1}, }',
        '{"score": 0.2, "details": {"score": 1}',
        '{score: 0.2, "details": {"score": 1}}',
        "{'score': 0.2, 'details': {\"score\": 1}}",
        '"score": 0.2, "details": {"score": 1}}',
        '{"reasoning": "a "}" b", "details": {"score": 1}, "score": 0.1}',
        '{{"score": 1}}',
        '{"score": NaN}',
        '{"score": 1e400}',
        '{"score": 0, "score": 1}',
        '{"a":' * 100_000,
        '{"score": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_find_object__refuses_what_is_missing_or_broken(text: str) -> None:
    with pytest.raises(json_objects.UnreadableReply):
        found(text)


@given(before=PROSE, data=OBJECTS, score=st.floats(0, 1), after=PROSE)
def test_find_object__finds_any_object_among_prose(
    before: str, data: dict[str, Any], score: float, after: str
) -> None:
    data = {**data, "score": score}
    assert found(f"{before}{json.dumps(data)}{after}") == data


@given(data=OBJECTS, cut=st.integers(1, 10_000))
def test_find_object__takes_nothing_from_an_object_that_was_cut_off(
    data: dict[str, Any], cut: int
) -> None:
    text = json.dumps(
        {**data, "details": {"score": 1, "inner": {"score": 1}}, "score": 0.25}, indent=1
    )
    with pytest.raises(json_objects.UnreadableReply):
        found(text[: -min(cut, len(text) - 1)])


@given(
    data=OBJECTS,
    at=st.integers(0, 10_000),
    junk=st.sampled_from(["", '"', "}", "{", ",", "]", "\\", "'", ":", "x"]),
    width=st.integers(0, 3),
)
def test_find_object__takes_nothing_from_inside_a_damaged_object(
    data: dict[str, Any], at: int, junk: str, width: int
) -> None:
    inner = {"score": 1, "mark": "inner"}
    text = json.dumps(
        {"first": inner, **data, "details": {"deep": inner}, "score": 0.25, "list": [inner, inner]}
    )
    at %= len(text)
    try:
        value = found(text[:at] + junk + text[at + width :])
    except json_objects.UnreadableReply:
        return
    assert value.get("mark") != "inner"


@given(st.text())
def test_find_object__never_fails_otherwise(text: str) -> None:
    for given_text in (text, '{"' + text, '{"score": ' + text):
        with contextlib.suppress(json_objects.UnreadableReply):
            assert "score" in found(given_text)


@pytest.mark.parametrize("unit", ['{"', '"\\', '{"a": {"b": ,}} ', '{"score": 1} ', "{a: 1} "])
def test_find_object__ends_for_a_long_text(unit: str) -> None:
    """Time that grows with the square of 100,000 characters would be minutes."""
    with contextlib.suppress(json_objects.UnreadableReply):
        found('{"a": ' + unit * (100_000 // len(unit)))


def test_find_object__of_too_many_broken_ones_is_an_error() -> None:
    text = '{"score": 0, "score": 0} ' * 50_000 + '{"score": 1}'
    with pytest.raises(AttemptError, match="too many broken JSON objects"):
        found(text)
    assert found(text[-10_000:]) == {"score": 1}


def test_find_object__half_a_surrogate_pair_is_replaced() -> None:
    assert found('{"score": 1, "hits": ["\\ud800"]}')["hits"] == ["?"]
