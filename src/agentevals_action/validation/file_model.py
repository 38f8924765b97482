"""The base class of everything that is read from a suite, a targets file or a configuration."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_type_hints

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError, PydanticOmit, core_schema

from agentevals_action.system.files.paths import Folder

Item = TypeVar("Item")
#: Names and indices that lead from an object to a value in it.
Steps = tuple[str | int, ...]
#: A list in a file, which is frozen in the model.
ListOf = Annotated[tuple[Item, ...], Strict(False)]
NonEmpty = Annotated[str, Field(min_length=1)]
#: The weight of a score in a mean. Weights near the largest float would add up to infinity, and
#: the mean would not be a number.
Weight = Annotated[float, Field(ge=0, le=1_000_000)]


def get_folder(info: ValidationInfo) -> Folder:
    """The folder of the declaring file; TypeError if data is validated without one."""
    if not isinstance(info.context, Folder):
        raise TypeError("models that name files are read with the folder of the declaring file")
    return info.context


class FileContext(Folder):
    """The context that reports the fields of a file that no model reads, and knows positions."""

    @abstractmethod
    def check_fields(self, model: Any, data: dict[str, Any]) -> dict[str, Any]:
        """The fields of an object that its model reads. Other fields are reported, and two
        spellings of a field whose values differ."""

    @abstractmethod
    def locate(self, container: Any, key: str | int = "") -> Any:
        """The `Location` where an object begins, or where its value of a key begins."""

    @abstractmethod
    def computed(self, data: dict[str, Any]) -> Mapping[str, Any]:
        """The values of all computed fields, for an object that may have some of them."""

    @abstractmethod
    def warn_about(self, found: Any, data: dict[str, Any]) -> None:
        """Adds the `warnings` of a model, which was read from `data`."""

    @abstractmethod
    def read_file(self, text: str, model: Any) -> Any:
        """The model of the object in the YAML file that a text names; None, with the errors, if it
        is invalid. ValueError if there is no such file."""


def check_fields(model: type[object], data: Any, info: ValidationInfo) -> Any:
    """The fields of an object that its model reads, where the context checks them."""
    if isinstance(info.context, FileContext) and isinstance(data, dict):
        return info.context.check_fields(model, data)
    return data


def locate(info: ValidationInfo, container: Any, key: str | int = "") -> Any:
    """The `Location` where an object of the validated file begins, or where its value of a key
    begins; None if it is unknown."""
    context = info.context
    return context.locate(container, key) if isinstance(context, FileContext) else None


class FileModel(BaseModel):
    """Data of a file: values are never converted, and unknown fields are errors, or warnings of the
    context.

    The validation context is the `Folder` of the declaring file, or None. A `FileContext` fills the
    computed fields `location` (where the object begins), `places` (where the values of its fields
    begin) and `home` (the folder). Validators raise `ValueError("problem; advice")`, `expected("a
    text")`, or `errors_at` for values inside the checked value. `noun` names such an object in a
    sentence; by default it is the name of the class."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        defer_build=True,
    )

    noun: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, data: Any, info: ValidationInfo) -> Any:
        read, context = check_fields(cls, data, info), info.context
        if not isinstance(context, FileContext) or not isinstance(data, dict):
            return read
        computed = {**context.computed(data)}
        if "places" in cls.model_fields:
            computed["places"] = {name: context.locate(read, name) for name in read}
        return read | {name: computed[name] for name in computed.keys() & cls.model_fields.keys()}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        resolved = handler.resolve_ref_schema(handler(schema))
        add_spellings(cls, resolved)
        return resolved


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


@dataclass(frozen=True)
class _Computed:
    """Marks a field that no file of a user has: the loader sets it. A `stored` field is also
    in results files, and is read from them."""

    stored: bool = False

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return handler(source) if self.stored else core_schema.any_schema()

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        if self.stored and handler.mode == "serialization":
            return handler(schema)
        raise PydanticOmit


#: A field of a model that no file has: the loader sets it in a copy of the model.
Computed = Annotated[Item, _Computed()]
#: A computed field of a record that results files have, too.
ComputedStored = Annotated[Item, _Computed(stored=True)]


def spelled(*spellings: str, **others: Any) -> Any:
    """A field with all its spellings, the canonical one first; `others` as in `Field`."""
    return Field(validation_alias=AliasChoices(*spellings), **others)


def expected(words: str) -> PydanticCustomError:
    """The error that a validator raises for a value of another type; `words` describe what to
    write instead."""
    return PydanticCustomError("expected", "write {words}", {"words": words})


def errors_at(problems: Mapping[Steps, str | PydanticCustomError]) -> ValidationError:
    """The error that a validator raises for values inside the checked value, by their steps."""
    errors = [
        InitErrorDetails(
            type="value_error", loc=steps, input=None, ctx={"error": ValueError(problem)}
        )
        if isinstance(problem, str)
        else InitErrorDetails(type=problem, loc=steps, input=None)
        for steps, problem in problems.items()
    ]
    return ValidationError.from_exception_data("values", errors)


@cache
def list_fields(model: Any) -> Mapping[str, tuple[str, ...]]:
    """The spellings of each field that a file may have, by the canonical spelling, in order; for a
    model, or a dataclass with annotations of pydantic."""
    fields: dict[str, tuple[str, ...]] = {}
    for name, field, metadata in _fields(model):
        if any(isinstance(mark, _Computed) for mark in metadata):
            continue
        choices = field.validation_alias if field else None
        spellings = (
            tuple(str(choice) for choice in choices.choices)
            if isinstance(choices, AliasChoices)
            else ((field.alias if field else None) or name,)
        )
        fields[spellings[0]] = spellings
    return fields


def _fields(model: type[object]) -> Sequence[tuple[str, FieldInfo | None, Sequence[Any]]]:
    if issubclass(model, BaseModel):
        return [(name, field, field.metadata) for name, field in model.model_fields.items()]
    described: list[tuple[str, FieldInfo | None, Sequence[Any]]] = []
    for name, hint in get_type_hints(model, include_extras=True).items():
        marks = getattr(hint, "__metadata__", ())
        fields = (mark for mark in marks if isinstance(mark, FieldInfo))
        described.append((name, next(fields, None), marks))
    return described


@cache
def list_spellings(model: Any) -> Mapping[str, str]:
    """The canonical name of a field by each of its spellings."""
    return {spelling: name for name, every in list_fields(model).items() for spelling in every}


def add_spellings(model: Any, schema: dict[str, Any]) -> None:
    """Adds the other spellings of fields to the JSON Schema of an object, and takes a spelling of a
    required field for the field."""
    properties = schema.get("properties", {})
    if "anyOf" in schema:  # one of several fields
        names = (name for choice in schema["anyOf"] for name in choice.get("required", ()))
        every = (spelling for name in names for spelling in list_fields(model)[name])
        schema["anyOf"] = [{"required": [spelling]} for spelling in every]
    for name, spellings in list_fields(model).items():
        others = [spelling for spelling in spellings if spelling != name]
        if not others or name not in properties:
            continue
        properties |= dict.fromkeys(others, properties[name])
        if name in schema.get("required", ()):
            schema["required"].remove(name)
            choice = {"anyOf": [{"required": [spelling]} for spelling in spellings]}
            schema.setdefault("allOf", []).append(choice)
    if schema.get("required") == []:
        del schema["required"]
