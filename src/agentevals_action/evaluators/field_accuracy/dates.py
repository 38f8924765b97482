"""Pure: dates as people and programs write them, read into instants; what may be read in two ways
is not guessed."""

import itertools
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from agentevals_action.formatting import quoted

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)

_ZONE = r"(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})"
_HALF = r"(?P<half>[AaPp]\.?[Mm]\.?)"
_TOKENS = {
    "YYYY": r"(?P<year>\d{4})",
    "yyyy": r"(?P<year>\d{4})",
    "YY": r"(?P<short>\d{2})",
    "MMMM": r"(?P<name>[A-Za-z]{3,9})\.?",
    "MMM": r"(?P<name>[A-Za-z]{3,9})\.?",
    "MM": r"(?P<month>\d{1,2})",
    "M": r"(?P<month>\d{1,2})",
    "Do": r"(?P<day>\d{1,2})(?:st|nd|rd|th)",
    "DD": r"(?P<day>\d{1,2})",
    "dd": r"(?P<day>\d{1,2})",
    "D": r"(?P<day>\d{1,2})",
    "HH": r"(?P<hour>\d{1,2})",
    "H": r"(?P<hour>\d{1,2})",
    "hh": r"(?P<hour>\d{1,2})",
    "h": r"(?P<hour>\d{1,2})",
    "mm": r"(?P<minute>\d{2})",
    "ss": r"(?P<second>\d{2})",
    "SSSSSS": r"(?P<fraction>\d{1,9})",
    "SSS": r"(?P<fraction>\d{1,9})",
    "A": _HALF,
    "a": _HALF,
    "ZZ": _ZONE,
    "Z": _ZONE,
    "T": "T",
}
#: The same in the spelling of Python and C.
_DIRECTIVES = {
    "%Y": "YYYY",
    "%y": "YY",
    "%m": "MM",
    "%B": "MMMM",
    "%b": "MMM",
    "%d": "DD",
    "%H": "HH",
    "%I": "hh",
    "%M": "mm",
    "%S": "ss",
    "%f": "SSSSSS",
    "%p": "A",
    "%z": "Z",
}
_SCAN = re.compile(
    "|".join(
        (
            r"%.",
            r"\[[^\[\]]*\]",
            *sorted(_TOKENS, key=len, reverse=True),
            r"[A-Za-z]+",
            r"[^A-Za-z]",
        )
    ),
    re.DOTALL,
)

