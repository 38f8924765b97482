"""Dates in the usual written forms, as instants. An ambiguous date is not guessed."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from dateutil import parser

from agentevals_action.formatting import quoted

#: The directives of `strptime` for the parts of a format.
_DIRECTIVES = {
    "YYYY": "%Y", "yyyy": "%Y", "YY": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%m",
    "Do": "%d", "DD": "%d", "dd": "%d", "D": "%d", "HH": "%H", "H": "%H", "hh": "%I", "h": "%I",
    "mm": "%M", "ss": "%S", "SSSSSS": "%f", "SSS": "%f", "A": "%p", "a": "%p", "ZZ": "%z",
    "Z": "%z", "T": "T",
}  # fmt: skip
_STRPTIME = {directive for directive in _DIRECTIVES.values() if directive[0] == "%"}
_NAMES = "|".join(sorted(_DIRECTIVES, key=len, reverse=True))
_PARTS = re.compile(rf"%.|\[[^\[\]]*\]|{_NAMES}|[A-Za-z]+|[^A-Za-z]", re.DOTALL)
_REQUIRED = (
    ("year", ("%Y", "%y"), "YYYY"),
    ("month", ("%m", "%B", "%b"), "MM or MMM"),
    ("day", ("%d",), "DD"),
)
_ORDINAL = re.compile(r"(\d)(?:st|nd|rd|th)\b", re.IGNORECASE)
_UTC_NAME = re.compile(r"\b(?:UTC|GMT)$")

#: Characters of a text that can be a date.
_MAX_LENGTH = 100
#: A year without four digits may be a day.
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)|(?<!\d)\d{8}(?!\d)")
_YEAR_FIRST = re.compile(r"\D*\d{4}")
#: `15.01.2025`: the day is always first.
_DOTTED = re.compile(r"(?<!\d)\d{1,2}\.\d{1,2}\.\d{4}(?!\d)")
#: `01/15/2025`: the day or the month is first.
_EITHER = re.compile(r"(?<!\d)\d{1,2}[^\w:.]+\d{1,2}[^\w:.]+\d{4}(?!\d)")


@lru_cache(maxsize=512)
def read_format(text: str) -> str:
    """A format of dates (`DD-MMM-YYYY`, `%d.%m.%Y`; other words in brackets) in the syntax of
    `strptime`; ValueError if it is not valid."""
    directives: list[str] = []
    made = ""
    for part in _PARTS.findall(text):
        if directive := _DIRECTIVES.get(part, part if part in _STRPTIME else ""):
            directives.append(directive)
            made += directive
        elif part[0] == "%" or part.isalpha():
            raise ValueError(
                f"{quoted(text)} is not a valid date format: {quoted(part)} is unknown; "
                "write it as YYYY-MM-DD or DD-MMM-YYYY"
            )
        else:
            made += part[1:-1] if len(part) > 1 else part
    if len(set(directives)) < len(directives):
        raise ValueError(
            f"{quoted(text)} is not a valid date format: a part is in it twice; write each once"
        )
    for name, choices, example in _REQUIRED:
        if not set(directives) & set(choices):
            raise ValueError(
                f"{quoted(text)} is not a valid date format: it has no {name}; write {example}"
            )
    return made


def read_dates(text: str, formats: Sequence[str] = ()) -> tuple[datetime, ...]:
    """The instants that a text may mean: none if it is not a date, two if day and month are
    ambiguous.

    The first of `formats` that matches decides. Without formats, `03/04/2025` is ambiguous; with
    formats, a date of that form is read by them alone. A date is its midnight; without a zone it is
    in UTC."""
    text = text.strip()
    if len(text) > _MAX_LENGTH or not text.isascii():
        return ()
    for form in formats:
        with suppress(ValueError):
            return (_read_formatted(text, form),)
    with suppress(ValueError):
        return (_in_zone(datetime.fromisoformat(text)),)
    if not _YEAR.search(text) or (formats and _EITHER.search(text)):
        return ()
    if _YEAR_FIRST.match(text):
        orders: tuple[bool, ...] = (False,)
    else:
        orders = (True,) if _DOTTED.search(text) else (False, True)
    found: dict[datetime, None] = {}
    for day_first in orders:
        with suppress(ValueError, OverflowError):
            # A part that the text lacks comes from the default: then the two instants differ.
            one, other = (
                parser.parse(text, dayfirst=day_first, default=default, tzinfos=_zone)
                for default in (datetime(2000, 1, 1), datetime(2004, 2, 2))
            )
            if one == other:
                found[_in_zone(one)] = None
    return tuple(found)


def _read_formatted(text: str, form: str) -> datetime:
    pattern = read_format(form)
    if "Do" in form:
        text = _ORDINAL.sub(r"\1", text)
    if "%z" in pattern:
        text = _UTC_NAME.sub("Z", text)
    return _in_zone(datetime.strptime(text, pattern))


def _zone(name: str | None, offset: int | None) -> tzinfo:
    if offset is not None:
        return timezone(timedelta(seconds=offset))
    if name is not None:
        raise ValueError(f"the zone {name} is unknown")
    return UTC


def _in_zone(instant: datetime) -> datetime:
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
