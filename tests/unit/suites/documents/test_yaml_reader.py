"""YAML into data: the 1.2 core schema, positions, and everything that is refused."""

from typing import Any

import pytest

from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.yaml_reader import read_yaml


def read(text: str | bytes) -> Any:
    return read_yaml(text if isinstance(text, bytes) else text.encode(), "x.yaml").data


def refused(text: str | bytes) -> list[str]:
    with pytest.raises(Unreadable) as caught:
        read(text)
    return [str(diagnostic) for diagnostic in caught.value.errors]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("2024-01-01", "2024-01-01"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("true", True),
        ("False", False),
        ("tRUE", "tRUE"),
        ("null", None),
        ("~", None),
        ("12", 12),
        ("-3", -3),
        ("0o17", 15),
        ("0x1F", 31),
        ("010", 10),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("+2.", 2.0),
        ("1.2.3", "1.2.3"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("! 12", "12"),
        ("|\n  12\n", "12\n"),
        ("nan", "nan"),
    ],
)
def test_scalar__core_schema(text: str, value: object) -> None:
    data = read(f"a: {text}")

    assert data == {"a": value}
    assert type(data["a"]) is type(value)


def test_keys__are_texts() -> None:
    assert read("{0: a, true: b, 1.5: c, yes: d}") == {
        "0": "a",
        "true": "b",
        "1.5": "c",
        "yes": "d",
    }


def test_positions__of_keys_values_and_items() -> None:
    document = read_yaml(b"a: 1\nb:\n  - x\n  - {c: d}\n", "x.yaml")
    data, positions = document.data, document.positions

    assert str(positions.key(data, "b")) == "x.yaml:2:1"
    assert str(positions.value(data, "a")) == "x.yaml:1:4"
    assert str(positions.value(data["b"], 0)) == "x.yaml:3:5"
    assert str(positions.of(data["b"][1])) == "x.yaml:4:5"
    assert str(positions.value(data["b"][1], "c")) == "x.yaml:4:9"
    assert str(positions.locate(data, ("b", 1, "c"))) == "x.yaml:4:9"


def test_positions__of_a_changed_copy_are_those_of_the_original() -> None:
    document = read_yaml(b"a: 1\nb: 2\n", "x.yaml")
    copy = {**document.data, "b": [3]}
    document.positions.copy(document.data, copy)

    assert str(document.positions.key(copy, "b")) == "x.yaml:2:1"
    # What is new begins where the value that it replaces begins.
    assert str(document.positions.locate(copy, ("b", 0))) == "x.yaml:2:4"


def test_aliases__are_the_same_data_at_the_position_where_it_is_written() -> None:
    document = read_yaml(b"a: &x {b: [1]}\nc: *x\nd: {<<: *x, e: 2}\n", "x.yaml")
    data, positions = document.data, document.positions

    assert data == {"a": {"b": [1]}, "c": {"b": [1]}, "d": {"b": [1], "e": 2}}
    assert str(positions.key(data["d"], "b")) == "x.yaml:1:8"
    assert str(positions.value(data, "c")) == "x.yaml:2:4"


def test_byte_order_mark__passed_over() -> None:
    assert read(b"\xef\xbb\xbfa: 1") == {"a": 1}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "a: 1\nb: 2\na: 3\n",
            "x.yaml:3:1: the key 'a' is repeated (first on line 1); keep one of them",
        ),
        (
            "a: .inf",
            "x.yaml:1:4: '.inf' is not a finite number, and JSON has no other; put it in quotes if it is a text",
        ),
        (
            "a: 1e999",
            "x.yaml:1:4: '1e999' is not a finite number, and JSON has no other; put it in quotes if it is a text",
        ),
        (
            "a: &x 1\n<<: *x",
            "x.yaml:2:5: `<<` merges the number 1; write an alias of an object, or put `<<` in quotes",
        ),
        ("~: 1", "x.yaml:1:1: this key is empty; write the name of a field"),
        (
            "? [a]\n: 1",
            "x.yaml:1:3: a key is a list, an object or an alias here; write the key as a text",
        ),
        ("a: *b", "x.yaml:1:4: there is no anchor `&b` above; define it before it is used"),
        ("a: &b [*b]", "x.yaml:1:8: `*b` is inside the value that it refers to; write it out"),
        (
            "a: !!python/name:os.system x",
            "x.yaml:1:4: the tag 'tag:yaml.org,2002:python/name:os.system' is not supported; remove it",
        ),
        ("a: !mine {}", "x.yaml:1:4: the tag '!mine' is not supported; remove it"),
        (
            "a: 1\n---\nb: 2\n",
            "x.yaml:2:1: a second document begins here; keep one document in a file",
        ),
        (b"a: 1\nb: \xc3(\n", "x.yaml:2:4: this is not UTF-8; save the file as UTF-8"),
        (
            "a: 1\nb: \x07",
            "x.yaml:2:4: the character '\\x07' is not allowed in YAML; remove it, or escape it in double quotes",
        ),
        ("[" * 200, "x.yaml:1:101: this is nested more than 100 deep; make it flatter"),
        (
            "a: 0x" + "f" * 3_500,
            "x.yaml:1:4: this number has more than 3,000 digits; put it in quotes if it is a text",
        ),
        (
            "[" + "1," * 200_001 + "]",
            "x.yaml:1:400002: this file contains more than 200,000 values; put the tests into a JSONL file, which may be of any length",
        ),
    ],
)
def test_refused__with_location_and_advice(text: str | bytes, error: str) -> None:
    assert refused(text) == [error]


def test_refused__all_at_once() -> None:
    assert len(refused("a: 1\na: 2\nb: .nan\n~: 3\n")) == 3


def test_refused__syntax_has_a_location() -> None:
    (error,) = refused("a:\n  - b\n c: d\n")

    assert error.startswith("x.yaml:3:2: this is not valid YAML: ")
    assert error.endswith("; correct the indentation (spaces, no tabs), or put the text in quotes")


def test_refused__open_quotes_are_reported_where_they_begin() -> None:
    assert refused('a: "b\nc: d\ne: [f]\n') == [
        "x.yaml:1:4: this is not valid YAML: the quotes that begin here are not closed; close them"
    ]


def test_expansion__over_ten_megabytes_is_refused_at_once() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))

    (error,) = refused(bomb)  # its 3e10 values would never be read

    assert error.endswith(
        "the aliases of this file expand to more than 10 MB; write out what is needed"
    )


def test_expansion__of_depth_is_refused() -> None:
    chain = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200))

    (error,) = refused(chain)

    assert "nested more than 100 deep" in error


def test_expansion__large_file_without_aliases_is_fine() -> None:
    text = "x" * 11_000_000

    assert read(f"a: {text}") == {"a": text}
