"""Redaction of secrets: their values, and the forms that encoders give them, become `***`.

Texts are redacted before they are cut or escaped: part of a secret would not be recognized."""

import base64
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from html.entities import html5
from itertools import chain
from operator import is_
from typing import Any, TypeVar

from pydantic import BaseModel

Record = TypeVar("Record")

#: The text that replaces a secret.
MASK = "***"
#: Characters of the shortest secret: to redact `true` or `admin` would blank the report.
MIN_LENGTH = 8

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY"
    r"|CONNECTION_?STRING"
    r"|(?<![A-Z0-9])(KEYS?|PASS|PWD|PAT|AUTH|AUTHORIZATION|BEARER|COOKIE|DSN|JWT|SAS)(?![A-Z0-9])"
)
#: Variables of every shell.
_NOT_SECRET = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
#: A value like a key: long, without spaces, with letters and digits. `production` and
#: `http://localhost:8080` do not match.
_CREDENTIAL = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_.+/=-]{16,}")
_LOGS = logging.Formatter()
#: Characters that no encoder of JSON, URLs or HTML escapes.
_UNESCAPED = re.compile(r"[A-Za-z0-9_.-]+")
#: What encoders put between the lines of a base64 text and the bytes of a hex text.
_BREAKS = re.compile(r"(?:\\[rn]|\s)+")
_SEPARATORS = re.compile(r"[\s:-]")
#: Where a text has a line of 64 characters or more, or eight bytes with separators. Few texts have.
_LINE = re.compile(r"(?<=[A-Za-z0-9+/_-]{64})(?:\\[rn]|\s)")
_BYTES = re.compile(r"(?:[0-9A-Fa-f]{2}[\s:-]){7}[0-9A-Fa-f]{2}")
_RUNS = re.compile(r"[A-Za-z0-9_.-]+|\\+|[^A-Za-z0-9_.-]", re.DOTALL)
_JSON_ESCAPES = {
    **{character: character for character in "\"'/"},
    **{"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"},
}
_HTML_NAMES = {
    character: [name for name, text in html5.items() if text == character and name.endswith(";")]
    for character in "\"&'<>"
}
_WITHOUT_TEXT = frozenset({type(None), bool, int, float})
#: Levels of a record that are searched; deeper data (arguments of a tool) is masked.
_MAX_DEPTH = 100


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is likely to hold a credential."""
    name = name.upper()
    return name not in _NOT_SECRET and bool(_SECRET_NAME.search(name))


class Redactor:
    """Replaces secrets in text. Values under 8 characters are ignored; each long line of a value
    with several lines is a secret."""

    def __init__(self, values: Iterable[str]) -> None:
        secrets = sorted({secret for value in values for secret in _parts(value)})
        base64_forms = _long(form for secret in secrets for form in _base64_forms(secret))
        hex_forms = _long(form for secret in secrets for form in _hex_forms(secret))
        others = _long(form for secret in secrets for form in _other_forms(secret))
        # Texts, not one regular expression: that search is ten times slower.
        self._forms = [*base64_forms, *hex_forms, *others]
        self._broken = ((_LINE, _BREAKS, base64_forms), (_BYTES, _SEPARATORS, hex_forms))
        self._escaped = [
            (max(_UNESCAPED.findall(secret), key=len, default=""), _escaped_form(secret))
            for secret in secrets
            if not _UNESCAPED.fullmatch(secret)
        ]

    @classmethod
    def from_environ(
        cls, environ: Mapping[str, str], extra_names: Iterable[str] = (), values: Iterable[str] = ()
    ) -> "Redactor":
        """A redactor of the variables whose names look secret (inputs included), of the variables
        in `extra_names` whose values look secret, and of `values`."""
        named = [
            environ[name]
            for name in extra_names
            if name in environ and _CREDENTIAL.fullmatch(environ[name].strip())
        ]
        return cls(
            [*values, *named, *(value for name, value in environ.items() if looks_secret(name))]
        )

    def redact(self, text: str) -> str:
        """The text without secrets; repeated until none is left, since a removal can join the
        halves of another secret."""
        while spans := self._spans(text):
            text = _mask(text, spans)
        return text

    def filter(self) -> logging.Filter:
        """A filter for a log handler that redacts messages and tracebacks."""
        return _LogFilter(self)

    def _spans(self, text: str) -> list[tuple[int, int]]:
        found = []
        for form in [form for form in self._forms if form in text]:
            start = text.find(form)
            while start >= 0:
                found.append((start, start + len(form)))
                start = text.find(form, start + 1)
        for occurs, separators, forms in self._broken:
            if forms and occurs.search(text):
                found += _spans_between(separators, forms, text)
        for part, form_of in self._escaped:
            match = form_of.search(text) if part in text else None
            while match:
                found.append(match.span())
                match = form_of.search(text, match.start() + 1)
        return sorted(found)


class _LogFilter(logging.Filter):
    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._redactor.redact(record.getMessage()), None
        if record.exc_info:
            record.exc_text = record.exc_text or _LOGS.formatException(record.exc_info)
            record.exc_info = None
        if record.exc_text:
            record.exc_text = self._redactor.redact(record.exc_text)
        return True


def _mask(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Overlapping spans become one mask, or the rest of the second secret would stay."""
    parts, end = [], 0
    for start, stop in spans:
        if start >= end:
            parts += [text[end:start], MASK]
        end = max(end, stop)
    return "".join([*parts, text[end:]])


