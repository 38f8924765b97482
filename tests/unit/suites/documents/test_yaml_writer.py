"""What is written can be read again as the same data, and is readable in a diff."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.suites.documents.yaml_reader import read_yaml
from agentevals_action.suites.documents.yaml_writer import write_yaml

#: Texts that YAML 1.1 and 1.2 read differently, or that a careless writer breaks.
TEXTS = (
    *("", "yes", "1e3", "0o17", "0x1F", "1_000", ".inf", "null", "~", "- a", "a: b", "# c", "<<"),
    *(
        "a\nb\n",
        "a\n\n",
        "a \nb",
        "\na",
        " a\n b",
        "a\r\nb",
        "a\x85b\n",
        "a\u2028b\n",
        "\t\n",
        "\x00",
    ),
    *(
        "a\tb\n",
        "|",
        "%a",
        "*a",
        "&a",
        "!a",
        "@a",
        "'",
        '"',
        "\\",
        "\ufeff",
        "ü😀\n",
        "---\n",
        "...",
    ),
)
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(TEXTS)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(TEXTS) | st.text("ab\n: "), inner)
    ),
    max_leaves=20,
)


def written(data: Any) -> Any:
    return read_yaml(write_yaml(data).encode(), "test").data


@given(DATA)
def test_write__the_reader_gets_the_same_data(data: Any) -> None:
    assert json.dumps(written({"data": data})) == json.dumps({"data": data})


@pytest.mark.parametrize("text", TEXTS)
def test_write__each_difficult_text(text: str) -> None:
    data = {"a": [text, {text: text}]}
    assert json.dumps(written(data)) == json.dumps(data)


def test_write__a_long_text_is_a_block_with_a_line_for_each_line() -> None:
    assert write_yaml({"b": "Dear Ada,\n\nyours: Acme\n", "a": [1, "x" * 200]}) == (
        "b: |\n  Dear Ada,\n\n  yours: Acme\na:\n- 1\n- " + "x" * 200 + "\n"
    )
