"""Each type of field: what it takes, as what, and what it tells of anything else."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from agentevals_action.entries.entry import Before, Checked, Entry, Shown
from agentevals_action.entries.reading import reader_of
from agentevals_action.suites.files.validation_errors import Refused


class Point(Entry):
    """Two numbers."""

    x: float
    y: float = 0.0


class Place(Entry):
    """A point by its name."""

    name: str
    point: Point | None = None


def read(annotation: Any, value: Any) -> Any:
    return reader_of(annotation).read(value, None)


def refused(annotation: Any, value: Any) -> list[str]:
    with pytest.raises(Refused) as caught:
        read(annotation, value)
    return [str(refusal) for refusal in caught.value.refusals]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, ""),
        (str, "\ud800"),
        (Annotated[str, Meta(min_length=1, max_length=2)], "é€"),
        (Annotated[str, Meta(pattern=r"\S")], " a"),
        (bool, False),
        (int, 10**400),
        (Annotated[int, Meta(ge=1, le=3)], 3),
        (float, -1.5),
        (Annotated[float, Meta(gt=0, lt=1)], 0.5),
        (Any, {"a": [None]}),
        (Literal["a", "b"], "b"),
        (dict[str, Any], {"a": 1, "": {}}),
        (bool | float, True),
        (str | None, None),
    ],
)
def test_reader__takes_as_it_is(annotation: Any, value: Any) -> None:
    made = read(annotation, value)
    assert (made, type(made)) == (value, type(value))


def test_reader__makes_floats_of_whole_numbers_and_tuples_of_lists() -> None:
    assert str(read(float, 1)) == "1.0"
    assert str(read(float, -0.0)) == "-0.0"
    assert str(read(bool | float | None, 1)) == "1.0"
    assert read(tuple[str, ...], ["a", "b"]) == ("a", "b")
    assert read(tuple[str, ...], ("a",)) == ("a",)
    assert read(dict[str, tuple[float, ...]], {"a": [1]}) == {"a": (1.0,)}


@pytest.mark.parametrize(
    ("annotation", "values", "words"),
    [
        (str, [None, True, 1, 0.5, [], {}, ["a"], b"a"], "write a text"),
        (Annotated[str, Meta(min_length=1)], [""], "write a text that is not empty"),
        (Annotated[str, Meta(min_length=2)], ["a"], "write a text of 2 characters or more"),
        (Annotated[str, Meta(max_length=2)], ["abc"], "write a text of at most 2 characters"),
        (Annotated[str, Meta(pattern="^a")], ["ba"], "write a text that matches ^a"),
        (Annotated[str, Meta(min_length=1)], ["a\udcff"], "write a text in UTF-8"),
        (bool, [None, 0, 1, "true", []], "write `true` or `false`"),
        (int, [None, True, 1.0, 1.5, "1", [1]], "write a whole number"),
        (float, [None, True, "1", [1]], "write a number"),
        (float, [float("inf"), float("nan"), 10**400], "write a finite number"),
        (Annotated[int, Meta(ge=1)], [0, -1], "write a number that is 1 or more"),
        (Annotated[float, Meta(gt=0)], [0, 0.0, -0.0], "write a number over 0"),
        (
            Annotated[float, Meta(le=3_600_000)],
            [3_600_001],
            "write a number that is 3600000 or less",
        ),
        (Annotated[float, Meta(lt=0.1)], [0.1], "write a number under 0.1"),
        (Literal["a"], [None, "b", 1, ["a"]], "write `a`"),
        (Literal["a", "b", "c"], [None, "", "A", True, ["a"], {"a": 1}], "write `a`, `b` or `c`"),
        (tuple[str, ...], [None, "a", 1, {}], "write a list"),
        (Annotated[tuple[str, ...], Meta(min_length=1)], [[]], "write at least one item"),
        (Annotated[tuple[str, ...], Meta(min_length=2)], [["a"]], "write 2 items or more"),
        (Annotated[tuple[str, ...], Meta(max_length=1)], [["a", "b"]], "write at most 1 items"),
        (dict[str, Any], [None, "a", [], 1], "write an object"),
        (Point, [None, "a", [], 1], "write an object"),
        (
            bool | Annotated[float, Meta(gt=0)] | None,
            [0],
            "write `true` or `false` or a number over 0",
        ),
        (str | tuple[str, ...] | None, [1, {}], "write a text or a list"),
    ],
)
def test_reader__refuses_with_what_could_stand_there(
    annotation: Any, values: list[Any], words: str
) -> None:
    assert [refused(annotation, value) for value in values] == [[words]] * len(values)


def test_list__every_item_is_told_by_its_position() -> None:
    assert refused(tuple[str, ...], ["a", 1, "b", None]) == [
        "`[1]`: write a text",
        "`[3]`: write a text",
    ]


def test_object__names_and_values_are_told() -> None:
    names = dict[Annotated[str, Meta(min_length=1)], Annotated[int, Meta(ge=1)]]
    assert refused(names, {"a": 0, "": 1, "b": 2}) == [
        "`a`: write a number that is 1 or more",
        "``: write a text that is not empty",
    ]


def test_choice__where_a_type_got_further_the_others_are_not_told() -> None:
    assert refused(str | tuple[str, ...], ["a", 1]) == ["`[1]`: write a text"]
    assert refused(Point | None, {"y": "a"}) == ["`x`: it is missing", "`y`: write a number"]
    assert refused(Literal["any"] | dict[str, float], {"a": "b"}) == ["`a`: write a number"]


def test_choice__what_is_said_is_told_once() -> None:
    def check(text: str) -> str:
        raise ValueError("it is amiss; mend it")

    assert refused(Annotated[str, Checked(check)] | None, "a") == ["it is amiss; mend it"]
    assert refused(Annotated[str | tuple[str, ...], Checked(check)] | None, ["a"]) == [
        "it is amiss; mend it"
    ]


def test_before__makes_what_the_type_takes_and_the_written_value_is_told() -> None:
    trimmed = Annotated[str, Before(str.strip), Meta(min_length=1)]
    assert read(trimmed, " a ") == "a"
    with pytest.raises(Refused) as caught:
        read(trimmed, "  ")
    assert [refusal.value for refusal in caught.value.refusals] == ["  "]


def test_before_and_checked__run_outside_in_and_then_inside_out() -> None:
    ran: list[str] = []

    def note(word: str) -> Any:
        def run(value: Any) -> Any:
            ran.append(word)
            return value

        return run

    inner = Annotated[str, Before(note("inner before")), Checked(note("inner after"))]
    read(Annotated[inner, Before(note("outer before")), Checked(note("outer after"))], "a")
    assert ran == ["outer before", "inner before", "inner after", "outer after"]


def test_checked__another_value_takes_the_place_and_another_error_is_not_hidden() -> None:
    assert read(Annotated[str, Checked(str.upper)], "a") == "A"

    def broken(value: str) -> str:
        raise KeyError(value)

    with pytest.raises(KeyError):
        read(Annotated[str, Checked(broken)], "a")


def test_entry_inside__is_read_and_one_that_was_made_stays() -> None:
    point = Point(x=1.0)
    assert read(Place, {"name": "a", "point": {"x": 1}}) == Place(name="a", point=point)
    assert read(Place, {"name": "a", "point": point}).point is point
    assert refused(Place, {"point": {"x": [], "y": 1}}) == [
        "`name`: it is missing",
        "`point.x`: write a number",
    ]


def test_schema__says_what_is_taken() -> None:
    definitions: dict[str, Any] = {}
    annotated = (
        Annotated[str, Meta(min_length=1), Meta(extra_json_schema={"format": "date"})]
        | tuple[Point, ...]
        | None
    )
    assert reader_of(annotated).schema(definitions) == {
        "anyOf": [
            {"type": "string", "minLength": 1, "format": "date"},
            {"type": "array", "items": {"$ref": "#/definitions/Point"}},
            {"type": "null"},
        ]
    }
    assert definitions["Point"]["required"] == ["x"]
    assert reader_of(Annotated[int, Shown({"const": 1})]).schema({}) == {"const": 1}
    assert reader_of(Annotated[float, Meta(gt=0, le=1)]).schema({}) == {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
    }
    names = reader_of(dict[Annotated[str, Meta(min_length=1)], Any]).schema({})
    assert names == {
        "type": "object",
        "additionalProperties": True,
        "propertyNames": {"minLength": 1},
    }


@pytest.mark.parametrize(
    "annotation",
    [list[str], list, dict, tuple, tuple[int, str], tuple[()], set[str], bytes, object, Path],
)
def test_type__that_no_file_can_hold(annotation: Any) -> None:
    with pytest.raises(TypeError, match="no file can hold"):
        reader_of(annotation)


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[str | None, Meta(min_length=1)],
        Annotated[dict[str, Any], Meta(min_length=1)],
        Annotated[int | float, Meta(gt=0)],
        Annotated[int, Meta(multiple_of=2)],
        Annotated[bool, Meta(ge=1)],
        Annotated[Any, Meta(min_length=1)],
    ],
)
def test_bounds__that_would_not_be_looked_at_are_no_declaration(annotation: Any) -> None:
    with pytest.raises(TypeError, match="takes no"):
        reader_of(annotation)


@pytest.mark.parametrize("annotation", [Literal[1], Literal["a", True]])
def test_choice_of_words__of_anything_else_is_no_declaration(annotation: Any) -> None:
    with pytest.raises(TypeError, match="one of words"):
        reader_of(annotation)
