"""One HTTP endpoint as providers call it: connections that are kept, the limit of a call, failures in our words and classes."""

import asyncio
import email.utils
import functools
import json
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from agentevals_action.errors import AttemptError, TargetDead, TransientError

if TYPE_CHECKING:
    import ssl

    import httpx

_TRANSIENT = frozenset({408, 409, 429})
#: Not a limit of the rate, though it may be told as 429: no call will do better.
#: https://platform.openai.com/docs/guides/error-codes and https://platform.claude.com/docs/en/api/errors
_NO_CREDIT = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error", "enforced_spend_limit_reached"}
)
#: Bytes of a reply that are read.
REPLY_LIMIT = 10 * 1024 * 1024
#: Headers that are about a body as it travelled.
_OF_THE_TRANSFER = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_SHOWN = 500  # characters of a vendor's message that an error quotes


class Manner(Struct, frozen=True):
    """How an endpoint is spoken to and of: `url` is what paths are added to, `url_field` and `key_hint` the words for who has to mend the
    address or the key, `dead_codes` a vendor's codes for a refusal of everybody, `missing_hint` what to do at a 404, which is one too
    when it is given (a model that does not exist), `secrets` what no error may quote."""

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


class Answer(Struct, frozen=True):
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


class Endpoint:
    """A server that providers put requests to. Connections are kept for the calls that come after."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        # A client for each call at once, idle ones last used first: the pool inside one client looks at every connection for every
        # request, and fifty at once would wait for that and not for the server.
        self._idle: list[httpx.AsyncClient] = []

    async def post(self, path: str, body: Any, timeout: float) -> Any:
        """Puts a JSON body to a path below the URL and gives the decoded JSON; raises as `send` does, and AttemptError of kind
        `configuration` when the body cannot be JSON, of kind `target` when the reply is none."""
        try:
            content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        except ValueError as error:
            raise AttemptError("configuration", f"the prompt cannot be sent: {error}") from None
        answer = await self.send("POST", path, content, timeout, {"Content-Type": "application/json"})
        try:
            return answer.json()
        except ValueError as error:
            raise self.wrong(error) from None

    def wrong(self, error: Exception) -> AttemptError:
        """The error of a reply that is not what it has to be."""
        return AttemptError("target", f"{self.manner.host}: {self._hidden(str(error))}")

    def _hidden(self, text: str) -> str:
        for secret in filter(None, self.manner.secrets):
            text = text.replace(secret, "***")
        return text

    async def send(self, method: str, path: str, content: bytes | None, timeout: float, headers: Mapping[str, str] | None = None) -> Answer:
        """One request, `timeout` in seconds over all of it.

        Raises AttemptError of kind `timeout`; TransientError for a failed connection, 408, 409, 429 and 5xx; TargetDead for 401, 403 and
        what the vendor says for good; AttemptError for any other refusal.
        """
        import httpx

        client = self._idle.pop() if self._idle else self._opened()
        try:
            async with asyncio.timeout(timeout):
                request = client.build_request(method, path, content=content, headers=headers)
                response = await self._whole(await client.send(request, stream=True))
        except TimeoutError:
            raise AttemptError("timeout", f"no answer within {timeout:g} s") from None
        except httpx.TransportError as error:
            problem = f"the connection to {self.manner.host} failed: {str(error) or type(error).__name__}"
            raise TransientError(problem, hint=f"is it running, and is `{self.manner.url_field}` right?") from None
        except (httpx.InvalidURL, httpx.HTTPError) as error:
            raise AttemptError("target", f"{self.manner.host} cannot be asked: {str(error) or type(error).__name__}") from None
        finally:
            self._idle.append(client)
        if not response.is_success:
            raise self._refusal(response)
        return Answer(response.status_code, response.content)

    async def _whole(self, response: "httpx.Response") -> "httpx.Response":
        """The reply with its body, unpacked, of which no more is read than it may have."""
        import httpx

        body = bytearray()
        try:
            async for part in response.aiter_bytes():
                body += part
                if len(body) > REPLY_LIMIT:
                    raise self.wrong(ValueError(f"the reply is over {REPLY_LIMIT // 1024**2} MB"))
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_TRANSFER]
        return httpx.Response(response.status_code, headers=headers, content=bytes(body))

    async def close(self) -> None:
        """Closes the connections; a call afterwards opens them anew."""
        idle, self._idle = self._idle, []
        for client in idle:
            await client.aclose()

    def _opened(self) -> "httpx.AsyncClient":
        import httpx

        for value in self.manner.headers.values():
            if not (value.isascii() and value.isprintable()):  # an error of the library would show it
                raise AttemptError("configuration", "the key has characters that no header can carry")
        try:
            # A redirect would carry the key to where nobody sent it.
            return httpx.AsyncClient(
                base_url=httpx.URL(self.manner.url),
                headers=dict(self.manner.headers),
                timeout=None,  # noqa: S113 - the limit is over all of a call, in `send`, not over each read
                follow_redirects=False,
                verify=_certificates(),
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise AttemptError("configuration", f"`{self.manner.url_field}` cannot be used: {error}") from None

    def _refusal(self, response: "httpx.Response") -> AttemptError:
        manner, status = self.manner, response.status_code
        codes, message, asked = _vendor_error(response)
        told = f"{manner.host} answered {status}: {self._hidden(message)}"
        if status in (401, 403) or "API_KEY_INVALID" in codes:
            return TargetDead(told, manner.key_hint)
        if not codes.isdisjoint(_NO_CREDIT):
            return TargetDead(told, "the account has no credit left, or no way to be billed; see to it, or use another key")
        if (status == 404 and manner.missing_hint) or not codes.isdisjoint(manner.dead_codes):
            return TargetDead(told, manner.missing_hint or manner.key_hint)
        if status in _TRANSIENT or status >= 500:
            wait = retry_after(response.headers)
            return TransientError(told, asked if wait is None else wait, limited=status == 429)
        if response.is_redirect:
            return AttemptError("target", told, f"set `{manner.url_field}` to where it leads")
        return AttemptError("target", told)


@functools.cache
def _certificates() -> "ssl.SSLContext":
    """Whom to trust, read once for all clients."""
    import httpx

    return httpx.create_ssl_context()


def _vendor_error(response: "httpx.Response") -> tuple[frozenset[str], str, float | None]:
    """The vendor's codes, its message, and the seconds that it asks to wait in the body.

    `error` is an object, a string, or the body is the object itself; Google lists what it means under `details`.
    """
    try:
        data = response.json()
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, list) and data:
        data = data[0]
    error = data.get("error", data) if isinstance(data, Mapping) else None
    codes, message, asked = [], error, None
    if isinstance(error, Mapping):
        message = error.get("message") or error.get("detail")
        details = error.get("details")
        parts = [part for part in details if isinstance(part, Mapping)] if isinstance(details, list) else []
        codes = [error.get(name) for name in ("code", "type", "status")] + [part.get("reason") for part in parts]
        codes += [details.get("error_code")] if isinstance(details, Mapping) else []
        asked = next((_seconds(str(part["retryDelay"]).removesuffix("s")) for part in parts if "retryDelay" in part), None)
    text = message if isinstance(message, str) else response.text
    text = " ".join(text.split()) or response.reason_phrase
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return frozenset(str(code) for code in codes if code), shown, asked


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the server asks it: OpenAI's and Azure's `retry-after-ms`, or `Retry-After` in seconds or as a date."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    wanted = headers.get("retry-after")
    if wanted is None or (seconds := _seconds(wanted)) is not None:
        return None if wanted is None else seconds
    try:
        return max(email.utils.parsedate_to_datetime(wanted).timestamp() - time.time(), 0.0)
    except ValueError:  # no date either: our own backoff decides
        return None


def _seconds(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
