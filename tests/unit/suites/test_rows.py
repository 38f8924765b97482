"""Rows of JSONL: strict, with the line of the row."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.json_reader import read_row

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


def refused(text: str) -> list[str]:
    with pytest.raises(Unreadable) as caught:
        read_row(text, "x.jsonl", 7)
    return [str(error) for error in caught.value.errors]


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_row__is_read_as_it_was_written(
    value: object, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    assert read_row(text, "x.jsonl", 1).data == value


@given(st.text(max_size=40))
def test_row__any_text_is_read_or_refused(text: str) -> None:
    try:
        read_row(text, "x.jsonl", 1)
    except Unreadable as error:
        assert len(error.errors) == 1  # noqa: PT017  # any outcome is allowed


def test_row__everything_has_the_position_of_the_row() -> None:
    document = read_row('{"a": 1, "b": [2, {"c": 3}]}', "x.jsonl", 7)
    data, positions = document.data, document.positions

    assert {
        str(location)
        for location in (
            document.location,
            positions.key(data, "b"),
            positions.value(data["b"], 0),
            positions.value(data["b"][1], "c"),
        )
    } == {"x.jsonl:7:1"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"a": NaN}', "7:7: this is not valid JSON: expected value"),
        ('{"a": -Infinity}', "7:8: this is not valid JSON: invalid number"),
        ('{"a": 1e999}', "7:1: '1e999' is too large for a number"),
        ('{"a": ' + "1" * 5_000 + "}", "7:4308: this is not valid JSON: number out of range"),
        ('{"a": 1, "a": 2}', "7:1: the key 'a' is repeated"),
        ('{"a": "\\ud800"}', "7:14: this is not valid JSON: unexpected end of hex escape"),
        ("[" * 100_000, "7:202: this is not valid JSON: recursion limit exceeded"),
        ('{"a": 1', "7:7: this is not valid JSON: EOF while parsing an object"),
        ("{'a': 1}", "7:2: this is not valid JSON: key must be a string"),
    ],
)
def test_row__that_is_not_strict_json_is_an_error(text: str, error: str) -> None:
    assert refused(text) == [f"x.jsonl:{error}; correct the row; each row is one JSON object"]


def test_row__surrogate_pairs_are_characters() -> None:
    assert read_row('["\\ud83d\\ude00"]', "x.jsonl", 1).data == ["😀"]
