"""Addresses of HTTP servers: read and checked, put together with paths, written as requests need
them."""

import base64
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

_PORTS = {"http": 80, "https": 443}
_WHOLE = re.compile(r"https?://", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NAME = re.compile(r"[a-z0-9._-]+")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
#: What stays as it is, besides letters and digits; what is encoded already is not encoded again.
_IN_PATH = "!$%&'()*+,-./:;=@[\\]^_|~"
_IN_QUERY = _IN_PATH + "?`{}"


@dataclass(frozen=True)
class Address:
    """A server and a place on it: `scheme` is `http` or `https`, `host` ASCII, an IPv6 one without
    brackets, `path` encoded and with its query, `authorization` the header that a user and password
    in the URL make."""

    scheme: str
    host: str
    port: int
    path: str = "/"
    authorization: str | None = None

    @property
    def authority(self) -> str:
        """Host and port, as CONNECT and the variable NO_PROXY name a server."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def netloc(self) -> str:
        """Host and port as a `Host` header names them: without the port that the scheme has
        anyway."""
        return (
            self.authority.removesuffix(f":{self.port}")
            if self.port == _PORTS[self.scheme]
            else self.authority
        )

    def target(self, path: str) -> str:
        """What a request asks for: a path below this one, or what a whole URL of this same server
        says; ValueError when it is of another one, where the key must not go, or cannot be sent."""
        if not _WHOLE.match(path):
            return self.path.rstrip("/") + "/" + _encoded(path.lstrip("/"))
        whole = read_address(path)
        if (whole.scheme, whole.host, whole.port) != (self.scheme, self.host, self.port):
            raise ValueError(f"the URL leads to another server, {whole.netloc}")
        return whole.path


def read_address(url: str) -> Address:
    """The address that a URL is; ValueError, which shows neither user nor password, when it is none
    of http or https."""
    _check_sendable(url)
    try:
        parts = urlsplit(url)
        host, scheme = parts.hostname, parts.scheme
    except ValueError:  # its words may quote a password
        raise ValueError("it is no URL") from None
    if scheme not in _PORTS or not host:
        raise ValueError("it does not begin with http:// or https:// and a host")
    try:
        port = _PORTS[scheme] if parts.port is None else parts.port
    except ValueError:
        raise ValueError("its port is no number up to 65535") from None
    path = _encoded(f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/")
    return Address(scheme, _ascii(host), port, path, _basic(parts.username, parts.password))


def _ascii(host: str) -> str:
    if ":" in host:
        return host
    try:
        name = host.encode("idna").decode("ascii")
    except UnicodeError:
        raise ValueError("its host is no name") from None
    if not _NAME.fullmatch(name):
        raise ValueError("its host is no name")
    return name


def _basic(user: str | None, password: str | None) -> str | None:
    if not user and not password:
        return None
    pair = f"{unquote(user or '')}:{unquote(password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"


def _encoded(path: str) -> str:
    _check_sendable(path)
    place, mark, query = _STRAY_PERCENT.sub("%25", path.partition("#")[0]).partition("?")
    return quote(place, _IN_PATH) + mark + quote(query, _IN_QUERY)


def _check_sendable(text: str) -> None:
    if found := _CONTROL.search(text):
        raise ValueError(f"it holds a character that no URL can, as number {found.start() + 1}")
