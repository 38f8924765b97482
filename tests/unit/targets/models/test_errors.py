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
from tests.support import data

CASES = data.read("formats/http_errors.yaml")
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


@pytest.mark.parametrize("case", CASES)
def test_refusal__of_this_test_or_of_this_moment(case: dict[str, Any]) -> None:
    status, body = case["status"], case["body"]
    content = body.encode() if isinstance(body, str) else body
    found = refused(status, content, case.get("headers"))
    if "again" in case:
        assert isinstance(found, TransientError)
        assert str(found) == f"agent.test:8000 answered {status}: try later"
        assert (found.retry_after, found.limited) == (case.get("wait"), status == 429)
    else:
        assert (type(found), found.kind) == (AttemptError, "target")
        assert str(found) == f"agent.test:8000 answered {status}: {case['text']}"


@pytest.mark.parametrize("body", [error("x" * 5000), b"[" * 100_000], ids=["long", "deep"])
def test_refusal__a_long_text_is_cut(body: Any) -> None:
    assert 400 < len(str(refused(422, body))) < 700


def test_refusal__the_wait_until_a_date() -> None:
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    found = refused(503, error("busy"), {"Retry-After": date})
    assert isinstance(found, TransientError)
    assert 50 < (found.retry_after or 0) <= 100


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
