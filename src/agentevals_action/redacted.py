"""Secrets out of whole records, before anything is cut or escaped: afterwards a secret may read otherwise and slip through."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel

Record = TypeVar("Record")


def redacted(record: Record, redact: Callable[[str], str]) -> Record:
    """The same record (a review, a result) with every text in it redacted, keys of mappings included."""
    changed: Record = _walk(record, redact)
    return changed


def _walk(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) else redact(value)
    if isinstance(value, BaseModel):
        return value.model_copy(update=_changed({name: getattr(value, name) for name in type(value).model_fields}, redact))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **_changed({field.name: getattr(value, field.name) for field in fields(value)}, redact))
    if isinstance(value, Mapping):
        return {_walk(key, redact): _walk(item, redact) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_walk(item, redact) for item in value)
    return value


def _changed(values: Mapping[str, Any], redact: Callable[[str], str]) -> dict[str, Any]:
    walked = {name: _walk(value, redact) for name, value in values.items()}
    return {name: value for name, value in walked.items() if value is not values[name]}
