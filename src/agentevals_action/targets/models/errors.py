"""Errors of HTTP calls: whether to repeat the call, to stop using the target, what the user can
do."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.request import getproxies

import httpx

from agentevals_action.errors import AttemptError, NoCredit, TargetDead, TransientError
from agentevals_action.formatting import cut
from agentevals_action.validation.json_values import amount_in, decode_json

_TRANSIENT = frozenset({408, 409, 429})
#: Codes of an account that cannot pay. A vendor may send them with 429, but no repetition helps.
#: https://platform.openai.com/docs/guides/error-codes,
#: https://platform.claude.com/docs/en/api/errors and, of a virtual key,
#: https://docs.litellm.ai/docs/proxy/users
_NO_CREDIT = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_spend_limit_exceeded",
        "budget_exceeded",
        "billing_hard_limit_reached",
        "billing_not_active",
        "billing_error",
        "enforced_spend_limit_reached",
    }
)
_QUOTE_LIMIT = 500  # characters of a server's message in an error


@dataclass(frozen=True)
class Service:
    """A server, and how errors describe it.

    `url`, which is valid, is the address of each request; `url_field` names the
    field of the target that holds it. `key_hint` is the advice for a refused key. `dead_codes` are
    the vendor's error codes that end all calls; so does a 404 if `missing_hint` is set. `secrets`
    never appear in errors. A server that `is_local` is not asked through a proxy."""

    url: str
    key_hint: str
    url_field: str = "base_url"
    headers: Mapping[str, str] = field(default_factory=dict)
    dead_codes: frozenset[str] = frozenset()
    missing_hint: str | None = None
    secrets: tuple[str, ...] = ()
    is_local: bool = False

    def quote(self, text: str) -> str:
        """A message of the server, without secrets, cut to a readable length."""
        for secret in filter(None, self.secrets):  # before the cut, which may leave a part of one
            text = text.replace(secret, "***")
        return cut(text, _QUOTE_LIMIT)


def connection_error(service: Service, url: httpx.URL, error: Exception) -> AttemptError:
    """The error for a connection that could not be made or was lost."""
    problem = f"the connection to {host(url)} failed: {str(error) or type(error).__name__}"
    hint = f"check that the server runs and that `{service.url_field}` is correct"
    if isinstance(error, httpx.ProxyError) or getproxies():
        hint += ", and the proxy in `HTTP_PROXY`, `HTTPS_PROXY` or `ALL_PROXY`"
    if "certificate" in problem.lower():
        hint = "name a file with the certificate of your own authority in SSL_CERT_FILE"
    return TransientError(service.quote(problem), hint=hint)


def refusal(service: Service, response: httpx.Response, body: bytes) -> AttemptError:
    """The error for a reply whose status is not 2xx."""
    status = response.status_code
    codes, message, body_wait = _vendor_error(body)
    text = service.quote(message or response.reason_phrase or "it gave no reason")
    problem = f"{host(response.url)} answered {status}: {text}"
    if status in (401, 403) or "API_KEY_INVALID" in codes:
        return TargetDead(problem, service.key_hint)
    if codes & _NO_CREDIT:
        return NoCredit(problem)
    if (status == 404 and service.missing_hint) or codes & service.dead_codes:
        return TargetDead(problem, service.missing_hint or service.key_hint)
    if status in _TRANSIENT or status >= 500:
        wait = retry_after(response.headers)
        return TransientError(problem, body_wait if wait is None else wait, limited=status == 429)
    hint = f"set `{service.url_field}` to its new address" if response.is_redirect else ""
    return AttemptError("target", problem, hint)


def host(url: httpx.URL) -> str:
    """The host and port of a URL, without a password."""
    return url.netloc.decode("ascii")


def _vendor_error(body: bytes) -> tuple[frozenset[str], str, float | None]:
    """The codes and the message of a vendor's error, and the seconds to wait that it states.

    `error` is an object, a string, or the body itself is the object; Google lists codes and the
    delay under `details`."""
    data = decode_json(body)
    if isinstance(data, list) and data:
        data = data[0]
    error = data.get("error", data) if isinstance(data, Mapping) else None
    message, codes, wait = error, list[Any](), None
    if isinstance(error, Mapping):
        message = error.get("message") or error.get("detail")
        details = error.get("details")
        listed = details if isinstance(details, list) else [details]
        parts = [part for part in listed if isinstance(part, Mapping)]
        codes = [error.get("code"), error.get("type"), error.get("status")]
        codes += [part.get(name) for part in parts for name in ("reason", "error_code")]
        delays = [str(part["retryDelay"]) for part in parts if "retryDelay" in part]
        wait = amount_in(delays[0].removesuffix("s")) if delays else None
    text = message if isinstance(message, str) else body.decode("utf-8", "replace")
    return frozenset(str(code) for code in codes if code), " ".join(text.split()), wait


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait that a server requests: `retry-after-ms` of OpenAI and Azure, or
    `Retry-After` in seconds or as a date; None if there is none."""
    milliseconds = amount_in(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := amount_in(value)) is not None:
        return seconds
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except ValueError:
        return None
