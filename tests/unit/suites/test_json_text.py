"""Rows of JSONL: strict, and with the places of their parts when asked for."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.suites.files.diagnostics import Unreadable
from agentevals_action.suites.files.jsonl_reader import read_row
from agentevals_action.suites.files.positions import Map

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
        read_row(text, "x.jsonl", 7, places=False)
    return [str(diagnostic) for diagnostic in caught.value.errors]


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_row__quick_and_thorough_reading_agree(
    value: object, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    assert read_row(text, "x.jsonl", 1, places=False) == value
    assert read_row(text, "x.jsonl", 1, places=True) == value


@given(st.text(max_size=40))
def test_row__any_text_is_read_or_refused(text: str) -> None:
    def outcome(places: bool) -> object:
        try:
            return read_row(text, "x.jsonl", 1, places)
        except Unreadable as error:
            return error.errors

    assert outcome(places=False) == outcome(places=True)


def test_row__places() -> None:
    data = read_row('{"a": 1, "b": [2, {"c": 3}]}', "x.jsonl", 7, places=True)

    assert isinstance(data, Map)
    assert str(data.key_location("b")) == "x.jsonl:7:10"
    assert str(data["b"].item_location(0)) == "x.jsonl:7:16"
    assert str(data["b"][1].value_location("c")) == "x.jsonl:7:25"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": NaN}', "x.jsonl:7:7: `NaN` is not JSON; write a finite number, null or a text"),
        (
            '{"a": -Infinity}',
            "x.jsonl:7:7: `-Infinity` is not JSON; write a finite number, null or a text",
        ),
        (
            '{"a": 1e999}',
            "x.jsonl:7:7: '1e999' is too large for a number; put it in quotes if it is a text",
        ),
        (
            '{"a": ' + "1" * 5_000 + "}",
            "x.jsonl:7:7: this number has too many digits; put it in quotes if it is a text",
        ),
        (
            '{"a": 1, "a": 2}',
            "x.jsonl:7:10: the key 'a' stands here a second time; keep one of them",
        ),
        (
            '{"a": "\\ud800"}',
            "x.jsonl:7:7: this text has half of a surrogate pair; write the whole character",
        ),
        (
            '{"a": 1',
            "x.jsonl:7:8: this is no valid JSON: `,` is expected here; mend the row; each row is one JSON object",
        ),
        (
            '{"a": 1,}',
            "x.jsonl:7:9: this is no valid JSON: a key in double quotes is expected here; mend the row; each row is one JSON object",
        ),
        (
            "{'a': 1}",
            "x.jsonl:7:2: this is no valid JSON: a key in double quotes is expected here; mend the row; each row is one JSON object",
        ),
        (
            '{"a": 1} x',
            "x.jsonl:7:10: something follows the JSON value; write one JSON object a row",
        ),
        ("[" * 120, "x.jsonl:7:101: this is nested more than 100 deep; make it flatter"),
        ("[" * 100_000, "x.jsonl:7:101: this is nested more than 100 deep; make it flatter"),
    ],
)
def test_refused__with_place_and_advice(text: str, said: str) -> None:
    assert refused(text) == [said]


def test_row__brackets_in_texts_do_not_nest() -> None:
    text = json.dumps(["[" * 300, '"[' * 300])

    assert read_row(text, "x.jsonl", 1, places=False) == json.loads(text)


def test_row__surrogate_pairs_are_characters() -> None:
    assert read_row('["\\ud83d\\ude00"]', "x.jsonl", 1, places=False) == ["😀"]
