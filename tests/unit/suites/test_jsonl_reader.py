"""Rows of JSONL: strict, with the line of the row."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.suites.diagnostics import Unreadable
from agentevals_action.suites.jsonl_reader import read_row

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
    ("text", "message"),
    [
        ('{"a": NaN}', "x.jsonl:7:1: `NaN` is not JSON; write a finite number, null or a text"),
        (
            '{"a": -Infinity}',
            "x.jsonl:7:1: `-Infinity` is not JSON; write a finite number, null or a text",
        ),
        (
            '{"a": 1e999}',
            "x.jsonl:7:1: '1e999' is too large for a number; put it in quotes if it is a text",
        ),
        (
            '{"a": ' + "1" * 5_000 + "}",
            "x.jsonl:7:1: a number has too many digits; put it in quotes if it is a text",
        ),
        ('{"a": 1, "a": 2}', "x.jsonl:7:1: the key 'a' is repeated; keep one of them"),
        (
            '{"a": "\\ud800"}',
            "x.jsonl:7:1: a text contains half of a surrogate pair; write the whole character",
        ),
        ("[" * 120, "x.jsonl:7:1: this row is nested more than 100 deep; make it flatter"),
        ("[" * 100_000, "x.jsonl:7:1: this row is nested more than 100 deep; make it flatter"),
    ],
)
def test_refused__with_line_and_advice(text: str, message: str) -> None:
    assert refused(text) == [message]


@pytest.mark.parametrize(
    ("text", "column"), [('{"a": 1', 8), ('{"a": 1,}', 9), ("{'a': 1}", 2), ('{"a": 1} x', 10)]
)
def test_refused__invalid_syntax_has_a_column(text: str, column: int) -> None:
    (message,) = refused(text)

    # The words, and for a trailing comma the column, are those of the Python version.
    assert re.match(rf"x\.jsonl:7:(?:{column}|{column - 1}): this is not valid JSON: ", message)
    assert message.endswith("; correct the row; each row is one JSON object")


def test_row__brackets_in_texts_do_not_nest() -> None:
    text = json.dumps(["[" * 300, '"[' * 300])

    assert read_row(text, "x.jsonl", 1).data == json.loads(text)


def test_row__surrogate_pairs_are_characters() -> None:
    assert read_row('["\\ud83d\\ude00"]', "x.jsonl", 1).data == ["😀"]
