"""Entries: all that is wrong at once, what checks see, what a whole entry becomes, and the data
that it is."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

import pytest
from msgspec import Meta, field

from agentevals_action.entries.entry import Aside, Entry, Schema, Seen, Written, checks
from agentevals_action.entries.reading import entry_schema, fields_of, read_entry, to_data
from agentevals_action.suites.files.validation_errors import MISSING, Refusal, Refused, dotted
from agentevals_action.system.paths import Folder

HERE = Folder(Path("/repository"), Path("/repository/evals"))


class Limit(Entry):
    """How much; a number alone is the most."""

    most: Annotated[int, Meta(ge=0, description="The most.")]
    least: Annotated[int, Meta(ge=0, description="The least.")] = 0

    #: Where it was read, in words.
    place: Annotated[str, Aside()] = ""

    @classmethod
    def long_form(cls, value: Any) -> Any:
        if value == "none":
            raise ValueError("there is always a limit; write a number")
        return {"most": value} if isinstance(value, int) else value

    @checks("least")
    @classmethod
    def _is_less(cls, least: int, seen: Seen) -> int:
        if least > seen.fields.get("most", least):
            raise ValueError("it is over `most`; write less")
        return least

    def completed(self, written: Written) -> Self:
        if self.most == self.least:
            raise ValueError("nothing lies between them; write two numbers")
        return replace(
            self, place=f"{written.folder.path.name if written.folder else '-'} {written.value}"
        )

    @classmethod
    def refined(cls, schema: Schema) -> Schema:
        return {"anyOf": [{"type": "integer"}, schema]}


class Job(Entry):
    """What is done."""

    name: Annotated[str, Meta(min_length=1, description="Its name.")]
    limit: Annotated[Limit | None, Meta(description="How often.")] = None
    words: Annotated[tuple[str, ...], Meta(description="Its words.")] = ()
    config: Annotated[dict[str, Any], Meta(description="Anything.")] = field(default_factory=dict)
    parts: Annotated[
        tuple[Any, ...], Aside(is_read=True), Meta(description="What is no data.")
    ] = ()

    @checks("words", "config")
    @classmethod
    def _first(cls, value: Any, _seen: Seen) -> Any:
        if "bad" in value:
            raise Refused(
                Refusal((list(value).index("bad"),), "bad", said="it is bad; leave it out")
            )
        return value


class UrgentJob(Job):
    """What is done first."""

    name: Annotated[str, Meta(min_length=3, description="Its longer name.")] = "now"
    hours: Annotated[float, Meta(gt=0, description="How long.")] = 1

    @checks("words")
    @classmethod
    def _second(cls, words: tuple[str, ...], _seen: Seen) -> tuple[str, ...]:
        return (*words, "soon")


def refusals(model: type[Entry], value: Any) -> list[tuple[tuple[str | int, ...], Any, str]]:
    with pytest.raises(Refused) as caught:
        read_entry(model, value, HERE)
    return [(one.steps, one.value, str(one)) for one in caught.value.refusals]


def test_read_entry__all_that_is_wrong_at_once_in_the_order_of_the_fields() -> None:
    assert refusals(
        Job, {"words": ["a", 1, None], "limit": {"least": "x"}, "unknown": 1, "config": []}
    ) == [
        (("name",), MISSING, "`name`: it is missing"),
        (("limit", "most"), MISSING, "`limit.most`: it is missing"),
        (("limit", "least"), "x", "`limit.least`: write a whole number"),
        (("words", 1), 1, "`words[1]`: write a text"),
        (("words", 2), None, "`words[2]`: write a text"),
        (("config",), [], "`config`: write an object"),
    ]


@pytest.mark.parametrize("value", [None, True, 0.5, "a", [], ["name"]])
def test_read_entry__what_is_no_object(value: Any) -> None:
    assert refusals(Job, value) == [((), value, "write an object")]


def test_read_entry__unknown_fields_are_not_looked_at() -> None:
    assert read_entry(Job, {"name": "a", "nmae": 1, "Words": {}}) == Job(name="a")


def test_read_entry__what_is_refused_is_said_without_the_value() -> None:
    with pytest.raises(Refused) as caught:
        read_entry(Job, {"name": ["sk-secret"], "words": {"sk-secret": 1}, "config": "sk-secret"})
    assert "sk-secret" not in f"{caught.value} {caught.value!r}"


def test_checks__see_what_was_declared_before_and_is_right_defaults_too() -> None:
    assert refusals(Limit, {"most": 1, "least": 2}) == [
        (("least",), 2, "`least`: it is over `most`; write less")
    ]
    assert refusals(Limit, {"most": "many", "least": 2}) == [
        (("most",), "many", "`most`: write a whole number")
    ]
    seen: list[tuple[dict[str, Any], Folder | None]] = []

    class Looking(Job):
        last: int = 1

        @checks("last")
        @classmethod
        def _look(cls, value: int, what: Seen) -> int:
            seen.append((dict(what.fields), what.folder))
            return value

    read_entry(Looking, {"name": "a", "last": 2, "limit": 3}, HERE)
    read_entry(Looking, {"name": "a"}, HERE)
    expected = {
        "name": "a",
        "limit": Limit(most=3, place="evals 3"),
        "words": (),
        "config": {},
        "parts": (),
    }
    assert seen == [(expected, HERE)]  # a field that is not given is not checked


def test_checks__those_of_the_base_run_first_and_may_refuse_what_lies_inside() -> None:
    assert read_entry(UrgentJob, {"words": ["a"]}).words == ("a", "soon")
    assert refusals(UrgentJob, {"words": ["a", "bad"]}) == [
        (("words", 1), "bad", "`words[1]`: it is bad; leave it out")
    ]


def test_checks__of_what_no_file_holds_are_no_declaration() -> None:
    class Misspelled(Limit):
        @checks("laest")
        @classmethod
        def _look(cls, value: int, _seen: Seen) -> int:
            return value

    class Unread(Limit):
        @checks("place")
        @classmethod
        def _look(cls, value: str, _seen: Seen) -> str:
            return value

    for model, name in ((Misspelled, "laest"), (Unread, "place")):
        with pytest.raises(TypeError, match=f"{model.__name__} checks `{name}`"):
            read_entry(model, {"most": 1})


def test_checks__of_another_kind_of_method_are_no_declaration() -> None:
    with pytest.raises(TypeError, match="no class method"):
        checks("most")(staticmethod(abs))


def test_fields__named_like_a_method_are_no_declaration() -> None:
    class Hiding(Entry):
        completed: bool = False  # type: ignore[assignment]  # what mypy tells, a run tells too

    with pytest.raises(TypeError, match="a field `completed`"):
        read_entry(Hiding, {})


def test_fields__of_a_type_that_no_file_can_hold_are_named() -> None:
    class Listing(Entry):
        words: list[str]

    with pytest.raises(TypeError, match=r"Listing\.words: no file can hold a list"):
        read_entry(Listing, {"words": []})


def test_fields__of_a_subclass_keep_the_order_of_the_base() -> None:
    assert list(fields_of(UrgentJob)) == ["name", "limit", "words", "config", "parts", "hours"]
    assert refusals(UrgentJob, {"name": "at"}) == [
        (("name",), "at", "`name`: write a text of 3 characters or more")
    ]
    assert read_entry(UrgentJob, {}).name == "now"


def test_completed__sees_what_is_written_and_its_folder() -> None:
    assert read_entry(Limit, 3, HERE).place == "evals 3"
    assert read_entry(Limit, {"most": 3}).place == "- {'most': 3}"
    assert refusals(Limit, 0) == [((), 0, "nothing lies between them; write two numbers")]
    assert refusals(Job, {"name": "a", "limit": {"most": 2, "least": 2}})[0][0] == ("limit",)


def test_completed__not_while_a_field_is_wrong() -> None:
    assert refusals(Limit, {"most": 0, "least": -1}) == [
        (("least",), -1, "`least`: write a number that is 0 or more")
    ]


def test_long_form__a_shorter_form_is_read_and_one_that_is_refused_is_told_as_written() -> None:
    assert read_entry(Job, {"name": "a", "limit": 4}).limit == Limit(most=4, place="- 4")
    assert refusals(Job, {"name": "a", "limit": "none"}) == [
        (("limit",), "none", "`limit`: there is always a limit; write a number")
    ]
    assert refusals(Job, {"name": "a", "limit": -1}) == [
        (("limit", "most"), -1, "`limit.most`: write a number that is 0 or more")
    ]


def test_aside__no_file_sets_it_and_it_is_no_data() -> None:
    assert "place" not in fields_of(Limit)
    assert read_entry(Limit, {"most": 1, "place": "elsewhere"}, HERE).place.startswith("evals")
    assert to_data(read_entry(Limit, 1, HERE)) == {"most": 1, "least": 0}
    job = read_entry(Job, {"name": "a", "parts": [1, "b"]})
    assert (job.parts, to_data(job)) == (
        (1, "b"),
        {"name": "a", "limit": None, "words": [], "config": {}},
    )


def test_to_data__in_the_order_of_the_fields_as_a_file_could_hold_it() -> None:
    data = {
        "config": {"b": (1, {"c": None}), "a": 1},
        "words": ["x"],
        "limit": {"least": 1, "most": 2},
        "name": "a",
    }
    assert repr(to_data(read_entry(Job, data))) == (
        "{'name': 'a', 'limit': {'most': 2, 'least': 1}, 'words': ['x'], 'config': {'b': [1, {'c': None}], 'a': 1}}"
    )


def test_to_data__without_defaults_of_entries_inside_neither() -> None:
    job = read_entry(
        Job, {"name": "a", "limit": {"most": 2, "least": 0}, "words": [], "config": {"k": None}}
    )
    assert to_data(job, defaults=False) == {
        "name": "a",
        "limit": {"most": 2},
        "config": {"k": None},
    }
    assert to_data(UrgentJob(), defaults=False) == {}


def test_entry__is_frozen_and_its_defaults_are_its_own() -> None:
    one, other = read_entry(Job, {"name": "a"}), read_entry(Job, {"name": "a"})
    with pytest.raises(AttributeError):
        one.name = "b"
    one.config["a"] = 1
    assert other.config == {}


def test_entry_schema__properties_defaults_and_definitions() -> None:
    definitions: dict[str, Any] = {}
    assert entry_schema(Job, definitions) == {
        "type": "object",
        "description": "What is done.",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "Its name."},
            "limit": {
                "anyOf": [{"$ref": "#/definitions/Limit"}, {"type": "null"}],
                "description": "How often.",
            },
            "words": {
                "type": "array",
                "items": {"type": "string"},
                "default": [],
                "description": "Its words.",
            },
            "config": {
                "type": "object",
                "additionalProperties": True,
                "default": {},
                "description": "Anything.",
            },
            "parts": {
                "type": "array",
                "items": {},
                "default": [],
                "description": "What is no data.",
            },
        },
        "required": ["name"],
    }
    assert definitions["Limit"]["anyOf"][1]["properties"]["least"] == {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "The least.",
    }
    assert "place" not in definitions["Limit"]["anyOf"][1]["properties"]


def test_dotted__is_the_way_as_it_is_written() -> None:
    assert dotted(("tests", 0, "id")) == "tests[0].id"
    assert dotted((2, "a")) == "[2].a"
    assert dotted(()) == ""