def _parts(value: str) -> Iterator[str]:
    value = value.strip()
    lines = value.splitlines()
    for part in (value, *(line.strip() for line in lines if len(lines) > 1)):
        if len(part) >= MIN_LENGTH:
            yield part


def _spans_between(
    separators: re.Pattern[str], forms: Sequence[str], text: str
) -> Iterator[tuple[int, int]]:
    """The spans of forms that are interrupted by separators: lines of 64 or 76 characters, or
    `aa:bb`."""
    joined = separators.sub("", text)
    if not (present := [form for form in forms if form in joined]):
        return
    indexes, end = list[int](), 0
    for match in separators.finditer(text):
        indexes.extend(range(end, match.start()))
        end = match.end()
    indexes.extend(range(end, len(text)))
    for form in present:
        start = joined.find(form)
        while start >= 0:
            yield indexes[start], indexes[start + len(form) - 1] + 1
            start = joined.find(form, start + 1)


def _long(forms: Iterable[str]) -> list[str]:
    return [form for form in dict.fromkeys(forms) if len(form) >= MIN_LENGTH]


def _base64_forms(secret: str) -> Iterator[str]:
    """The base64 forms, wherever the secret begins in the encoded text."""
    data = secret.encode("utf-8", "replace")
    for offset in range(3):
        core = _core(base64.b64encode, 6, data, offset)
        yield core
        yield core.translate({ord("+"): "-", ord("/"): "_"})


def _hex_forms(secret: str) -> Iterator[str]:
    data = secret.encode("utf-8", "replace")
    yield from (data.hex(), data.hex().upper())


def _other_forms(secret: str) -> Iterator[str]:
    """The secret, and its base32 forms, wherever it begins in the encoded text."""
    yield secret
    data = secret.encode("utf-8", "replace")
    for offset in range(5):
        core = _core(base64.b32encode, 5, data, offset)
        yield from (core, core.lower())


