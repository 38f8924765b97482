"""JSON files: strict, with the positions of all parts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.json_reader import read_json

CHARACTERS = st.characters(exclude_categories=["Cs"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(CHARACTERS, max_size=40), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_file__is_read_as_it_was_written(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).replace("/", r"\/")
    assert read_json(text.encode(), "x.json").data == value


def test_parts__have_their_positions() -> None:
    text = '{\n\t"\\ud83d\\ude00": [1, {"b": "\x7f"}],\n "a": 2}'
    document = read_json(text.encode(), "x.json")
    data, positions = document.data, document.positions
    (smile,) = data.keys() - {"a"}
    found = [
        positions.value(data, smile),
        positions.value(data[smile], 0),
        positions.key(data, "a"),
        positions.value(data, "a"),
    ]
    assert [place.line for place in found] == [2, 2, 3, 3]
    assert [place.column for place in found[2:]] == [2, 7]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "1:1: this is not valid JSON: EOF while parsing a value"),
        ('{"a": NaN}', "1:7: this is not valid JSON: expected value"),
        ('["\\ud800"]', "1:9: this is not valid JSON: unexpected end of hex escape"),
        ('{"a": 1,\n "a": 2}', "2:2: the key 'a' is repeated (first on line 1)"),
        ("[1e999]", "1:2: '1e999' is not a finite number, and JSON has no other"),
        ("a: 1", "1:1: this is not valid JSON: expected value"),
    ],
)
def test_file__that_is_not_strict_json_is_an_error(text: str, error: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_json(text.encode(), "x.json")
    (found,) = caught.value.errors
    assert str(found).startswith(f"x.json:{error}")
