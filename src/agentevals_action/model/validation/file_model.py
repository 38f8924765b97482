"""The base class of everything that is read from a suite, targets or configuration file."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

Item = TypeVar("Item")
#: Names and indices that lead from an object to a value in it.
Steps = tuple[str | int, ...]
#: A list in a file, which is frozen in the model.
ListOf = Annotated[tuple[Item, ...], Strict(False)]
NonEmpty = Annotated[str, Field(min_length=1)]
#: The weight of a score in a mean. Weights near the largest float would add up to infinity, and
#: the mean would not be a number.
Weight = Annotated[float, Field(ge=0, le=1_000_000)]


class FileModel(BaseModel):
    """Data of a file: values are never converted, and unknown fields are ignored (the loader
    reports them).

    The validation context is the `Folder` of the declaring file, or None. Validators raise
    `ValueError("problem; advice")`, `expected("a text")`, or `errors_at` for values inside the one
    they check."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="ignore",
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        defer_build=True,
    )


def expected(words: str) -> PydanticCustomError:
    """The error that a validator raises for a value of another type; `words` describe what to
    write instead."""
    return PydanticCustomError("expected", "write {words}", {"words": words})


def errors_at(problems: Mapping[Steps, str | PydanticCustomError]) -> ValidationError:
    """The error that a validator raises for values inside the one it checks, by their steps."""
    errors = [
        InitErrorDetails(
            type="value_error", loc=steps, input=None, ctx={"error": ValueError(problem)}
        )
        if isinstance(problem, str)
        else InitErrorDetails(type=problem, loc=steps, input=None)
        for steps, problem in problems.items()
    ]
    return ValidationError.from_exception_data("values", errors)


class TargetModel(FileModel):
    """Data of a targets file: an optional field that is empty is an error, because `trace:` without
    a value would silently mean that there is no trace."""

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_empty(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[info.field_name or ""]
        if value is None and type(None) in get_args(field.annotation):
            raise expected("a value, or leave it out")
        return value


def fields_of(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """The fields of a model by their names in a file, in order."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


class _FileSchema(GenerateJsonSchema):
    """JSON Schemas for editors: no generated titles, and no defaults that only mean "missing"."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # of the base class
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        made = super().model_schema(schema)
        made.pop("title", None)
        return made

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        made = super().default_schema(schema)
        if made.get("default", ...) is None or isinstance(schema.get("default"), BaseModel):
            del made["default"]
        return made


def model_schema(model: type[BaseModel], definitions: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a model; the models inside it are added to `definitions` by name."""
    made = model.model_json_schema(
        ref_template="#/definitions/{model}", schema_generator=_FileSchema
    )
    definitions.update(made.pop("$defs", {}))
    return made
