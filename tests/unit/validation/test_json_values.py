"""JSON values: when they are equal, what a path leads to, and how they look in a sentence."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.validation import json_values

json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_data)
def test_equal__holds_of_the_same_data(data: Any) -> None:
    assert json_values.equal(data, json.loads(json.dumps(data)))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
        ([1, [2]], [1.0, [2]]),
        (None, None),
        (True, True),
    ],
)
def test_equal__looks_past_spelling(left: Any, right: Any) -> None:
    assert json_values.equal(left, right)
    assert json_values.canonical(left) == json_values.canonical(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (0, False),
        ("1", 1),
        (None, False),
        ([1], [1, 1]),
        ({"a": 1}, {"a": 1, "b": None}),
        ({}, []),
        ("", None),
        ({"a": {}}, {"a": []}),
    ],
)
def test_equal__tells_kinds_apart(left: Any, right: Any) -> None:
    assert not json_values.equal(left, right)
    assert not json_values.equal(right, left)
    assert json_values.canonical(left) != json_values.canonical(right)


def test_equal__of_deep_data_needs_no_recursion() -> None:
    def deep(leaf: int) -> Any:
        data: Any = leaf
        for _ in range(50_000):
            data = [data]
        return data

    assert json_values.equal(deep(1), deep(1))
    assert not json_values.equal(deep(1), deep(2))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a", 1),
        ("items.0.name", "bolt"),
        ("items[0].name", "bolt"),
        ("items[1]", None),
        ("rows[0][1]", 2),
        ("map.0", "zero"),
        ("a b.c-d", 3),
    ],
)
def test_path__leads_to_values(path: str, value: Any) -> None:
    data = {
        "a": 1,
        "items": [{"name": "bolt"}, None],
        "rows": [[1, 2]],
        "map": {"0": "zero"},
        "a b": {"c-d": 3},
    }
    assert json_values.look_up(data, json_values.read_path(path)) == value


@pytest.mark.parametrize(
    "path", ["b", "items.2", "items.-1", "items[0].name.x", "items.name", "a.0", "items.²"]
)
def test_path__leads_nowhere(path: str) -> None:
    data = {"a": 1, "items": [{"name": "bolt"}, 2]}
    assert json_values.look_up(data, json_values.read_path(path)) is json_values.MISSING


@pytest.mark.parametrize(
    "path", ["", ".", "a.", ".a", "a..b", "a[x]", "a[", "a]", "a[0", "a[-1]", "a.[0]", "a[0]b"]
)
def test_path__is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a valid path; write names and positions"):
        json_values.read_path(path)


def test_shown__is_short_and_fits_in_a_file() -> None:
    assert json_values.describe_json({"a": [1, None, "ä"]}) == '{"a": [1, null, "ä"]}'
    assert json_values.describe_json("a\nb") == '"a b"'
    assert json_values.describe_json("\ud800") == '"?"'
    assert len(json_values.describe_json(list(range(100)))) == 80


@given(json_data)
def test_parse_json__reads_what_json_writes(data: Any) -> None:
    text = json.dumps(data)
    if "Infinity" not in text:
        assert json_values.equal(json_values.parse_json(text), data)
        assert json_values.equal(json_values.parse_json(text.encode("utf-8-sig")), data)


@pytest.mark.parametrize(
    "text", ["", "{", "nope", "NaN", "[-Infinity]", '{"a": 1} x', b"\xff\xfe{", b'"\xe4"']
)
def test_parse_json__refuses_what_is_not_json(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the sentence is that of the decoder
        json_values.parse_json(text)


def test_parse_json__is_bounded_in_depth() -> None:
    limit = json_values.MAX_DEPTH
    assert json_values.parse_json("[" * limit + "]" * limit)
    brackets = json.dumps("[" * 10_000)
    assert json_values.parse_json(f"[{brackets}]") == ["[" * 10_000]
    assert len(json_values.parse_json("[" + "[{}]," * 1_000 + "1]")) == 1_001
    for text in ("[" * (limit + 1) + "]" * (limit + 1), '{"a":' * 1_000_000, '["\\"' + "[" * 9_999):
        with pytest.raises(ValueError):  # noqa: PT011 - too deep, or not JSON at all
            json_values.parse_json(text)
    with pytest.raises(ValueError, match="nested more than 200 levels deep"):
        json_values.parse_json("[" * 100_000)


@pytest.mark.parametrize(
    ("value", "counted"),
    [(0, 0), (7, 7), (-1, None), (True, None), (1.0, None), ("7", None), (None, None)],
)
def test_count__a_whole_number_or_unknown(value: Any, counted: int | None) -> None:
    assert json_values.as_count(value) == counted


def test_members__of_an_object_alone() -> None:
    assert (
        json_values.as_object({"a": 1}),
        json_values.as_object([1]),
        json_values.as_object(None),
    ) == (
        {"a": 1},
        {},
        {},
    )
