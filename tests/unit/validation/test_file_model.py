from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from agentevals_action.validation.field_errors import describe, field_errors
from agentevals_action.validation.file_model import (
    FileModel,
    ListOf,
    NonEmpty,
    errors_at,
)


def _not_empty(value: Any) -> Any:
    if value is None:
        raise ValueError("it is empty; leave it out")
    return value


class Inner(FileModel):
    """An inner object."""

    low: Annotated[int, Field(description="Lower bound.")]
    word: Literal["a", "b"] = "a"

    @model_validator(mode="before")
    @classmethod
    def _long_form(cls, value: Any) -> Any:
        return {"low": value} if isinstance(value, int) else value


class Outer(FileModel):
    """An outer object."""

    name: NonEmpty
    share: Annotated[
        bool | Annotated[float, Field(gt=0, le=1)] | None, BeforeValidator(_not_empty)
    ] = None
    words: NonEmpty | Annotated[ListOf[NonEmpty], Field(min_length=1)] = "a"
    inner: ListOf[Inner] = ()
    numbers: Annotated[dict[str, float], Field(default_factory=dict)]
    _length: int = PrivateAttr(0)

    @field_validator("numbers")
    @classmethod
    def _are_known(cls, numbers: dict[str, float], info: ValidationInfo) -> dict[str, float]:
        if unknown := [key for key in numbers if key != info.data.get("name")]:
            raise errors_at({(key,): f"there is no {key!r}; remove it" for key in unknown})
        return numbers

    def model_post_init(self, _context: Any) -> None:
        self._length = len(self.name)


def errors(data: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(data)
    return [str(error) for error in field_errors(caught.value, data)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, "`name`: it is missing"),
        ([], "write an object"),
        ({"name": ""}, "`name`: write a text that is not empty"),
        ({"name": "\ud800"}, "`name`: write a text in UTF-8"),
        ({"name": "a", "share": 0}, "`share`: write `true` or `false` or a number greater than 0"),
        ({"name": "a", "share": "x"}, "`share`: write `true` or `false` or a number"),
        ({"name": "a", "share": 10**400}, "`share`: write `true` or `false` or a finite number"),
        ({"name": "a", "share": None}, "`share`: it is empty; leave it out"),
        ({"name": "a", "words": 1}, "`words`: write a text or a list"),
        ({"name": "a", "words": []}, "`words`: write a text or at least one item"),
        ({"name": "a", "words": [""]}, "`words[0]`: write a text that is not empty"),
        ({"name": "a", "inner": [{}]}, "`inner[0].low`: it is missing"),
        ({"name": "a", "inner": [True]}, "`inner[0]`: write a whole number"),
        ({"name": "a", "inner": [{"low": 1, "word": 3}]}, "`inner[0].word`: write `a` or `b`"),
        ({"name": "a", "numbers": {"b": 1}}, "`numbers.b`: there is no 'b'; remove it"),
        ({"name": "a", "numbers": {1: 1}}, "`numbers[1]`: write a text"),
        ({"name": "a", "numbers": {"a": float("nan")}}, "`numbers.a`: write a finite number"),
    ],
)
def test_field_errors__one_sentence_per_value(data: Any, expected: str) -> None:
    assert errors(data) == [expected]


def test_field_errors__all_at_once() -> None:
    data = {"share": 2, "inner": [{"low": "1"}, 2, {"word": "c"}]}
    assert errors(data) == [
        "`name`: it is missing",
        "`share`: write `true` or `false` or a number that is 1 or less",
        "`inner[0].low`: write a whole number",
        "`inner[2].low`: it is missing",
        "`inner[2].word`: write `a` or `b`",
    ]


def test_describe__without_values() -> None:
    data = {"name": ["secret"], "words": 3}
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(data)
    assert describe(caught.value, data) == "`name`: write a text; `words`: write a text or a list"
    assert "secret" not in str(caught.value)


def test_values__are_not_converted() -> None:
    outer = Outer.model_validate({"name": "ab", "share": 1, "words": ["a"], "inner": [3]})
    assert (outer.share, outer.words, outer.inner[0].low, outer._length) == (1.0, ("a",), 3, 2)
    assert outer.model_dump(exclude_defaults=True) == {
        "name": "ab",
        "share": 1.0,
        "words": ("a",),
        "inner": ({"low": 3},),
    }
