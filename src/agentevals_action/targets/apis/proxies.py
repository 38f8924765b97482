"""By which way requests reach a server: straight, or by the proxy that HTTP_PROXY, HTTPS_PROXY,
ALL_PROXY and NO_PROXY ask for."""

from dataclasses import dataclass

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.targets.apis.addresses import Address, read_address
from agentevals_action.targets.apis.statuses import phrase


@dataclass(frozen=True)
class Route:
    """The `server`, and the `proxy` before it, if there is one; `variable` is where the proxy was
    named."""

    server: Address
    proxy: Address | None = None
    variable: str = ""

    @property
    def told(self) -> str:
        """The server as errors name it, and the proxy."""
        return (
            self.server.netloc
            if self.proxy is None
            else f"{self.server.netloc} by the proxy {self.proxy.netloc}"
        )

    @property
    def forwarder(self) -> Address | None:
        """The proxy that reads the requests, and is told all of their address; through a tunnel to
        https it sees none."""
        return self.proxy if self.server.scheme == "http" else None

    def refused(self, proxy: Address, status: int) -> TransientError | TargetDead:
        """The error of a proxy that itself refuses: whether it is worth repeating, and what to
        do."""
        # In the usual words: a proxy's own may repeat what it was sent, its password included.
        told = f"the proxy {proxy.netloc} answered {status} {phrase(status)} when asked for {self.server.netloc}"
        if status >= 500 or status in (408, 429):
            return TransientError(told)
        if status == 407:
            return TargetDead(
                told, f"give {self.variable} a user and password, as http://user:password@host:port"
            )
        return TargetDead(told, "have the proxy let it through, or put the server into NO_PROXY")


def route_to(server: Address) -> Route:
    """The way that the environment's variables ask for, in either case, which the standard library
    reads as any client does; AttemptError of kind `configuration` when the proxy that they name
    cannot be used."""
    from urllib.request import getproxies, proxy_bypass  # late: it brings half of the library

    proxies = getproxies()
    scheme = server.scheme if proxies.get(server.scheme) else "all"
    url = proxies.get(scheme)
    # An IPv6 address is written there with brackets or without.
    if not url or any(proxy_bypass(name) for name in (server.authority, server.host)):
        return Route(server)
    variable = f"{scheme.upper()}_PROXY"
    url = url if "://" in url else f"http://{url}"
    if url.lower().startswith("socks"):
        hint = "name one that speaks HTTP, or put the server into NO_PROXY"
        raise AttemptError(
            "configuration", f"{variable} names a SOCKS proxy, which cannot be used", hint
        )
    try:
        return Route(server, read_address(url), variable)
    except ValueError as error:
        raise AttemptError(
            "configuration", f"{variable} cannot be used: {error}", "write http://host:port"
        ) from None
