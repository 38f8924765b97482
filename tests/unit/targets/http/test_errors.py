"""Errors of the calls of an `HttpClient`."""

import asyncio
import email.utils
import time
from collections.abc import Mapping
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.targets.http.client import HttpClient, HttpReply
from agentevals_action.targets.http.errors import Service
from tests.support.openai_server import OpenAIServer, Reply, failure

HI = Reply(body={"said": "hi"})


def post(
    url: str, body: Any = None, *, timeout: float = 30, path: str = "ask", **fields: Any
) -> Any:
    async def posted() -> Any:
        client = HttpClient(Service(**{"url": f"{url}/", "key_hint": "mend the key", **fields}))
        try:
            return await client.post(path, {} if body is None else body, timeout)
        finally:
            await client.close()

    return asyncio.run(posted())


def refused(reply: Reply, **fields: Any) -> AttemptError:
    with OpenAIServer(script=[reply]) as server, pytest.raises(AttemptError) as caught:
        post(server.url, **fields)
    return caught.value


def test_post__a_body_there_and_one_back() -> None:
    with OpenAIServer(script=[HI]) as server:
        assert post(
            server.url, {"ä": ["\ud800", 1.5]}, path="a/b%20c?d=e", headers={"X-Key": "k"}
        ) == ({"said": "hi"}, None)
    (received,) = server.requests
    assert (received.path, received.body) == ("/v1/a/b%20c?d=e", {"ä": ["?", 1.5]})
    assert (received.headers["content-type"], received.headers["x-key"]) == (
        "application/json",
        "k",
    )


def test_post__what_is_no_json_is_not_sent() -> None:
    with (
        OpenAIServer(script=[HI]) as server,
        pytest.raises(AttemptError, match="the prompt cannot be sent") as caught,
    ):
        post(server.url, {"n": float("nan")})
    assert (caught.value.kind, server.requests) == ("configuration", [])


def test_send__another_method_without_a_body_and_after_a_close() -> None:
    async def sent(url: str) -> list[HttpReply]:
        client = HttpClient(Service(url=f"{url}/", key_hint=""))
        answers = []
        for _ in range(2):
            answers.append(await client.send("POST", "x", b"{}", 30))
            await client.close()
        return answers

    with OpenAIServer(script=[HI, HI]) as server:
        assert asyncio.run(sent(server.url)) == [HttpReply(b'{"said": "hi"}')] * 2


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_post__what_is_worth_repeating(status: int) -> None:
    error = refused(failure(status, "try later"))
    assert isinstance(error, TransientError)
    assert f"answered {status}: try later" in str(error)
    assert (error.retry_after, error.limited) == (None, status == 429)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "Retry-After": "7"}, 0.25),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
    ],
)
def test_post__the_wait_that_the_server_asks_for(
    headers: Mapping[str, str], seconds: float | None
) -> None:
    error = refused(failure(429, "slow down", headers=headers))
    assert isinstance(error, TransientError)
    assert error.retry_after == seconds


def test_post__the_wait_until_a_date() -> None:
    error = refused(
        failure(
            503,
            "busy",
            headers={"Retry-After": email.utils.formatdate(time.time() + 100, usegmt=True)},
        )
    )
    assert isinstance(error, TransientError)
    assert 50 < (error.retry_after or 0) <= 100


def test_post__the_wait_that_google_asks_for_in_the_body() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}]
    error = refused(
        Reply(
            status=429,
            body=[
                {"error": {"status": "RESOURCE_EXHAUSTED", "message": "slow", "details": details}}
            ],
        )
    )
    assert isinstance(error, TransientError)
    assert error.retry_after == 3.5


