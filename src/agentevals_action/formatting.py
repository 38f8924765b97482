"""Numbers, plurals, lists, shortened texts and error kinds in the words that people read.

An unknown number is a dash, never zero."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TypeVar

Item = TypeVar("Item")

UNKNOWN = "–"
#: The end of a text that was cut.
CUT = "…"

_UNITS = ("k", "M", "G")
#: Paths in a sentence; the others are counted.
_NAMED = 5


def percent(share: float | None) -> str:
    """A share of 0-1 in percent, rounded to a tenth; 100% is all and nothing less."""
    if share is None:
        return UNKNOWN
    tenths = _nearest(share * 1000)
    return f"{tenths // 10}%" if tenths % 10 == 0 else f"{tenths / 10:.1f}%"


def score(value: float | None) -> str:
    """A score of 0-1, rounded to hundredths; it never shows as a threshold that it missed."""
    return UNKNOWN if value is None else f"{_nearest(value * 100) / 100:.2f}"


def _nearest(value: float) -> int:
    """The nearest whole number; a multiple of 5 may be a threshold, and nothing is rounded up to
    it."""
    exact = round(value, 6)
    nearest = math.floor(exact + 0.5)
    return nearest - 1 if nearest > exact and nearest % 5 == 0 else nearest


def cost(usd: float | None) -> str:
    """US dollars: cents from a dollar on, else hundredths of cents."""
    if usd is None:
        return UNKNOWN
    if 0 < usd < 0.0001:
        return "<$0.0001"
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"


def shown_cost(usd: float | None) -> float | None:
    """US dollars as `cost` shows them; less than a hundredth of a cent as it is."""
    if usd is None or usd < 0.0001:
        return usd
    return round(usd, 2 if usd >= 1 else 4)


def dollars(usd: float) -> str:
    """US dollars as they were given, with all digits, and to the cent at least where they are not
    whole."""
    whole, _, part = plain(usd).partition(".")
    return f"${whole}.{part:0<2}" if part else f"${whole}"


def plain(number: float) -> str:
    """A number as it was given: all its digits, and never an exponent."""
    whole, _, part = f"{Decimal(repr(number)):,f}".partition(".")
    part = part.rstrip("0")
    return f"{whole}.{part}" if part else whole


def tokens(number: float | None) -> str:
    """A count of tokens, from a thousand on in its unit with three digits."""
    if number is None:
        return UNKNOWN
    unit, units = "", iter(_UNITS)
    while number >= 999.5 and (larger := next(units, None)):
        number, unit = number / 1000, larger
    return f"{number:,.0f}{unit}" if number >= 99.95 or not unit else f"{number:.3g}{unit}"


def time(milliseconds: float | None) -> str:
    """A duration in its two largest units."""
    if milliseconds is None:
        return UNKNOWN
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {round(seconds) % 60} s"
    return f"{minutes // 60} h {minutes % 60} min"


def shown_time(milliseconds: float) -> float:
    """A duration in milliseconds as `time` shows it: to tenths of a second, from a minute on to
    seconds."""
    return float(round(milliseconds, -2 if milliseconds < 60_000 else -3))


def delta(base: float | None, head: float | None) -> str:
    """The signed difference of two scores as `score` shows them, so that a reader who subtracts
    gets the same; empty when it is none or unknown."""
    if base is None or head is None:
        return ""
    difference = _nearest(head * 100) - _nearest(base * 100)
    return f"{'+' if difference > 0 else '−'}{abs(difference) / 100:.2f}" if difference else ""


def step(base: float | None, head: float | None) -> int | None:
    """From base to head in whole percent of base; 0 is a change within rounding, None is unknown or
    no share of anything."""
    return None if not base or head is None else round(round((head / base - 1) * 100, 6))


def moved(words: Callable[[float | None], str], base: float | None, head: float | None) -> str:
    """`base → head` in words, or one text if both read alike."""
    before, after = words(base), words(head)
    return after if before == after else f"{before} → {after}"


def plural(number: int, one: str, many: str = "") -> str:
    """The form of a noun or verb for a number: `plural(2, "test")`, `plural(2, "is", "are")`."""
    return one if number == 1 else many or f"{one}s"


def counted(number: int, noun: str, rest: str = "") -> str:
    """`1 test`, `2 tests regressed`."""
    return f"{number} {plural(number, noun)}{' ' if rest else ''}{rest}"


def joined(parts: Sequence[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f" {word} ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])) if parts else ""


def shortened(items: Sequence[str], limit: int) -> tuple[str, ...]:
    """At most `limit` items, and an item that counts the others: `… and 3 more`."""
    left = len(items) - limit
    return (*items[:limit], f"… and {left:,} more") if left > 0 else tuple(items)


def distinct(lists: Iterable[Iterable[Item]]) -> tuple[Item, ...]:
    """The different items of several lists, in their order."""
    return tuple(dict.fromkeys(item for items in lists for item in items))


def join_choices(words: Iterable[str]) -> str:
    """A choice in a sentence: `a`, `b` or `c`, each in backticks."""
    return joined([f"`{word}`" for word in words], "or")


def each_once(sentences: Iterable[str]) -> tuple[str, ...]:
    """Each sentence once, in the order of its first occurrence, with the number of several
    occurrences."""
    return tuple(
        sentence if count == 1 else f"{sentence} ({count} times)"
        for sentence, count in Counter(sentences).items()
    )


def cut(text: str, limit: int) -> str:
    """A text of at most `limit` characters; a longer one ends in `CUT`."""
    return text if len(text) <= limit else f"{text[: limit - 1]}{CUT}"


def cut_line(text: str, limit: int) -> str:
    """A text on one line of at most `limit` characters."""
    return cut(" ".join(text.split()), limit)


def first_line(text: str) -> str:
    """The sentence of an error that quotes the output of a program in the lines below."""
    return text.partition("\n")[0].rstrip(":")


def ending(text: str, limit: int) -> str:
    """The end of a text of at most `limit` characters; a longer one begins with an ellipsis."""
    return text if len(text) <= limit else f"…{text[1 - limit :]}"


def cut_middle(text: str, first: int, last: int, limit: int) -> str:
    """The first and the last lines of a program's output, without empty lines, at most `limit`
    characters each time: a program of Node names the cause first, a program of Python last."""
    lines = [line for line in text.splitlines() if line.strip()]
    left = len(lines) - first - last
    if left < 2:
        return ending("\n".join(lines), 2 * limit)
    head, tail = "\n".join(lines[:first]), "\n".join(lines[-last:])
    return f"{cut(head, limit)}\n{CUT} {left:,} more lines {CUT}\n{ending(tail, limit)}"


#: Characters of a text that a sentence quotes.
QUOTE_LIMIT = 80


def quoted(text: str) -> str:
    """A text in double quotes, on one line, cut to `QUOTE_LIMIT` characters."""
    escaped = text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
    return f'"{cut(" ".join(text.split()) or escaped, QUOTE_LIMIT)}"'


#: The kinds of errors in two or three words.
ERROR_KINDS = {
    "target": "target failed",
    "judge": "judge failed",
    "evaluator": "evaluator failed",
    "timeout": "timed out",
    "advisory": "only advisory judges",
    "budget": "budget spent",
    "prepare": "not prepared",
    "workspace": "workspace failed",
    "configuration": "wrongly configured",
    "resources": "out of resources",
    "shard": "shard without results",
    "runner": "runner failed",
    "tools": "tool call without a reply",
    "bug": "bug of the action",
}


def error_kind(kind: str) -> str:
    """A kind of error in two or three words; an unknown kind keeps its name."""
    return ERROR_KINDS.get(kind) or f"{kind} error"


def counted_error_kinds(kinds: Iterable[str]) -> str:
    """Kinds of errors, the frequent ones first, counted where there are several: `budget spent
    (10), timed out (2)`."""
    counts = Counter(kinds)
    if len(counts) == 1:
        return error_kind(next(iter(counts)))
    return ", ".join(f"{error_kind(kind)} ({number:,})" for kind, number in counts.most_common())


def printable_path(path: str) -> str:
    """A path as text; bytes that are not UTF-8 appear as `\\xff`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def list_paths(paths: Sequence[str]) -> str:
    """Paths in a sentence: the first five in backticks, and the number of the others."""
    names = [f"`{printable_path(path)}`" for path in paths]
    left = len(names) - _NAMED
    return joined([*names[:_NAMED], *([f"{left} more"] if left > 0 else [])])