def _core(encode: Callable[[bytes], bytes], bits: int, data: bytes, offset: int) -> str:
    """The characters of an encoded text that depend on these bytes alone, if they begin `offset`
    bytes after the beginning of a group; a character stands for `bits` bits."""
    text = encode(b"\0" * offset + data).decode()
    return text[-(-8 * offset // bits) : 8 * (offset + len(data)) // bits]


def _escaped_form(secret: str) -> re.Pattern[str]:
    """A pattern of the secret as JSON, a URL, HTML or Python's `repr` writes it. Encoders differ in
    the characters that they escape (`\\/`, `\\u002b`), so each character has all its forms."""
    return re.compile("".join(map(_escaped_run, _RUNS.findall(secret))))


def _escaped_run(run: str) -> str:
    """A character that encoders leave as it is, or the forms of one that they escape; a run of
    backslashes is one item, or a search could take exponential time."""
    if _UNESCAPED.fullmatch(run):
        return re.escape(run)
    character, count = run[0], len(run)
    utf16 = character.encode("utf-16-be", "surrogatepass").hex()
    units = [utf16[start : start + 4] for start in range(0, len(utf16), 4)]
    octets = character.encode("utf-8", "replace")
    forms = [
        "".join(rf"\\{{1,4}}u(?i:{unit})" for unit in units),
        "".join(f"%(?i:{octet:02x})" for octet in octets),
        rf"&\#(?:{ord(character)}|[xX](?i:0{{0,4}}{ord(character):x}));",
        *(re.escape(f"&{name}") for name in _HTML_NAMES.get(character, ())),
    ]
    if ord(character) < 256:
        forms.append(rf"\\{{1,4}}x(?i:{ord(character):02x})")
    if character in _JSON_ESCAPES:
        forms.append(rf"\\{{1,4}}{re.escape(_JSON_ESCAPES[character])}")
    if character == " ":
        forms.append(r"\+")  # in a form
    if character == "\\":
        forms = [rf"(?:{form}){{{count}}}" for form in forms]
        forms.append(rf"\\{{{count},{4 * count}}}")
    else:
        forms.append(re.escape(character))
    return f"(?:{'|'.join(forms)})"


def redact_record(record: Record, redactor: Redactor) -> Record:
    """A record (a review, a result) with every text in it redacted, keys of mappings included; the
    same object if nothing changes. Data that nests deeper than `_MAX_DEPTH` levels is masked."""
    redacted: Record = _RecordRedaction(redactor).apply(record)
    return redacted


class _RecordRedaction:
    """One walk through a record. An object that occurs twice (the displayed sample is also the
    test's sample) is processed once."""

    def __init__(self, redactor: Redactor) -> None:
        self._redact = redactor.redact
        self._depth = 0
        self._done: dict[int, Any] = {}  # by id; the record keeps the objects alive meanwhile

    def apply(self, value: Any) -> Any:
        if type(value) in _WITHOUT_TEXT or value == ():
            return value
        if isinstance(value, str):
            return value if isinstance(value, Enum) else self._redact(value)
        if self._depth >= _MAX_DEPTH:
            return MASK
        if id(value) not in self._done:
            self._depth += 1
            self._done[id(value)] = self._rebuild(value)
            self._depth -= 1
        return self._done[id(value)]

    def _rebuild(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            items = [self.apply(item) for item in value]
            return value if all(map(is_, items, value)) else type(value)(items)
        if isinstance(value, Mapping):
            pairs = [(self.apply(key), self.apply(item)) for key, item in value.items()]
            flat = chain.from_iterable
            unchanged = all(map(is_, flat(pairs), flat(value.items())))
            return value if unchanged else dict(pairs)
        if isinstance(value, BaseModel):
            changed = self._changes(value, type(value).model_fields)
            return value.model_copy(update=changed) if changed else value
        if is_dataclass(value) and not isinstance(value, type):
            changed = self._changes(value, [field.name for field in fields(value)])
            return replace(value, **changed) if changed else value
        return value

    def _changes(self, value: Any, names: Iterable[str]) -> dict[str, Any]:
        before = {name: getattr(value, name) for name in names}
        after = {name: self.apply(part) for name, part in before.items()}
        return {name: part for name, part in after.items() if part is not before[name]}
