"""One HTTP/1.1 connection, kept alive for one request after another: what h11 has to say, carried
by asyncio."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import h11

from agentevals_action import __version__
from agentevals_action.targets.apis.addresses import Address
from agentevals_action.targets.apis.proxies import Route
from agentevals_action.targets.apis.transport import Wire, trusted
from agentevals_action.targets.apis.unpacking import too_large

Headers = Sequence[tuple[str, str]]
#: How we introduce ourselves.
AGENT = f"agentevals-action/{__version__}"
#: Bytes of a reply's status and headers, and of a chunk's, that are read.
HEAD_LIMIT = 100 * 1024


@dataclass(frozen=True)
class Reply:
    """What a server answered: header names in lower case, values of the same name joined by commas,
    the body as it travelled."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """A connection to a server. Nothing is put twice: whether a request may be repeated whose reply
    did not come is not for a connection to say (RFC 9110, 9.2.2), and whoever calls an agent or a
    model repeats failed calls anyway."""

    def __init__(self, wire: Wire, route: Route) -> None:
        self._wire = wire
        self._route = route
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)

    @classmethod
    async def open(cls, route: Route) -> "Connection":
        """A new connection by this route. Raises OSError when there is none to be had,
        TransientError or TargetDead when the proxy refuses it."""
        server, first = route.server, route.proxy or route.server
        wire = await Wire.connect(
            first.host, first.port, trusted() if first.scheme == "https" else None
        )
        if route.proxy is not None and server.scheme == "https":
            try:
                await cls(wire, route)._tunnel(route.proxy)
                await wire.secure(server.host, trusted())
            except BaseException:
                wire.abort()
                raise
        return cls(wire, route)

    @property
    def is_reusable(self) -> bool:
        """Whether another request can be put: the last one is over, its reply was read to its end,
        and the server keeps connected."""
        return (
            self._http.our_state is h11.IDLE
            and not self._http.trailing_data[0]
            and self._wire.is_quiet
        )

    def abort(self) -> None:
        """Closes it at once."""
        self._wire.abort()

    async def close(self) -> None:
        """Closes it, and waits until it is."""
        await self._wire.close()

    async def exchange(
        self, method: str, target: str, headers: Headers, content: bytes | None, limit: int
    ) -> Reply:
        """Puts a request and gives the reply. Raises OSError when the connection breaks, or what
        comes is no whole reply, and ValueError when the request cannot be sent or the reply's body
        is over `limit` bytes."""
        if proxy := self._route.forwarder:
            target = f"http://{self._route.server.netloc}{target}"
            headers = [*headers, *_credentials(proxy)]
        try:
            self._wire.write(self._spoken(method, target, headers, content))
            head = await self._head()
            body = await self._body(limit)
        except h11.RemoteProtocolError as error:
            raise _broken(error) from None
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        return Reply(head.status_code, head.reason.decode("latin-1"), _read_headers(head), body)

    def _spoken(self, method: str, target: str, headers: Headers, content: bytes | None) -> bytes:
        events: list[h11.Event] = []
        try:
            events.append(_request(method, target, tuple(headers)))
            events += [h11.Data(content)] if content else []
            events.append(h11.EndOfMessage())
            return b"".join(self._http.send(event) or b"" for event in events)
        except h11.LocalProtocolError:  # its words quote the header, which may be a key
            raise ValueError("a header or the address has characters that cannot be sent") from None

    async def _head(self) -> h11.Response:
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                return event
            # Else a 1xx, which says that the reply is still to come.

    async def _body(self, limit: int) -> bytes:
        body = bytearray()
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                body += event.data
                if len(body) > limit:
                    raise too_large(limit)
        return bytes(body)

    async def _next(self) -> h11.Event:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Event):
                return event
            data = await self._wire.read()
            if (
                not data
                and self._http.their_state is h11.SEND_RESPONSE
                and not self._http.trailing_data[0]
            ):
                raise ConnectionError("the server closed it without a reply")
            self._http.receive_data(data)

    async def _tunnel(self, proxy: Address) -> None:
        """Has the proxy connect us with the server."""
        server = self._route.server
        headers = [("Host", server.authority), ("User-Agent", AGENT), *_credentials(proxy)]
        try:
            self._wire.write(self._spoken("CONNECT", server.authority, headers, None))
            head = await self._head()
        except h11.RemoteProtocolError as error:
            raise _broken(error) from None
        if not 200 <= head.status_code < 300:
            raise self._route.refused(proxy, head.status_code)


@lru_cache(maxsize=128)
def _request(method: str, target: str, headers: tuple[tuple[str, str], ...]) -> h11.Request:
    """A request's head, checked once for all calls that are alike but for their content: the check
    takes longer than the writing."""
    return h11.Request(method=method, target=target, headers=list(headers))


def _broken(error: h11.RemoteProtocolError) -> ConnectionError:
    if error.error_status_hint == 431:
        return ConnectionError(f"the reply's head is over {HEAD_LIMIT // 1024} KB")
    return ConnectionError(f"what came is no whole reply of HTTP/1.1: {error}")


def _credentials(proxy: Address) -> Headers:
    return [("Proxy-Authorization", proxy.authorization)] if proxy.authorization else []


def _read_headers(head: h11.Response) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, value in head.headers:  # h11 gives names in lower case
        key, text = name.decode("ascii"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers
