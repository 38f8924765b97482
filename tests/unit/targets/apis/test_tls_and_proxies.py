"""The ways to a server: TLS and whom it trusts, the proxies that the environment names."""

import asyncio
from pathlib import Path

import pytest

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.targets.apis.http_client import HttpClient
from agentevals_action.targets.apis.http_errors import Service
from tests.support.certificates import Identity, identity
from tests.support.raw_server import Connection, RawServer, Request, proxy_to, replies, reply

HI = reply()
#: A host that no name server knows: what is asked there can only have gone by a proxy.
ELSEWHERE = "agent.invalid"
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*VARIABLES, *map(str.lower, VARIABLES), "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return identity(
        tmp_path_factory.mktemp("tls") / "known.pem", "127.0.0.1", "localhost", ELSEWHERE
    )


def trust(environment: pytest.MonkeyPatch, who: Identity) -> None:
    environment.setenv("SSL_CERT_FILE", str(who.path))


def ask(url: str, times: int = 1) -> list[bytes]:
    async def asked() -> list[bytes]:
        client = HttpClient(
            Service(url=f"{url}/v1/", key_hint="", headers={"Authorization": "Bearer k"})
        )
        try:
            return [(await client.send("POST", "ask", b"{}", 30)).body for _ in range(times)]
        finally:
            await client.close()

    return asyncio.run(asked())


def failed(url: str, kind: type[AttemptError]) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        ask(url)
    assert type(caught.value) is kind, caught.value
    return caught.value


def test_tls__with_a_certificate_that_is_trusted(
    environment: pytest.MonkeyPatch, known: Identity
) -> None:
    trust(environment, known)
    protocols = []

    def script(connection: Connection) -> None:
        protocols.append(connection.socket.selected_alpn_protocol())  # type: ignore[attr-defined]  # it is a socket of TLS here
        replies(HI, HI, HI)(connection)

    with RawServer(script, known.server_side()) as server:
        assert ask(server.url, 3) == [b"hi"] * 3
        server.wait_closed()
    assert (server.connections, protocols) == (1, ["http/1.1"])


def test_tls__a_long_reply(environment: pytest.MonkeyPatch, known: Identity) -> None:
    trust(environment, known)
    with RawServer(replies(reply(b"x" * 9_000_000)), known.server_side()) as server:
        assert ask(server.url) == [b"x" * 9_000_000]


@pytest.mark.parametrize("trusting", ["the system", "another"])
def test_tls__with_a_certificate_that_is_not_trusted(
    environment: pytest.MonkeyPatch, known: Identity, tmp_path: Path, trusting: str
) -> None:
    if trusting == "another":
        trust(environment, identity(tmp_path / "another.pem", "127.0.0.1"))
    with RawServer(replies(HI), known.server_side()) as server:
        error = failed(server.url, TargetDead)
    assert f"the certificate of {server.netloc} is not trusted: self-signed certificate" in str(
        error
    )
    assert "SSL_CERT_FILE" in error.hint
    assert server.requests == []


