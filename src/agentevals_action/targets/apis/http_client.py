"""One HTTP endpoint as providers call it: connections that are kept, the limit of a call, failures
in our words and classes."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.targets.apis.statuses import phrase

if TYPE_CHECKING:
    from agentevals_action.targets.apis.connection import Connection, Headers, Reply
    from agentevals_action.targets.apis.proxies import Route

_TRANSIENT = frozenset({408, 409, 429})
#: Not a limit of the rate, though it may be told as 429: no call will do better.
#: https://platform.openai.com/docs/guides/error-codes and
#: https://platform.claude.com/docs/en/api/errors
_NO_CREDIT = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "billing_error",
        "enforced_spend_limit_reached",
    }
)
#: Bytes of a reply that are read.
REPLY_LIMIT = 10 * 1024 * 1024
#: Methods whose requests say how long their body is even when there is none.
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_SHOWN = 500  # characters of a server's words that an error quotes


@dataclass(frozen=True)
class Service:
    """How an endpoint is spoken to and of: `url` is what paths are added to, `url_field` and
    `key_hint` the words for who has to mend the address or the key, `dead_codes` a vendor's codes
    for a refusal of everybody, `missing_hint` what to do at a 404, which is one too when it is
    given (a model that does not exist), `secrets` what no error may quote."""

    url: str
    key_hint: str
    url_field: str = "base_url"
    headers: Mapping[str, str] = field(default_factory=dict)
    dead_codes: frozenset[str] = frozenset()
    missing_hint: str | None = None
    secrets: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """The server as errors name it, without a password."""
        return urlsplit(self.url).netloc.rpartition("@")[2]


@dataclass(frozen=True)
class Answer:
    """What the server said: `status` is 2xx, `body` the text as it came."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body decoded; ValueError when it is no JSON."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the reply is nested too deeply (a recursion without end?)") from None
        except ValueError:
            raise ValueError("the reply is not JSON") from None