#: Read whatever `formats` say, each with a time of day after it or without; ISO 8601 is read
#: besides.
_CLEAR = (
    *(f"DD{mark}MMM{mark}YYYY" for mark in (" ", "-", "/")),
    "DD MMM, YYYY",
    "DD. MMM YYYY",
    "Do MMM YYYY",
    "MMM DD, YYYY",
    "MMM DD YYYY",
    "MMM Do, YYYY",
    *(f"YYYY{mark}MM{mark}DD" for mark in ("-", "/", ".")),
    "DD.MM.YYYY",
)
#: Which of the two is meant cannot be told when both parts are 12 or less.
_EITHER = ("MM/DD/YYYY", "DD/MM/YYYY", "MM-DD-YYYY", "DD-MM-YYYY")
_WEEKDAY = re.compile(r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+", re.IGNORECASE)
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
_TIME = rf"(?:(?:T|,?\s+(?:at\s+)?){_CLOCK}\s*{_HALF}?\s*{_ZONE}?)?"


@lru_cache(maxsize=512)
def read_format(text: str) -> re.Pattern[str]:
    """The pattern of a format of dates (`DD-MMM-YYYY`, `%d.%m.%Y`; other words in brackets);
    ValueError when it is none."""
    return _compiled(text, "")


@lru_cache(maxsize=64)
def _with_time(text: str) -> re.Pattern[str]:
    return _compiled(text, _TIME)


def _compiled(text: str, suffix: str) -> re.Pattern[str]:
    pattern = ""
    for token in _SCAN.findall(text):
        known = _TOKENS.get(_DIRECTIVES.get(token, token))
        if known is None and (token[0] == "%" or token.isalpha()):
            raise ValueError(
                f"{quoted(text)} is no format of dates: {quoted(token)} is unknown; write it as YYYY-MM-DD or DD-MMM-YYYY"
            )
        pattern += known or re.escape(token[1:-1] if token[0] == "[" and len(token) > 1 else token)
    try:
        compiled = re.compile(pattern + suffix, re.IGNORECASE | re.ASCII)
    except re.error:
        raise ValueError(
            f"{quoted(text)} is no format of dates: a part stands in it twice; write each once"
        ) from None
    for part, names, token in (
        ("year", ("year", "short"), "YYYY"),
        ("month", ("month", "name"), "MM or MMM"),
        ("day", ("day",), "DD"),
    ):
        if not compiled.groupindex.keys() & set(names):
            raise ValueError(
                f"{quoted(text)} is no format of dates: it has no {part}; write {token} in it"
            )
    return compiled


def read_dates(text: str, formats: Sequence[str] = ()) -> tuple[datetime, ...]:
    """The instants that a text may mean: none when it is no date, one when it is clear, two when
    day and month may be either.

    The first of `formats` that fits decides. Without any, `03/04/2025` is both; with some, forms
    that may be read in two ways are read by them alone. A date is its midnight, and what says no
    zone is in UTC."""
    text = text.strip()
    for form in formats:
        if (instant := _instant(read_format(form), text)) is not None:
            return (instant,)
    return next(_clearly(text), ()) or (() if formats else _either(text))


def _clearly(text: str) -> Iterator[tuple[datetime, ...]]:
    try:
        yield (_in_zone(datetime.fromisoformat(text)),)
    except ValueError:
        bare = _WEEKDAY.sub("", text, count=1)
        for form in _CLEAR:
            if (instant := _instant(_with_time(form), bare)) is not None:
                yield (instant,)


def _either(text: str) -> tuple[datetime, ...]:
    found = (_instant(_with_time(form), text) for form in _EITHER)
    return tuple(dict.fromkeys(instant for instant in found if instant is not None))


def _in_zone(instant: datetime) -> datetime:
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def _instant(pattern: re.Pattern[str], text: str) -> datetime | None:
    match = pattern.fullmatch(text)
    if match is None:
        return None
    part = {name: value for name, value in match.groupdict().items() if value}
    try:
        return datetime(
            _year(part),
            _month(part),
            int(part["day"]),
            _hour(part),
            int(part.get("minute", 0)),
            int(part.get("second", 0)),
            int(part.get("fraction", "0")[:6].ljust(6, "0")),
            tzinfo=_zone(part.get("zone", "Z")),
        )
    except ValueError:
        return None


def _year(part: dict[str, str]) -> int:
    if "year" in part:
        return int(part["year"])
    short = int(part["short"])
    # As POSIX reads two digits.
    return short + (1900 if short >= 69 else 2000)


def _month(part: dict[str, str]) -> int:
    if "month" in part:
        return int(part["month"])
    name = part["name"].lower()
    spellings = itertools.chain.from_iterable(
        ((month, number), (month[:3], number)) for number, month in enumerate(_MONTHS, 1)
    )
    known = dict(spellings) | {"sept": 9}
    if name not in known:
        raise ValueError(f"{name} is no month")
    return known[name]


def _hour(part: dict[str, str]) -> int:
    hour = int(part.get("hour", 0))
    if "half" not in part:
        return hour
    if not 1 <= hour <= 12:
        raise ValueError("there is no such hour of a half day")
    return hour % 12 + (12 if part["half"][0] in "Pp" else 0)


def _zone(text: str) -> timezone:
    if text[0] not in "+-":
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    return timezone(timedelta(hours=hours, minutes=minutes) * (-1 if text[0] == "-" else 1))
