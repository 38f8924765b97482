"""`openai`: a model behind OpenAI's chat completions, or any server that speaks them."""

import asyncio
import email.utils
import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from agentevals_action.chat import chat_messages, read_completion
from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.trace import Trace
from agentevals_action.providers import base

if TYPE_CHECKING:
    import httpx

DEFAULT_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
_TRANSIENT = frozenset({408, 409, 429})
_OWN_FIELDS = ("model", "messages", "stream", "n")
_SHOWN = 500  # characters of a vendor's message that an error quotes


class OpenAI(base.Options):
    """A model behind OpenAI's chat completions, or any server that speaks them."""

    provider: ClassVar[str] = "openai"
    is_model: ClassVar[bool] = True
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"base_url": ("endpoint",)}

    model: str = Field(description="The model's name, as the server knows it.", min_length=1)
    base_url: str | None = Field(default=None, description=f"Where the API begins, /v1 included; {DEFAULT_URL} by default.")
    api_key: str | None = Field(default=None, description=f"The key, as `${{{{ NAME }}}}`; the variable {KEY_VARIABLE} by default.")
    config: dict[str, Any] = Field(
        default_factory=dict, description="Fields of the request, passed on as they are: temperature, max_tokens, …"
    )
    api_format: str = Field(default="chat", description="`chat`.")

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, url: str | None) -> str | None:
        if url is not None and "${{" not in url:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("write a URL that begins with http:// or https://")
        return url

    @field_validator("config")
    @classmethod
    def _leaves_our_fields(cls, config: dict[str, Any]) -> dict[str, Any]:
        for name in _OWN_FIELDS:
            if name in config:
                raise ValueError(f"`{name}` cannot be set in `config`; {'use the field `model`' if name == 'model' else 'leave it out'}")
        return config

    @field_validator("api_format")
    @classmethod
    def _is_chat(cls, name: str) -> str:
        if name == "responses":
            raise ValueError("`api_format: responses` is not supported by this version yet; use `chat`")
        if name != "chat":
            raise ValueError("`api_format` is `chat`")
        return name

    def variables(self) -> Sequence[str]:
        """The usual key's variable, when neither a key nor a server is given."""
        # A server of one's own often wants no key; one that does answers 401, which says so.
        return () if self.api_key is not None or self.base_url is not None else (KEY_VARIABLE,)

    def connect(self, surroundings: base.Surroundings) -> base.Provider:
        """The model, with the key given or the usual variable's."""
        return _Connected(self, self.api_key or surroundings.variables.get(KEY_VARIABLE))


class _Connected:
    def __init__(self, options: OpenAI, key: str | None) -> None:
        self._options = options
        self._key = (key or "").strip()  # a secret is easily stored with the end of its line
        self._client: httpx.AsyncClient | None = None

    async def complete(self, request: base.Request) -> Trace:
        import httpx

        try:
            body = {**self._options.config, "model": self._options.model, "messages": chat_messages(request.messages)}
            content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be sent: {error}") from None
        try:
            async with asyncio.timeout(request.timeout):
                response = await self._opened().post("chat/completions", content=content)
        except TimeoutError:
            raise AttemptError("timeout", f"no answer within {request.timeout:g} s") from None
        except httpx.TransportError as error:
            raise TransientError(f"the connection to {self._host()} failed: {str(error) or type(error).__name__}") from None
        except (httpx.InvalidURL, httpx.HTTPError) as error:
            raise AttemptError("target", f"{self._host()} cannot be asked: {str(error) or type(error).__name__}") from None
        if not response.is_success:
            raise self._refusal(response)
        try:
            return read_completion(response.json())
        except (ValueError, RecursionError) as error:
            problem = "the reply is not JSON" if isinstance(error, json.JSONDecodeError) else str(error)
            raise AttemptError("target", f"{self._host()}: {problem}") from None

    async def close(self) -> None:
        """Closes the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _opened(self) -> "httpx.AsyncClient":
        import httpx

        if self._client is None:
            headers = {"Content-Type": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            if not (self._key.isascii() and self._key.isprintable()):  # an error of the library would show it
                raise AttemptError("configuration", "the key has characters that no header can carry")
            try:
                url = httpx.URL((self._options.base_url or DEFAULT_URL).rstrip("/") + "/")
                # A redirect would carry the key to where nobody sent it.
                self._client = httpx.AsyncClient(
                    base_url=url,
                    headers=headers,
                    timeout=None,  # noqa: S113 - the limit is over all of a call, in `complete`, not over each read
                    follow_redirects=False,
                )
            except (httpx.InvalidURL, ValueError) as error:
                raise AttemptError("configuration", f"`base_url` cannot be used: {error}") from None
        return self._client

    def _host(self) -> str:
        return urlsplit(self._options.base_url or DEFAULT_URL).netloc.rpartition("@")[2]

    def _refusal(self, response: "httpx.Response") -> AttemptError:
        status = response.status_code
        code, message = _vendor_error(response)
        told = f"{self._host()} answered {status}: {message.replace(self._key, '***') if self._key else message}"
        if status in _TRANSIENT or status >= 500:
            return TransientError(told, _retry_after(response.headers))
        if status in (401, 403):
            return TargetDead(told, f"set `api_key`, or the variable {KEY_VARIABLE}, to a key that may use {self._options.model}")
        if status == 404 or code == "model_not_found":
            return TargetDead(told, f"check that the server knows the model {self._options.model}, and that `base_url` is right")
        if response.is_redirect:
            return AttemptError("target", told, "set `base_url` to where it leads")
        return AttemptError("target", told)


def _vendor_error(response: "httpx.Response") -> tuple[str, str]:
    """The vendor's code and message: `error` is an object, a string, or the body is the object itself."""
    try:
        data = response.json()
    except (ValueError, RecursionError):
        data = None
    error = data.get("error", data) if isinstance(data, Mapping) else None
    if isinstance(error, Mapping):
        message = error.get("message") or error.get("detail")
        code = str(error.get("code") or error.get("type") or "")
    else:
        message, code = error, ""
    text = message if isinstance(message, str) else response.text
    text = " ".join(text.split()) or response.reason_phrase
    return code, text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the server asks it: OpenAI's `retry-after-ms`, or `Retry-After` in seconds or as a date."""
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
