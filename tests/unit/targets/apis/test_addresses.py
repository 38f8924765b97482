import pytest

from agentevals_action.targets.apis.addresses import read_address


@pytest.mark.parametrize(
    ("url", "netloc", "authority", "path"),
    [
        ("http://Host", "host", "host:80", "/"),
        ("HTTPS://host:443/v1/", "host", "host:443", "/v1/"),
        ("https://host:80", "host:80", "host:80", "/"),
        ("http://[::1]:8080/a?b=c#d", "[::1]:8080", "[::1]:8080", "/a?b=c"),
        ("http://[::1]", "[::1]", "[::1]:80", "/"),
        ("http://bücher.example/ü", "xn--bcher-kva.example", "xn--bcher-kva.example:80", "/%C3%BC"),
        ("http://me:hush@my_host.:1/", "my_host.:1", "my_host.:1", "/"),
        ("http://host?a=b c", "host", "host:80", "/?a=b%20c"),
    ],
)
def test_address__of_a_url(url: str, netloc: str, authority: str, path: str) -> None:
    address = read_address(url)
    assert (address.netloc, address.authority, address.path) == (netloc, authority, path)


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("http://me:hush@host", "Basic bWU6aHVzaA=="),
        ("http://me@host", "Basic bWU6"),
        ("http://%C3%BC:%2F@host", "Basic w7w6Lw=="),
        ("http://host", None),
        ("http://@host", None),
    ],
)
def test_address__authorization(url: str, header: str | None) -> None:
    assert read_address(url).authorization == header


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "host",
            "//host",
            "ftp://host",
            "http://",
            "http:///path",
            "http://:80",
            "http://[::1",
            "http://[nonsense]",
        ),
        *(
            "http://host:99999",
            "http://host:hush",
            "http://me:hu/sh@host",
            "http://ho st",
            "http://a..b",
            f"http://{'x' * 64}",
            "http://h%41",
        ),
        *("http://host/a\nb", "http://host\x00", "http://host/\ud800"),
    ],
)
def test_address__that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        read_address(url)
    assert "hu" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("chat/completions", "/openai/chat/completions"),
        ("/chat", "/openai/chat"),
        ("", "/openai/"),
        (
            "deployments/a%2Fb/chat?api-version=2024-10-21",
            "/openai/deployments/a%2Fb/chat?api-version=2024-10-21",
        ),
        ("models/m:generateContent", "/openai/models/m:generateContent"),
        ("100%/%zz?a=%", "/openai/100%25/%25zz?a=%25"),
        ('{a}`"<>?{a}`"<>', "/openai/%7Ba%7D%60%22%3C%3E?{a}`%22%3C%3E"),
        ("a b?c=http://other/", "/openai/a%20b?c=http://other/"),
        ("https://HOST:443/whole?x=ü", "/whole?x=%C3%BC"),
        ("https://host", "/"),
    ],
)
def test_target__below_an_address_or_whole(path: str, target: str) -> None:
    assert read_address("https://host/openai/").target(path) == target


@pytest.mark.parametrize(
    "path", ["http://host/", "https://host:444/", "https://other/", "a\r\nb", "\ud800"]
)
def test_target__that_cannot_be_asked(path: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_address("https://host/").target(path)
