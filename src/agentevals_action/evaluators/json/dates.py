"""Dates in the usual written forms, as instants. An ambiguous date is not guessed."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache

from agentevals_action.formatting import quoted

#: The written forms besides ISO 8601, without commas. Names of months may have any case.
_FORMS = (
    "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d-%b-%Y", "%d/%b/%Y", "%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y",
    "%a %d %b %Y %H:%M:%S %z", "%a %d %b %Y %H:%M:%S GMT",
)  # fmt: skip
#: The parts of a format as AgentV writes them (`DD-MMM-YYYY`).
_PARTS = {
    "YYYY": "%Y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "DD": "%d", "HH": "%H", "mm": "%M",
    "ss": "%S",
}  # fmt: skip
_SAMPLE = datetime(2025, 11, 28, 13, 45, 59, tzinfo=UTC)
_MAX_LENGTH = 100  # characters of a text that can be a date


@lru_cache(maxsize=512)
def read_format(text: str) -> str:
    """A format of dates in the syntax of `strptime` (`%d.%m.%Y`), in which it may be written, or
    as `DD.MM.YYYY`; ValueError if it lacks the year, the month or the day."""
    form = re.sub("|".join(_PARTS), lambda part: _PARTS[part[0]], text)
    with suppress(ValueError, re.error):
        if datetime.strptime(_SAMPLE.strftime(form), form).date() == _SAMPLE.date():
            return form
    raise ValueError(
        f"{quoted(text)} is not a valid date format with a year, a month and a day; "
        "write it as YYYY-MM-DD, DD-MMM-YYYY or %d.%m.%Y"
    )


def read_dates(text: str, formats: Sequence[str] = ()) -> tuple[datetime, ...]:
    """The instants that a text may mean: none if it is not a date, two if day and month are
    ambiguous.

    The first of `formats` that matches decides; without a match, only ISO 8601 is read. A date is
    its midnight; without a zone it is in UTC."""
    text = " ".join(text.replace(",", " ").split())
    if len(text) > _MAX_LENGTH or not text.isascii():
        return ()
    for form in formats:
        with suppress(ValueError):
            return (_in_zone(datetime.strptime(text, read_format(form).replace(",", " "))),)
    with suppress(ValueError):
        return (_in_zone(datetime.fromisoformat(text)),)
    instants: dict[datetime, None] = {}
    for form in () if formats else _FORMS:
        with suppress(ValueError):
            instants[_in_zone(datetime.strptime(text, form))] = None
    return tuple(instants)


def _in_zone(instant: datetime) -> datetime:
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
