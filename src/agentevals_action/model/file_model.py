"""The base class of everything that is read from a suite, targets or configuration file."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import InitErrorDetails, core_schema

Item = TypeVar("Item")
#: Names and indices that lead from an object to a value in it.
Steps = tuple[str | int, ...]
#: A list in a file, which is frozen in the model.
ListOf = Annotated[tuple[Item, ...], Strict(False)]
NonEmpty = Annotated[str, Field(min_length=1)]


class FileModel(BaseModel):
    """Data of a file: values are never converted, and unknown fields are ignored (the loader
    reports them).

    The validation context is the `Folder` of the declaring file, or None. Validators raise
    `ValueError("problem; advice")`, or `errors_at` for several values inside the one they check."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="ignore",
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
    )


def errors_at(problems: Mapping[Steps, str]) -> ValidationError:
    """The error that a validator raises for values inside the one it checks, by their steps."""
    return ValidationError.from_exception_data(
        "values",
        [
            InitErrorDetails(
                type="value_error", loc=steps, input=None, ctx={"error": ValueError(problem)}
            )
            for steps, problem in problems.items()
        ],
    )


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