class HttpClient:
    """A server that providers put requests to. Connections are kept for the calls that come
    after."""

    def __init__(self, manner: Service) -> None:
        self.manner = manner
        self._route: Route | None = None
        self._idle: list[
            Connection
        ] = []  # the one used last is used next, so that the others can grow old

    async def post(self, path: str, body: Any, timeout: float) -> Any:
        """Puts a JSON body to a path below the URL and gives the decoded JSON; raises as `send`
        does, and AttemptError of kind `configuration` when the body cannot be JSON, of kind
        `target` when the reply is none."""
        try:
            content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode(
                "utf-8", "replace"
            )
        except ValueError as error:
            raise AttemptError("configuration", f"the prompt cannot be sent: {error}") from None
        answer = await self.send(
            "POST", path, content, timeout, {"Content-Type": "application/json"}
        )
        try:
            return answer.json()
        except ValueError as error:
            raise self.wrong(error) from None

    def wrong(self, error: Exception) -> AttemptError:
        """The error of a reply that is not what it has to be."""
        return AttemptError("target", f"{self.manner.host}: {self._quoted(str(error))}")

    def _quoted(self, text: str) -> str:
        for secret in filter(
            None, self.manner.secrets
        ):  # before it is cut: nobody would know a piece of one again
            text = text.replace(secret, "***")
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

    async def send(
        self,
        method: str,
        path: str,
        content: bytes | None,
        timeout: float,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request, `timeout` in seconds over all of it.

        Raises AttemptError of kind `timeout`; TransientError for a failed connection, 408, 409, 429
        and 5xx; TargetDead for 401, 403 and what the vendor says for good; AttemptError for any
        other refusal."""
        import asyncio  # late: targets are read without an event loop
        import ssl

        route = self._route = self._route or self._found_route()
        asked = (
            method,
            self._target(route, path),
            self._headers(route, method, content, headers or {}),
            content,
        )
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                reply = await self._exchanged(route, *asked)
        except ssl.SSLCertVerificationError as error:
            hint = "if its authority is your own, name a file of its certificate in the variable SSL_CERT_FILE"
            raise TargetDead(
                f"the certificate of {route.told} is not trusted: {error.verify_message}", hint
            ) from None
        except OSError as error:  # TimeoutError is one, and so is the system's own
            if limit.expired():
                raise AttemptError("timeout", f"no answer within {timeout:g} s") from None
            problem = self._quoted(
                f"the connection to {route.told} failed: {str(error) or type(error).__name__}"
            )
            raise TransientError(
                problem, hint=f"is it running, and is `{self.manner.url_field}` right?"
            ) from None
        except ValueError as error:
            raise self.wrong(error) from None
        return self._answer(route, reply)

    async def _exchanged(
        self, route: "Route", method: str, target: str, headers: "Headers", content: bytes | None
    ) -> "Reply":
        from agentevals_action.targets.apis.connection import Connection

        connection = self._kept() or await Connection.open(route)
        try:
            return await connection.exchange(method, target, headers, content, REPLY_LIMIT)
        finally:
            if connection.is_reusable:
                self._idle.append(connection)
            else:
                connection.abort()

    def _kept(self) -> "Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable:
                return connection
            connection.abort()
        return None

    async def close(self) -> None:
        """Closes the connections; a call afterwards opens them anew."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()

    def _found_route(self) -> "Route":
        from agentevals_action.targets.apis.addresses import read_address
        from agentevals_action.targets.apis.proxies import route_to

        try:
            server = read_address(self.manner.url)
        except ValueError as error:
            raise AttemptError(
                "configuration", f"`{self.manner.url_field}` cannot be used: {error}"
            ) from None
        return route_to(server)

    def _target(self, route: "Route", path: str) -> str:
        try:
            return route.server.target(path)
        except ValueError as error:
            raise AttemptError(
                "target", f"{self.manner.host} cannot be asked: {self._quoted(str(error))}"
            ) from None

    def _headers(
        self, route: "Route", method: str, content: bytes | None, own: Mapping[str, str]
    ) -> "Headers":
        from agentevals_action.targets.apis.connection import AGENT
        from agentevals_action.targets.apis.unpacking import ENCODINGS

        headers = {
            "Host": route.server.netloc,
            "Accept": "*/*",
            "Accept-Encoding": ENCODINGS,
            "User-Agent": AGENT,
        }
        named = {
            name.lower(): (name, value)
            for given in (headers, self.manner.headers, own)
            for name, value in given.items()
        }
        if route.server.authorization:
            named["authorization"] = ("Authorization", route.server.authorization)
        if content is not None or method in _WITH_BODY:
            named["content-length"] = ("Content-Length", str(len(content or b"")))
        for _, value in named.values():
            if not (value.isascii() and value.isprintable()):  # never the value: it may be a key
                raise AttemptError(
                    "configuration", "the key has characters that no header can carry"
                )
        return [(name, value.strip()) for name, value in named.values()]

    def _answer(self, route: "Route", reply: "Reply") -> Answer:
        """The reply's body, unpacked, when it is one of success."""
        from agentevals_action.targets.apis.unpacking import unpacked

        is_success = 200 <= reply.status < 300
        try:
            body = unpacked(reply.body, reply.headers.get("content-encoding", ""), REPLY_LIMIT)
        except ValueError as error:
            if is_success:
                raise self.wrong(error) from None
            body = str(error).encode()  # the status says what it is worth, whatever its words were
        if is_success:
            return Answer(reply.status, body)
        if reply.status == 407 and (proxy := route.forwarder):
            raise route.refused(proxy, reply.status)
        raise self._refusal(replace(reply, body=body))

    def _refusal(self, reply: "Reply") -> AttemptError:
        manner, status = self.manner, reply.status
        codes, message, asked = _vendor_error(reply)
        told = f"{manner.host} answered {status}: {self._quoted(message)}"
        if status in (401, 403) or "API_KEY_INVALID" in codes:
            return TargetDead(told, manner.key_hint)
        if not codes.isdisjoint(_NO_CREDIT):
            return TargetDead(
                told,
                "the account has no credit left, or no way to be billed; see to it, or use another key",
            )
        if (status == 404 and manner.missing_hint) or not codes.isdisjoint(manner.dead_codes):
            return TargetDead(told, manner.missing_hint or manner.key_hint)
        if status in _TRANSIENT or status >= 500:
            wait = retry_after(reply.headers)
            return TransientError(told, asked if wait is None else wait, limited=status == 429)
        if 300 <= status < 400:
            return AttemptError("target", told, f"set `{manner.url_field}` to where it leads")
        return AttemptError("target", told)


def _vendor_error(reply: "Reply") -> tuple[frozenset[str], str, float | None]:
    """The vendor's codes, its message, and the seconds that it asks to wait in the body.

    `error` is an object, a string, or the body is the object itself; Google lists what it means
    under `details`."""
    try:
        data = json.loads(reply.body)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, list) and data:
        data = data[0]
    error = data.get("error", data) if isinstance(data, Mapping) else None
    codes, message, asked = [], error, None
    if isinstance(error, Mapping):
        message = error.get("message") or error.get("detail")
        details = error.get("details")
        parts = (
            [part for part in details if isinstance(part, Mapping)]
            if isinstance(details, list)
            else []
        )
        codes = [error.get(name) for name in ("code", "type", "status")] + [
            part.get("reason") for part in parts
        ]
        codes += [details.get("error_code")] if isinstance(details, Mapping) else []
        asked = next(
            (
                _seconds(str(part["retryDelay"]).removesuffix("s"))
                for part in parts
                if "retryDelay" in part
            ),
            None,
        )
    text = message if isinstance(message, str) else reply.body.decode("utf-8", "replace")
    text = " ".join(text.split()) or reply.reason or phrase(reply.status)
    return frozenset(str(code) for code in codes if code), text, asked


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the server asks it: OpenAI's and Azure's `retry-after-ms`, or
    `Retry-After` in seconds or as a date."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    wanted = headers.get("retry-after")
    if wanted is None or (seconds := _seconds(wanted)) is not None:
        return None if wanted is None else seconds
    from email.utils import parsedate_to_datetime  # late: nearly every server says seconds

    try:
        return max(parsedate_to_datetime(wanted).timestamp() - time.time(), 0.0)
    except ValueError:  # no date either: our own backoff decides
        return None


def _seconds(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
