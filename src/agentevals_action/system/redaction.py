"""Secrets out of text: their values, and the forms that encoders give them, become `***`."""

import base64
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote, quote_plus

#: What stands where a secret stood.
MASK = "***"
#: Characters under which a value is too common to be taken for a secret: `true` or `admin` would
#: blank the report.
MIN_LENGTH = 8

_ANYWHERE = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CONNECTION_?STRING"
)
_WORDS = frozenset(
    {
        "KEY",
        "KEYS",
        "PASS",
        "PWD",
        "PAT",
        "AUTH",
        "AUTHORIZATION",
        "BEARER",
        "COOKIE",
        "DSN",
        "JWT",
        "SAS",
    }
)
#: Working directories, in the environment of every shell.
_NO_SECRETS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
#: A value like a key's: long, of one piece, letters and digits mixed. `production` and
#: `http://localhost:8080` are none.
_CREDENTIAL = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_.+/=-]{16,}")
_LOGS = logging.Formatter()


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is likely to hold a credential."""
    name = name.upper()
    if name in _NO_SECRETS:
        return False
    return bool(_ANYWHERE.search(name)) or not _WORDS.isdisjoint(re.split(r"[^A-Z0-9]+", name))


class Redactor:
    """Replaces secrets in text. A value under 8 characters is left alone; of a value of several
    lines each long line is a secret."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for secret in _parts(value) for form in _forms(secret)}
        self._forms: Sequence[str] = sorted(
            (form for form in forms if len(form) >= MIN_LENGTH), key=len, reverse=True
        )
        self._in_json = tuple(
            {
                json.dumps(form, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
                for form in self._forms
            }
        )

    @classmethod
    def from_environ(
        cls, environ: Mapping[str, str], extra_names: Iterable[str] = (), values: Iterable[str] = ()
    ) -> "Redactor":
        """For the values of all variables whose names look secret (the inputs' among them), for
        those of `extra_names` whose values look so, and for further values."""
        named = [
            environ[name]
            for name in extra_names
            if name in environ and _CREDENTIAL.fullmatch(environ[name].strip())
        ]
        return cls(
            [*values, *named, *(value for name, value in environ.items() if looks_secret(name))]
        )

    def redact(self, text: str) -> str:
        """The text without secrets; repeated until none is left, since taking one out can bring the
        halves of another together."""
        while spans := self._spans(text):
            text = _masked(text, spans)
        return text

    def may_stand_in(self, data: bytes) -> bool:
        """Whether a secret may stand in some text of a JSON document (UTF-8 that escapes no more
        than it must)."""
        return any(form in data for form in self._in_json)

    def filter(self) -> logging.Filter:
        """A filter for a log's handler, which redacts messages and tracebacks."""
        return _LogFilter(self)

    def _spans(self, text: str) -> list[tuple[int, int]]:
        found = []
        for form in self._forms:
            start = text.find(form)
            while start >= 0:
                found.append((start, start + len(form)))
                start = text.find(form, start + 1)
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


def _masked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Overlapping spans are one: the rest of the second secret would stay otherwise."""
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


def _forms(secret: str) -> Iterator[str]:
    from html import (
        escape,  # late: it brings a table of all names of characters, and there may be no secret
    )

    yield secret
    yield from (
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        escape(secret),
    )
    for encoded in (
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    ):
        yield encoded
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), encoded)
    data = secret.encode("utf-8", "replace")
    for offset in range(3):
        core = _base64_core(data, offset)
        yield core
        yield core.translate({ord("+"): "-", ord("/"): "_"})


def _base64_core(data: bytes, offset: int) -> str:
    """The characters of a base64 text that this part of its data alone decides, when it begins
    `offset` bytes after a multiple of three."""
    text = base64.b64encode(b"\0" * offset + data).decode().rstrip("=")
    start = (0, 2, 3)[offset]
    stop = len(text) if (offset + len(data)) % 3 == 0 else len(text) - 1
    return text[start:stop]
