"""The declaration of an object of a file: a class with its fields, checks of them, and a hook for
what concerns it as a whole."""

from abc import ABCMeta
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar, dataclass_transform

from msgspec import Meta, Struct, StructMeta, field

if TYPE_CHECKING:
    from agentevals_action.system.paths import Folder

Method = TypeVar("Method")
Schema = dict[str, Any]
#: A text that says something.
NonEmpty = Annotated[str, Meta(min_length=1)]


class Before(Struct, frozen=True, eq=False):
    """In an annotation: makes of what is written what the type takes; ValueError ("problem;
    advice") when it is nothing of the kind."""

    function: Callable[[Any], Any]


class Checked(Struct, frozen=True, eq=False):
    """In an annotation: looks at a value of the right type, and gives it back or another in its
    place; ValueError as above."""

    function: Callable[[Any], Any]


class Shown(Struct, frozen=True, eq=False):
    """In an annotation: what the JSON Schema says in place of what follows from the type."""

    schema: Schema


class Aside(Struct, frozen=True, eq=False):
    """In an annotation: no data of the file's own. Unless it `is_read`, no file holds it: it is set
    by `completed`."""

    is_read: bool = False


class Written(Struct, frozen=True):
    """What an entry is made of: the `data` in its long form, the value as it stands in its file,
    and the folder of that file."""

    data: Mapping[str, Any]
    value: Any
    folder: "Folder | None"


class Seen(Struct, frozen=True):
    """What a check may look at: the values of the fields declared before that are right, defaults
    included, and the folder of the file."""

    fields: Mapping[str, Any]
    folder: "Folder | None"


def checks(*names: str) -> Callable[[Method], Method]:
    """Declares a class method as a check of these fields where they are given: it gets the value
    and what was `Seen`, and gives the value back; ValueError or Refused when it is not taken."""

    def declare(method: Method) -> Method:
        if not isinstance(method, classmethod):
            raise TypeError(f"{method} is no class method; write `@checks` over `@classmethod`")
        method.__func__.checked = names  # type: ignore[attr-defined] # a class method's function
        return method

    return declare


class _EntryMeta(StructMeta, ABCMeta):
    """Entries are frozen, and their fields are given by name."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "_EntryMeta":
        return super().__new__(
            mcls, name, bases, namespace, **{"frozen": True, "kw_only": True, **options}
        )


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Entry(Struct, metaclass=_EntryMeta):
    """Base of everything read from a file: wrong types are refused, and so is what is missing;
    unknown fields are not looked at.

    Fields are annotated with `msgspec.Meta` for bounds and the description, and with `Before`,
    `Checked`, `Shown` and `Aside`."""

    @classmethod
    def long_form(cls, value: Any) -> Any:
        """What a shorter form stands for; ValueError ("problem; advice") when that cannot be
        told."""
        return value

    def completed(self, _written: Written) -> Self:
        """The entry once all its fields are right, as they were `written`; ValueError or Refused
        when they do not fit together.

        An override of what a base class has does that first, by `super()`."""
        return self

    @classmethod
    def refined(cls, schema: Schema) -> Schema:
        """The JSON Schema of the entry, with what does not follow from its fields."""
        return schema
