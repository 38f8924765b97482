"""The bytes of one connection: TCP, TLS over it, and whom TLS trusts."""

import asyncio
import functools
import select
import ssl
from typing import cast

#: Bytes that may wait to be read before the other side is made to wait.
_AHEAD = 1024 * 1024
#: Seconds after which the next of a host's addresses is tried at the same time.
#: https://www.rfc-editor.org/rfc/rfc8305#section-8
_NEXT_ADDRESS = 0.25


class Wire(asyncio.Protocol):
    """One connection, for one reader. asyncio's own streams cannot tell whether anything came that
    nobody asked for."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self._lost: asyncio.Future[None] = loop.create_future()
        self._ended = False
        self._error: Exception | None = None
        self._transport: asyncio.Transport

    @classmethod
    async def connect(cls, host: str, port: int, trust: ssl.SSLContext | None) -> "Wire":
        """A new connection, with TLS when it is known whom to trust; OSError when there is none to
        be had."""
        loop = asyncio.get_running_loop()
        _, wire = await loop.create_connection(
            cls, host, port, ssl=trust, happy_eyeballs_delay=_NEXT_ADDRESS
        )
        return wire

    async def secure(self, host: str, trust: ssl.SSLContext) -> None:
        """From here on TLS with the host that is at the other end; OSError when it has no
        certificate that is trusted."""
        transport = await asyncio.get_running_loop().start_tls(
            self._transport, self, trust, server_hostname=host
        )
        self._transport = cast(asyncio.Transport, transport)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio says that it is connected."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Asyncio hands over what came."""
        self._received += data
        if len(self._received) > _AHEAD:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Asyncio says that no more will come; it closes the connection then."""
        self._ended = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        """Asyncio says that it is closed, or broken."""
        self._ended, self._error = True, error
        if not self._lost.done():
            self._lost.set_result(None)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> bytes:
        """All that came since the last read, as soon as there is any; nothing at the end. OSError
        when the connection broke."""
        if not self._received and not self._ended:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if not self._received and self._error is not None:
            raise self._error
        data = bytes(self._received)
        self._received.clear()
        if len(data) > _AHEAD and not self._ended:
            self._transport.resume_reading()
        return data

    def write(self, data: bytes) -> None:
        """Sends it, as fast as the other side takes it. Nobody waits until it is gone: the reply
        tells, and may come before that."""
        self._transport.write(data)

    @property
    def is_quiet(self) -> bool:
        """Whether all is sent and nothing came since the last read, the end least of all: the
        system is asked too, since the loop may not have been told yet. What came through TLS alone
        (a new ticket) counts too, and costs one more connection."""
        transport = self._transport
        if (
            self._received
            or self._ended
            or transport.is_closing()
            or transport.get_write_buffer_size()
        ):
            return False
        asked = select.poll()
        asked.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not asked.poll(0)

    def abort(self) -> None:
        """Closes it at once; what was not sent is not."""
        self._transport.abort()

    async def close(self) -> None:
        """Closes it, and waits until it is."""
        self.abort()
        await self._lost


def trusted() -> ssl.SSLContext:
    """Whom TLS trusts: the system's authorities and certifi's, or those alone that SSL_CERT_FILE
    and SSL_CERT_DIR name."""
    return _context(ssl.get_default_verify_paths())


@functools.cache
def _context(paths: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if paths.cafile in (None, paths.openssl_cafile) and paths.capath in (
        None,
        paths.openssl_capath,
    ):
        import certifi  # late: an http address needs none

        context.load_verify_locations(certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context