@pytest.mark.parametrize(
    ("reply", "hint"),
    [
        (failure(401, "who?"), "mend the key"),
        (failure(403, "not you"), "mend the key"),
        (failure(404, "no such model"), "mend the model"),
        (failure(400, "gone", "model_gone"), "mend the model"),
        (failure(429, "You exceeded your current quota", "insufficient_quota"), "no credit"),
        (
            Reply(
                status=400,
                body={"error": {"message": "bad key", "details": [{"reason": "API_KEY_INVALID"}]}},
            ),
            "mend the key",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.status),
)
def test_post__what_ends_the_target(reply: Reply, hint: str) -> None:
    error = refused(reply, missing_hint="mend the model", dead_codes=frozenset({"model_gone"}))
    assert isinstance(error, TargetDead)
    assert hint in error.hint


def test_post__a_path_that_is_missing_ends_nothing_where_it_is_not_said_to() -> None:
    assert type(refused(failure(404, "no such thing"))) is AttemptError


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            failure(400, "context length\nexceeded", "context_length_exceeded"),
            "answered 400: context length exceeded",
        ),
        (failure(422, "x" * 5000), "answered 422: xxx"),
        (Reply(status=400, body={"message": "flat"}), "answered 400: flat"),
        (Reply(status=400, body={"error": "a string"}), "answered 400: a string"),
        (Reply(status=400, body={"detail": "FastAPI's way"}), "answered 400: FastAPI's way"),
        (Reply(status=400, body=b"<html>bad</html>"), "answered 400: <html>bad</html>"),
        (Reply(status=400, body=b"[" * 100_000), "answered 400: [[["),
        (Reply(status=400, body=b""), "answered 400: Bad Request"),
        (Reply(body=b"<html>"), "the reply is not valid JSON"),
        (Reply(body=b"[" * 100_000), "nested more than 200 levels"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_post__an_error_of_this_call_alone(reply: Reply, message: str) -> None:
    error = refused(reply)
    assert type(error) is AttemptError
    assert error.kind == "target"
    assert message in str(error)
    assert len(str(error)) < 700


def test_post__a_redirect_is_not_followed() -> None:
    with OpenAIServer(script=[HI]) as other:
        error = refused(
            Reply(status=307, headers={"Location": f"{other.url}/"}, body=b"moved"),
            url_field="endpoint",
        )
    assert "answered 307: moved" in str(error)
    assert "`endpoint`" in error.hint
    assert other.requests == []


def test_post__an_error_names_the_host_and_no_secret() -> None:
    error = refused(failure(401, "the key sk-0123456789 is wrong"), secrets=("", "sk-0123456789"))
    assert str(error).startswith("127.0.0.1:")
    assert "the key *** is wrong" in str(error)


@pytest.mark.parametrize("before", range(470, 500, 5))
def test_post__an_error_that_is_cut_holds_no_piece_of_a_secret(before: int) -> None:
    error = refused(failure(400, "x" * before + "sk-0123456789"), secrets=("sk-0123456789",))
    assert "sk" not in str(error)


@pytest.mark.parametrize("key", ["sk-0123\n456789", "sk-0123456789ü", "sk-0123\x00456"])
def test_post__a_key_that_cannot_be_sent_is_not_shown(key: str) -> None:
    with (
        OpenAIServer(script=[HI]) as server,
        pytest.raises(AttemptError, match="no header can carry") as caught,
    ):
        post(server.url, headers={"Authorization": f"Bearer {key}"})
    assert "sk-" not in str(caught.value)
    assert server.requests == []


def test_post__a_dropped_connection_and_a_closed_port_are_worth_repeating() -> None:
    assert isinstance(refused(Reply(drop=True)), TransientError)
    with OpenAIServer() as server:
        url = server.url
    with pytest.raises(
        TransientError, match=r"the connection to 127\.0\.0\.1:\d+ failed: "
    ) as caught:
        post(url)
    assert caught.value.sentence.endswith(
        "; check that the server runs and that `base_url` is correct"
    )


def test_post__the_password_in_an_address_is_not_shown() -> None:
    with OpenAIServer() as server:
        url = server.url.replace("http://", "http://me:hush@")
    with pytest.raises(TransientError) as caught:
        post(url)
    assert "hush" not in str(caught.value)


def test_post__an_address_that_is_none() -> None:
    with pytest.raises(AttemptError, match="`base_url` cannot be used") as caught:
        post("http://[::1", timeout=5)
    assert caught.value.kind == "configuration"


def test_post__the_time_limit() -> None:
    with (
        OpenAIServer(script=[Reply(hold=True)]) as server,
        pytest.raises(AttemptError, match=r"no answer within 0\.3 s") as caught,
    ):
        post(server.url, timeout=0.3)
    assert caught.value.kind == "timeout"