def test_tls__with_a_certificate_of_another_host(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = identity(tmp_path / "other.pem", ELSEWHERE)
    trust(environment, other)
    with RawServer(replies(HI), other.server_side()) as server:
        assert "is not trusted: IP address mismatch" in str(failed(server.url, TargetDead))
    assert server.requests == []


def test_tls__to_a_server_that_has_none(environment: pytest.MonkeyPatch) -> None:
    with RawServer(
        lambda connection: connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    ) as server:
        error = failed(server.url.replace("http:", "https:"), TransientError)
    assert f"the connection to {server.netloc} failed: " in str(error)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_proxy__is_told_the_whole_address(environment: pytest.MonkeyPatch, variable: str) -> None:
    with RawServer(replies(HI, HI)) as proxy:
        environment.setenv(variable, proxy.url.replace("//", "//me:h%40sh@"))
        assert ask(f"http://{ELSEWHERE}:8080", 2) == [b"hi"] * 2
    asked: Request = proxy.requests[1]
    assert asked.line == f"POST http://{ELSEWHERE}:8080/v1/ask HTTP/1.1"
    assert (asked.headers["host"], asked.proxy_user, asked.headers["authorization"]) == (
        f"{ELSEWHERE}:8080",
        "me:h@sh",
        "Bearer k",
    )
    assert proxy.connections == 1


def test_proxy__without_a_scheme_or_a_user(environment: pytest.MonkeyPatch) -> None:
    with RawServer(replies(HI)) as proxy:
        environment.setenv("HTTP_PROXY", proxy.netloc)
        assert ask(f"http://{ELSEWHERE}") == [b"hi"]
    (asked,) = proxy.requests
    assert asked.line == f"POST http://{ELSEWHERE}/v1/ask HTTP/1.1"
    assert "proxy-authorization" not in asked.headers


@pytest.mark.parametrize("named", ["*", "127.0.0.1", "other, 127.0.0.1:PORT"])
def test_no_proxy__is_asked_straight(environment: pytest.MonkeyPatch, named: str) -> None:
    with RawServer(replies(HI)) as server, RawServer(replies(HI)) as proxy:
        environment.setenv("ALL_PROXY", proxy.url)
        environment.setenv("NO_PROXY", named.replace("PORT", str(server.port)))
        assert ask(server.url) == [b"hi"]
    assert server.requests[0].line == "POST /v1/ask HTTP/1.1"
    assert proxy.connections == 0


@pytest.mark.parametrize("named", ["", "invalid.example", "127.0.0.2"])
def test_no_proxy__of_others_changes_nothing_on_the_loopback_either(
    environment: pytest.MonkeyPatch, named: str
) -> None:
    with RawServer(replies(HI)) as server, RawServer(replies(HI)) as proxy:
        environment.setenv("HTTP_PROXY", proxy.url)
        environment.setenv("NO_PROXY", named)
        assert ask(server.url) == [b"hi"]
    assert (server.connections, proxy.connections) == (0, 1)


def test_proxy__that_wants_to_know_who_asks(environment: pytest.MonkeyPatch) -> None:
    with RawServer(
        replies(reply(b"", status="407 Who are you? Not Basic dXNlcjpwYXNzd29yZA=="))
    ) as proxy:
        environment.setenv("HTTP_PROXY", proxy.url)
        error = failed(f"http://{ELSEWHERE}", TargetDead)
    assert (
        str(error)
        == f"the proxy {proxy.netloc} answered 407 Proxy Authentication Required when asked for {ELSEWHERE}"
    )
    assert "give HTTP_PROXY a user and password" in error.hint


def test_proxy__that_is_not_there(environment: pytest.MonkeyPatch) -> None:
    with RawServer(replies()) as proxy:
        pass
    environment.setenv("HTTP_PROXY", proxy.url.replace("//", "//me:hush@"))
    error = failed(f"http://{ELSEWHERE}", TransientError)
    assert f"the connection to {ELSEWHERE} failed: " in str(error)
    assert f"HTTP_PROXY names the proxy {proxy.netloc}" in error.hint
    assert "hush" not in error.sentence


@pytest.mark.parametrize(
    "url",
    ["socks5://me:hush@127.0.0.1:1080", "ftp://me:hush@127.0.0.1", "http://me:hush@127.0.0.1:hush"],
)
def test_proxy__that_cannot_be_used(environment: pytest.MonkeyPatch, url: str) -> None:
    environment.setenv("HTTPS_PROXY", url)
    error = failed(f"https://{ELSEWHERE}", AttemptError)
    assert error.kind == "configuration"
    assert "the proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names" in str(error)
    assert "hush" not in error.sentence


@pytest.mark.parametrize("is_secure", [False, True], ids=["http", "https"])
def test_tunnel__with_tls_behind_the_proxy(
    environment: pytest.MonkeyPatch, known: Identity, is_secure: bool
) -> None:
    trust(environment, known)
    with RawServer(replies(HI, HI), known.server_side()) as server:
        tunnel = proxy_to({f"{ELSEWHERE}:443": server.port})
        with RawServer(tunnel, known.server_side() if is_secure else None) as proxy:
            environment.setenv("https_proxy", proxy.url.replace("//", "//me:hush@"))
            assert ask(f"https://{ELSEWHERE}", 2) == [b"hi"] * 2
    (connect,) = proxy.requests
    assert (connect.line, connect.headers["host"], connect.proxy_user) == (
        f"CONNECT {ELSEWHERE}:443 HTTP/1.1",
        f"{ELSEWHERE}:443",
        "me:hush",
    )
    assert "authorization" not in connect.headers
    assert [asked.line for asked in server.requests] == ["POST /v1/ask HTTP/1.1"] * 2
    assert server.requests[0].headers["host"] == ELSEWHERE
    assert "proxy-authorization" not in server.requests[0].headers
    assert (proxy.connections, server.connections) == (1, 1)


def test_tunnel__to_a_server_that_is_not_trusted(
    environment: pytest.MonkeyPatch, known: Identity
) -> None:
    with (
        RawServer(replies(HI), known.server_side()) as server,
        RawServer(proxy_to({f"{ELSEWHERE}:443": server.port})) as proxy,
    ):
        environment.setenv("HTTPS_PROXY", proxy.url)
        assert "is not trusted: self-signed certificate" in str(
            failed(f"https://{ELSEWHERE}", TargetDead)
        )
    assert server.requests == []


@pytest.mark.parametrize(
    ("status", "kind", "hint"),
    [
        ("407 Proxy Authentication Required", TargetDead, "give HTTPS_PROXY a user and password"),
        ("403 Forbidden", TargetDead, "NO_PROXY"),
        ("502 Bad Gateway", TransientError, ""),
    ],
)
def test_tunnel__that_is_refused(
    environment: pytest.MonkeyPatch, status: str, kind: type[AttemptError], hint: str
) -> None:
    with RawServer(proxy_to({}, reply(b"no", status=status))) as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url)
        error = failed(f"https://{ELSEWHERE}", kind)
        proxy.wait_closed()
    assert str(error) == f"the proxy {proxy.netloc} answered {status} when asked for {ELSEWHERE}"
    assert hint in error.hint


def test_tunnel__by_what_is_no_proxy(environment: pytest.MonkeyPatch) -> None:
    with RawServer(lambda connection: connection.send(b"SSH-2.0\r\n\r\n")) as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url)
        assert "illegal status line" in str(failed(f"https://{ELSEWHERE}", TransientError))
