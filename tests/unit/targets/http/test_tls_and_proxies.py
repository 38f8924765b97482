"""The ways to a server: TLS and whom it trusts, the proxies that the environment names."""

import asyncio

import pytest

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.targets.http.client import HttpClient
from agentevals_action.targets.http.errors import Service
from tests.support.certificates import Identity, identity
from tests.support.raw_server import Connection, RawServer, Request, replies, reply

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


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
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


def test_no_proxy__is_asked_straight(environment: pytest.MonkeyPatch) -> None:
    with RawServer(replies(HI)) as server, RawServer(replies(HI)) as proxy:
        environment.setenv("ALL_PROXY", proxy.url)
        environment.setenv("NO_PROXY", "127.0.0.1")
        assert ask(server.url) == [b"hi"]
    assert server.requests[0].line == "POST /v1/ask HTTP/1.1"
    assert proxy.connections == 0


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


def test_tls__with_a_certificate_that_is_not_trusted(known: Identity) -> None:
    with RawServer(replies(HI), known.server_side()) as server:
        error = failed(server.url, TransientError)
    assert "certificate verify failed: self-signed certificate" in str(error)
    assert "SSL_CERT_FILE" in error.hint
    assert server.requests == []


def test_proxy__that_refuses_or_is_not_there(environment: pytest.MonkeyPatch) -> None:
    refusal = reply(b"no", status="407 Proxy Authentication Required")
    with RawServer(replies(refusal)) as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url.replace("//", "//me:hush@"))
        refused = failed(f"https://{ELSEWHERE}", TransientError)
    missing = failed(f"https://{ELSEWHERE}", TransientError)
    assert "407 Proxy Authentication Required" in str(refused)
    assert "`HTTPS_PROXY`" in refused.hint
    assert "hush" not in refused.sentence + missing.sentence
