"""Redaction of secrets: their values, and their base64, URL-encoded and JSON-escaped forms (JSON in
JSON, too), become `***`.

Texts are redacted where they enter (replies, output of programs), and records where they leave,
before their texts are shortened or escaped: part of a secret would not be recognized."""

import base64
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from pydantic import BaseModel
from pydantic_core import to_json

from agentevals_action.formatting import CUT

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
#: How often a text may be escaped as JSON: a tool's arguments in a reply in a log are three times.
_JSON_LEVELS, _ASCII = 3, (True, False)
#: Levels of a record that are searched; deeper data (arguments of a tool) is masked.
_MAX_DEPTH = 100


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is likely to hold a credential."""
    name = name.upper()
    return name not in _NOT_SECRET and bool(_SECRET_NAME.search(name))


def looks_like_key(value: str) -> bool:
    """Whether a text is likely to be a key, whatever its name."""
    return bool(_CREDENTIAL.fullmatch(value.strip()))


class Redactor:
    """Replaces secrets in text. Values under 8 characters are ignored; each long line of a value
    with several lines is a secret."""

    def __init__(self, values: Iterable[str]) -> None:
        secrets = {secret for value in values for secret in _parts(value)}
        # Texts, not one regular expression: that search is ten times slower.
        # The longest first: a shorter one may be part of it.
        forms = {form for secret in secrets for form in _forms(secret)}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

    @classmethod
    def from_environ(
        cls, environ: Mapping[str, str], extra_names: Iterable[str] = (), values: Iterable[str] = ()
    ) -> "Redactor":
        """A redactor of the variables whose names look secret (inputs included), of the variables
        in `extra_names` whose values look secret, and of `values`."""
        named = [
            environ[name]
            for name in extra_names
            if name in environ and looks_like_key(environ[name])
        ]
        return cls(
            [*values, *named, *(value for name, value in environ.items() if looks_secret(name))]
        )

    def redact(self, text: str) -> str:
        """The text without secrets, and without beginnings of them that a sentence of ours quotes
        and cuts."""
        before = None
        while before != text:  # a mask can complete a secret that contains one
            before = text
            for form in self._forms:
                text = text.replace(form, MASK)
        *parts, last = text.split(CUT)
        return CUT.join([*map(self._without_beginning, parts), last])

    def _without_beginning(self, text: str) -> str:
        """The text, which is cut at its end, without the beginning of a secret there."""
        for form in self._forms:
            start = text.rfind(form[:MIN_LENGTH])
            if start >= 0 and form.startswith(text[start:]):
                text = text[:start] + MASK
        return text

    def may_occur_in(self, document: str) -> bool:
        """Whether a text in a JSON document may contain a secret. The backslashes are left out on
        both sides: a text in the document may be JSON itself, so that it is escaped twice."""
        document = document.replace("\\", "")
        length = MIN_LENGTH if CUT in document else None
        return any(form[:length].replace("\\", "") in document for form in self._forms)

    def filter(self) -> logging.Filter:
        """A filter for a log handler that redacts messages and tracebacks."""
        return _LogFilter(self)


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


def _parts(value: str) -> Iterator[str]:
    value = value.strip()
    lines = value.splitlines()
    for part in (value, *(line.strip() for line in lines if len(lines) > 1)):
        if len(part) >= MIN_LENGTH:
            yield part


def _forms(secret: str) -> Iterator[str]:
    """The forms of a secret that are at least `MIN_LENGTH` characters long."""
    data = secret.encode("utf-8", "replace")
    encoded = (quote(data, safe=""), quote(data), quote_plus(data))
    encoded64 = [_base64_core(data, offset) for offset in range(3)]
    forms = [
        secret,
        *encoded64,
        *(text.replace("+", "-").replace("/", "_") for text in encoded64),
        *(form for text in encoded for form in (text, _lower_escapes(text))),
        *_json_forms(secret),
        repr(f'"{secret}')[2:-1],  # with the quotes in which Python prints it
    ]
    yield from (form for form in forms if len(form) >= MIN_LENGTH)


def _json_forms(text: str) -> Iterator[str]:
    """A text in JSON, and in JSON that is a text in JSON, and so on."""
    forms = {text}
    for _ in range(_JSON_LEVELS):
        forms = {json.dumps(form, ensure_ascii=ascii)[1:-1] for form in forms for ascii in _ASCII}
        yield from forms


def _base64_core(data: bytes, offset: int) -> str:
    """The characters of a base64 text that depend on these bytes alone, if they begin `offset`
    bytes after the beginning of a group of three."""
    text = base64.b64encode(b"\0" * offset + data).decode()
    return text[-(-8 * offset // 6) : 8 * (offset + len(data)) // 6]


def _lower_escapes(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), text)


#: The redactors of the run, the last one in use. Of the process, not a parameter: the secrets are
#: those of its environment, and an output that is read without them would be a leak.
_in_use: list[Redactor] = []


@contextmanager
def redacting(redactor: Redactor) -> Iterator[None]:
    """Redacts what enters with this redactor, until the end of the block."""
    _in_use.append(redactor)
    try:
        yield
    finally:
        _in_use.pop()


def redact(text: str) -> str:
    """A text that enters, without the secrets of the run."""
    return _in_use[-1].redact(text) if _in_use else text


def without_secrets(record: Record) -> Record:
    """A record, such as a reply or a result, without the secrets of the run."""
    return redact_record(record, _in_use[-1]) if _in_use else record


def redact_record(record: Record, redactor: Redactor) -> Record:
    """A record (a review, a result) with every text in it redacted, keys of mappings included,
    before a report escapes them. Data that nests deeper than `_MAX_DEPTH` levels is masked.

    Nearly all records are without secrets: their JSON shows that 50 times faster than a walk."""
    try:
        text = to_json(record, fallback=str).decode()
    except ValueError:  # what JSON cannot contain, or nests too deeply
        text = None
    if text is not None and not redactor.may_occur_in(text):
        return record
    redacted: Record = _redacted(record, redactor, _MAX_DEPTH)
    return redacted


def _redacted(value: Any, redactor: Redactor, depth: int) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) else redactor.redact(value)
    is_record = isinstance(value, BaseModel) or is_dataclass(value)
    if isinstance(value, type) or not (is_record or isinstance(value, tuple | list | Mapping)):
        return value
    inner = partial(_redacted, redactor=redactor, depth=depth - 1)
    return _rebuilt(value, inner) if depth else MASK


def _rebuilt(value: Any, inner: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(inner, value))
    if isinstance(value, Mapping):
        return {inner(key): inner(item) for key, item in value.items()}
    is_model = isinstance(value, BaseModel)
    names = type(value).model_fields if is_model else [field.name for field in fields(value)]
    changed = {name: inner(getattr(value, name)) for name in names}
    return value.model_copy(update=changed) if is_model else replace(value, **changed)
