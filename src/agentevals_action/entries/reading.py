"""Entries out of what stands in a file, whole or with all that is wrong; and back into plain data,
and their JSON Schema."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import FunctionType, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct, structs
from pydantic import BaseModel, ValidationError

from agentevals_action.entries import readers
from agentevals_action.entries.entry import (
    Aside,
    Before,
    Checked,
    Entry,
    Schema,
    Seen,
    Shown,
    Written,
)
from agentevals_action.entries.readers import Reader
from agentevals_action.model.field_errors import field_errors
from agentevals_action.model.file_model import FileModel, model_schema
from agentevals_action.suites.files.validation_errors import (
    MISSING,
    Refusal,
    Refused,
    gathered,
    said,
    unlike,
)

if TYPE_CHECKING:
    from agentevals_action.system.paths import Folder

AnEntry = TypeVar("AnEntry", bound=Entry | FileModel)
_UNBOUND = Meta()
_LENGTHS = frozenset(("min_length", "max_length"))
_LIMITS = frozenset(("gt", "ge", "lt", "le"))
#: The bounds that a type takes from its annotations; of several annotations the outermost counts.
_TAKEN: Mapping[Any, frozenset[str]] = {
    str: _LENGTHS | {"pattern"},
    tuple: _LENGTHS,
    int: _LIMITS,
    float: _LIMITS,
}
_BOUNDS = (*sorted(_LENGTHS | _LIMITS), "pattern", "multiple_of", "tz")


class EntryField(Struct, frozen=True):
    """One field of an entry; `checks` are bound class methods, `aside` is None for the file's own
    data."""

    name: str
    reader: Reader
    description: str
    is_required: bool
    default: Callable[[], Any]
    aside: Aside | None
    checks: tuple[Callable[[Any, Seen], Any], ...]

    @property
    def is_read(self) -> bool:
        """Whether a file may hold it."""
        return self.aside is None or self.aside.is_read


class Nested(Struct, frozen=True):
    """An entry inside another."""

    model: type[Entry]

    def read(self, value: Any, folder: "Folder | None") -> Any:
        """The entry; one that was made already as it is."""
        return value if isinstance(value, self.model) else read_entry(self.model, value, folder)

    def schema(self, definitions: Schema) -> Schema:
        """A reference to its definition."""
        if self.model.__name__ not in definitions:
            definitions[self.model.__name__] = {}  # an entry may hold its own kind
            definitions[self.model.__name__] = entry_schema(self.model, definitions)
        return {"$ref": f"#/definitions/{self.model.__name__}"}


def read_entry(model: type[AnEntry], value: Any, folder: "Folder | None" = None) -> AnEntry:
    """The entry that a value of a file is; Refused with all that is wrong with it. `folder` is that
    of the file, for fields that name files."""
    if issubclass(model, FileModel):
        return _validated(model, value, folder)
    if not issubclass(model, Entry):
        raise TypeError(f"{model} is neither an Entry nor a FileModel")
    try:
        fields = model.long_form(value)
    except ValueError as error:
        raise said(value, error) from None
    if not isinstance(fields, Mapping):
        raise unlike(value, "an object")
    entry = model(**_read_fields(model, fields, folder))
    try:
        return entry.completed(Written(fields, value, folder))
    except ValueError as error:
        raise said(value, error) from None


AModel = TypeVar("AModel", bound=FileModel)


def _validated(model: type[AModel], value: Any, folder: "Folder | None") -> AModel:
    try:
        return model.model_validate(value, context=folder)
    except ValidationError as error:
        raise Refused(
            *(
                Refusal(
                    one.steps, MISSING if one.is_missing else one.value, one.expected, one.message
                )
                for one in field_errors(error, value)
            )
        ) from None


def _read_fields(
    model: type[Entry], written: Mapping[str, Any], folder: "Folder | None"
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    seen: dict[str, Any] = {}
    refusals: list[Refusal] = []
    for name, field in fields_of(model).items():
        if name in written:
            try:
                seen[name] = values[name] = _read_field(field, written[name], Seen(seen, folder))
            except Refused as refused:
                refusals += refused.under(name)
        elif field.is_required:
            refusals.append(Refusal((name,), MISSING))
        else:
            seen[name] = field.default()
    gathered(refusals)
    return values


def _read_field(field: EntryField, written: Any, seen: Seen) -> Any:
    value = field.reader.read(written, seen.folder)
    try:
        for check in field.checks:
            value = check(value, seen)
    except ValueError as error:
        raise said(written, error) from None
    return value


@cache
def _all_fields(model: type[Struct]) -> Mapping[str, EntryField]:
    """The fields of an entry by name, in order, with those that no file holds; TypeError for a
    check or a field that could not work."""
    checking: dict[str, list[Callable[[Any, Seen], Any]]] = {}
    for name in dict.fromkeys(
        name
        for owner in reversed(model.__mro__)
        for name, held in vars(owner).items()
        if _is_check(held)
    ):
        check = getattr(model, name)
        for checked in check.__func__.checked:
            checking.setdefault(checked, []).append(check)
    fields = {
        field.name: _field(model, field, tuple(checking.get(field.name, ())))
        for field in structs.fields(model)
    }
    for name in checking:
        if name not in fields or not fields[name].is_read:
            raise TypeError(
                f"{model.__name__} checks `{name}`, which is none of its fields that a file may hold"
            )
    for name in fields:
        if any(
            isinstance(vars(owner).get(name), FunctionType | classmethod | property)
            for owner in model.__mro__
        ):
            raise TypeError(
                f"{model.__name__} has a field `{name}`, which is the name of a method; give it another"
            )
    return fields


def _is_check(held: object) -> bool:
    return isinstance(held, classmethod) and hasattr(held.__func__, "checked")


@cache
def fields_of(model: type[Struct] | type[BaseModel]) -> Mapping[str, Any]:
    """The fields that a file may hold, by name, in order."""
    if issubclass(model, BaseModel):
        return {field.alias or name: field for name, field in model.model_fields.items()}
    return {name: field for name, field in _all_fields(model).items() if field.is_read}


def _field(
    model: type[Struct], field: structs.FieldInfo, checks: tuple[Callable[[Any, Seen], Any], ...]
) -> EntryField:
    notes = get_args(field.type)[1:] if get_origin(field.type) is Annotated else ()
    aside = next((note for note in notes if isinstance(note, Aside)), None)
    description = next(
        (
            note.description
            for note in reversed(notes)
            if isinstance(note, Meta) and note.description
        ),
        "",
    )
    has_factory = field.default_factory is not NODEFAULT
    try:
        reader = reader_of(field.type) if aside is None or aside.is_read else readers.Anything()
    except TypeError as error:
        raise TypeError(f"{model.__name__}.{field.name}: {error}") from None
    return EntryField(
        name=field.name,
        reader=reader,
        description=description,
        is_required=field.required,
        default=field.default_factory if has_factory else lambda: field.default,
        aside=aside,
        checks=checks,
    )


def reader_of(annotation: Any) -> Reader:
    """What reads values of an annotated type; TypeError for a type that no file can hold."""
    if get_origin(annotation) is Annotated:
        inner, *notes = get_args(annotation)
        return _noted(inner, notes)
    return _plain(annotation, _UNBOUND)


def _noted(inner: Any, notes: list[Any]) -> Reader:
    metas = [note for note in notes if isinstance(note, Meta)]
    bounds = {
        name: value
        for meta in metas
        for name in _BOUNDS
        if (value := getattr(meta, name)) is not None
    }
    if unfit := bounds.keys() - _TAKEN.get(get_origin(inner) or inner, frozenset()):
        raise TypeError(
            f"a {inner} takes no {', '.join(sorted(unfit))}; annotate what is inside it, or write a `Checked`"
        )
    extra = {key: value for meta in metas for key, value in (meta.extra_json_schema or {}).items()}
    reader = _plain(inner, Meta(**bounds) if bounds else _UNBOUND)
    before = tuple(note for note in reversed(notes) if isinstance(note, Before))
    after = tuple(note for note in notes if isinstance(note, Checked))
    shown = next((note.schema for note in notes if isinstance(note, Shown)), None)
    return (
        readers.Noted(reader, before, after, shown, extra or None)
        if before or after or shown or extra
        else reader
    )


def _plain(annotation: Any, bounds: Meta) -> Reader:
    if annotation in _SIMPLE:
        return _SIMPLE[annotation](bounds)
    inside = get_args(annotation)
    if (origin := get_origin(annotation)) in _COMPOUND:
        return _COMPOUND[origin](inside, bounds)
    if isinstance(annotation, type) and issubclass(annotation, Entry):
        return Nested(annotation)
    if isinstance(annotation, type) and is_dataclass(annotation):
        return readers.Instance(annotation)
    raise TypeError(f"no file can hold a {annotation}")


def _list_of(inside: tuple[Any, ...], bounds: Meta) -> Reader:
    if inside[1:] != (...,):
        raise TypeError("no file can hold a tuple of so many; a list is a `tuple[X, ...]`")
    return readers.Several(reader_of(inside[0]), bounds)


def _one_of(words: tuple[Any, ...], _bounds: Meta) -> Reader:
    if not all(isinstance(word, str) for word in words):
        raise TypeError(f"a choice is one of words, and not of {words}")
    return readers.OneOf(words)


_SIMPLE: Mapping[Any, Callable[[Meta], Reader]] = {
    str: readers.Text,
    bool: lambda _: readers.Truth(),
    int: lambda bounds: readers.Number(bounds, is_whole=True),
    float: readers.Number,
    NoneType: lambda _: readers.Nothing(),
    Any: lambda _: readers.Anything(),
}
_COMPOUND: Mapping[Any, Callable[[tuple[Any, ...], Meta], Reader]] = {
    Union: lambda inside, _: readers.Choice(tuple(map(reader_of, inside))),
    UnionType: lambda inside, _: readers.Choice(tuple(map(reader_of, inside))),
    Literal: _one_of,
    tuple: _list_of,
    dict: lambda inside, _: readers.Named(reader_of(inside[0]), reader_of(inside[1])),
}


def types_of(model: type[Struct] | type[BaseModel]) -> Mapping[str, Any]:
    """The types of all fields by name."""
    if issubclass(model, BaseModel):
        return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    return {field.name: field.type for field in structs.fields(model)}


def to_data(entry: Struct | BaseModel, *, defaults: bool = True) -> dict[str, Any]:
    """The data of an entry as a file could hold it, without what stands aside; `defaults` says
    whether fields that have their default are part of it, at any depth."""
    if isinstance(entry, BaseModel):
        return entry.model_dump(exclude_defaults=not defaults)
    fields = (
        (field, getattr(entry, name))
        for name, field in _all_fields(type(entry)).items()
        if field.aside is None
    )
    return {
        field.name: _data(value, defaults)
        for field, value in fields
        if defaults or field.is_required or value != field.default()
    }


def _data(value: Any, defaults: bool) -> Any:
    if isinstance(value, Entry | BaseModel):
        return to_data(value, defaults=defaults)
    if isinstance(value, Mapping):
        return {key: _data(item, defaults) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_data(item, defaults) for item in value]
    return value


def entry_schema(model: type[Entry] | type[FileModel], definitions: Schema) -> Schema:
    """The JSON Schema (draft-07) of an entry; the entries inside go to `definitions`."""
    if issubclass(model, FileModel):
        return model_schema(model, definitions)
    properties: Schema = {}
    for name, field in fields_of(model).items():
        default = None if field.is_required else field.default()
        # The defaults of an entry inside stand at its fields.
        told = (
            {}
            if default is None or isinstance(default, Entry)
            else {"default": _data(default, True)}
        )
        properties[name] = {
            **field.reader.schema(definitions),
            **told,
            **({"description": field.description} if field.description else {}),
        }
    required = [name for name, field in fields_of(model).items() if field.is_required]
    made = {
        "type": "object",
        "description": inspect.cleandoc(model.__doc__ or ""),
        "properties": properties,
    }
    return model.refined({**made, **({"required": required} if required else {})})
