"""What errors of HTTP calls mean: repeat the call, stop using the target, or this test alone."""

import email.utils
import json
import time
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.targets.models.errors import Service, connection_error, refusal

URL = "http://me:hush@agent.test:8000/ask"


def service(**fields: Any) -> Service:
    return Service(**{"url": "http://agent.test:8000/", "key_hint": "mend the key", **fields})


def refused(
    status: int, body: Any = b"", headers: Mapping[str, str] | None = None, **fields: Any
) -> AttemptError:
    request = httpx.Request("POST", URL)
    response = httpx.Response(status, headers=headers, request=request)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return refusal(service(**fields), response, content)


def error(text: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": text, **fields}}


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_refusal__a_temporary_one(status: int) -> None:
    found = refused(status, error("try later"))
    assert isinstance(found, TransientError)
    assert str(found) == f"agent.test:8000 answered {status}: try later"
    assert (found.retry_after, found.limited) == (None, status == 429)


IN_BODY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({"Retry-After": "7"}, [], 7),
        ({"Retry-After": "0.5"}, [IN_BODY], 0.5),
        ({"retry-after-ms": "250", "Retry-After": "7"}, [], 0.25),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, [], 0),
        ({"Retry-After": "soon"}, [], None),
        ({"Retry-After": "-5"}, [], None),
        ({"Retry-After": "inf"}, [], None),
        ({}, [IN_BODY], 3.5),
    ],
)
def test_refusal__the_wait_that_the_server_asks_for(
    headers: Mapping[str, str], details: list[Any], seconds: float | None
) -> None:
    found = refused(429, [error("slow", details=details)], headers)
    assert isinstance(found, TransientError)
    assert found.retry_after == seconds


def test_refusal__the_wait_until_a_date() -> None:
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    found = refused(503, error("busy"), {"Retry-After": date})
    assert isinstance(found, TransientError)
    assert 50 < (found.retry_after or 0) <= 100


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, error("context length\nexceeded"), "answered 400: context length exceeded"),
        (404, error("no such route"), "answered 404: no such route"),
        (422, error("x" * 5000), "answered 422: xxx"),
        (400, {"message": "flat"}, "answered 400: flat"),
        (400, {"error": "a string"}, "answered 400: a string"),
        (400, {"detail": "FastAPI's way"}, "answered 400: FastAPI's way"),
        (400, b"<html>bad</html>", "answered 400: <html>bad</html>"),
        (400, b"[" * 100_000, "answered 400: [[["),
        (400, b"", "answered 400: Bad Request"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusal__an_error_of_this_test_alone(status: int, body: Any, message: str) -> None:
    found = refused(status, body)
    assert (type(found), found.kind) == (AttemptError, "target")
    assert message in str(found)
    assert len(str(found)) < 700


def test_refusal__a_redirect_states_the_field() -> None:
    assert "`endpoint`" in refused(307, b"moved", url_field="endpoint").hint


@pytest.mark.parametrize("before", range(470, 500, 5))
def test_refusal__an_error_that_is_cut_has_no_part_of_a_secret(before: int) -> None:
    text = "x" * before + "sk-0123456789"
    assert "sk" not in str(refused(400, error(text), secrets=("", "sk-0123456789")))


def test_connection_error__names_the_host_and_the_field_without_a_password() -> None:
    found = connection_error(service(), httpx.URL(URL), httpx.ConnectError("no route"))
    assert isinstance(found, TransientError)
    assert found.sentence == (
        "the connection to agent.test:8000 failed: no route; check that the server runs and that "
        "`base_url` is correct"
    )


@pytest.mark.parametrize(
    ("cause", "hint"),
    [
        (httpx.ConnectError("certificate verify failed: self-signed"), "SSL_CERT_FILE"),
        (httpx.ProxyError("407 Proxy Authentication Required"), "`HTTPS_PROXY`"),
    ],
)
def test_connection_error__certificates_and_proxies(cause: Exception, hint: str) -> None:
    assert hint in connection_error(service(), httpx.URL(URL), cause).hint
