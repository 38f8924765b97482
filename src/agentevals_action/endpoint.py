"""One HTTP endpoint as providers call it: a pooled client, the limit of a call, every failure in the words and classes of ours."""

import asyncio
import email.utils
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentevals_action.errors import AttemptError, TargetDead, TransientError

if TYPE_CHECKING:
    import httpx

_TRANSIENT = frozenset({408, 409, 429})
_SHOWN = 500  # characters of a vendor's message that an error quotes


@dataclass(frozen=True)
class Manner:
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


class Endpoint:
    """A server that providers put requests to. One client, opened at the first call, for all of them."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self._client: httpx.AsyncClient | None = None

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
        return AttemptError("target", f"{self.manner.host}: {error}")

    async def send(
        self, method: str, path: str, content: bytes | None, timeout: float, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request, `timeout` in seconds over all of it.

        Raises AttemptError of kind `timeout`; TransientError for a failed connection, 408, 409, 429 and 5xx; TargetDead for 401, 403 and
        what the vendor says for good; AttemptError for any other refusal.
        """
        import httpx

        client = self._opened()
        try:
            async with asyncio.timeout(timeout):
                response = await client.request(method, path, content=content, headers=headers)
        except TimeoutError:
            raise AttemptError("timeout", f"no answer within {timeout:g} s") from None
        except httpx.TransportError as error:
            raise TransientError(f"the connection to {self.manner.host} failed: {str(error) or type(error).__name__}") from None
        except (httpx.InvalidURL, httpx.HTTPError) as error:
            raise AttemptError("target", f"{self.manner.host} cannot be asked: {str(error) or type(error).__name__}") from None
        if not response.is_success:
            raise self._refusal(response)
        return Answer(response.status_code, response.content)

    async def close(self) -> None:
        """Closes the connections; a call afterwards opens them anew."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _opened(self) -> "httpx.AsyncClient":
        import httpx

        if self._client is None:
            for value in self.manner.headers.values():
                if not (value.isascii() and value.isprintable()):  # an error of the library would show it
                    raise AttemptError("configuration", "the key has characters that no header can carry")
            try:
                url = httpx.URL(self.manner.url)
                # A redirect would carry the key to where nobody sent it.
                self._client = httpx.AsyncClient(
                    base_url=url,
                    headers=dict(self.manner.headers),
                    timeout=None,  # noqa: S113 - the limit is over all of a call, in `send`, not over each read
                    follow_redirects=False,
                )
            except (httpx.InvalidURL, ValueError) as error:
                raise AttemptError("configuration", f"`{self.manner.url_field}` cannot be used: {error}") from None
        return self._client

    def _refusal(self, response: "httpx.Response") -> AttemptError:
        manner, status = self.manner, response.status_code
        codes, message, asked = _vendor_error(response)
        for secret in filter(None, manner.secrets):
            message = message.replace(secret, "***")
        told = f"{manner.host} answered {status}: {message}"
        if status in (401, 403) or "API_KEY_INVALID" in codes:
            return TargetDead(told, manner.key_hint)
        if (status == 404 and manner.missing_hint) or not codes.isdisjoint(manner.dead_codes):
            return TargetDead(told, manner.missing_hint or manner.key_hint)
        if status in _TRANSIENT or status >= 500:
            wait = retry_after(response.headers)
            return TransientError(told, asked if wait is None else wait, limited=status == 429)
        if response.is_redirect:
            return AttemptError("target", told, f"set `{manner.url_field}` to where it leads")
        return AttemptError("target", told)


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
