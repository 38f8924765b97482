"""A model on the loopback for the benchmarks: OpenAI's chat completions, every answer 50 ms after
its request, nothing computed.

`python benchmarks/stand_in.py` prints its port and serves until it is ended; `clients` is the least
that any client can need against it."""

import asyncio
import json
import selectors
from collections.abc import Mapping, Sequence

SECONDS = 0.05  # until an answer is given
#: Read by an agent's evaluators as an answer and by a judge's reader as a verdict.
CONTENT = json.dumps(
    {"score": 1.0, "hits": ["it says hello"], "misses": [], "reasoning": "hello is said"}
)


def _http(kind: str, body: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def _whole() -> bytes:
    message = {"role": "assistant", "content": CONTENT}
    return _http(
        "application/json",
        json.dumps(
            {**_ABOUT, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        ),
    )


def _streamed() -> bytes:
    """The same as events: some clients ask for nothing else."""
    parts: Sequence[Mapping[str, object]] = (
        {"delta": {"role": "assistant", "content": CONTENT}, "finish_reason": None},
        {"delta": {}, "finish_reason": "stop"},
    )
    events = [
        json.dumps({**_ABOUT, "object": "chat.completion.chunk", "choices": [{"index": 0, **part}]})
        for part in parts
    ]
    return _http(
        "text/event-stream", "".join(f"data: {event}\n\n" for event in (*events, "[DONE]"))
    )


_USAGE = {"prompt_tokens": 20, "completion_tokens": 20, "total_tokens": 40}
_ABOUT: Mapping[str, object] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 0,
    "model": "stand-in",
    "usage": _USAGE,
}
WHOLE, STREAMED = _whole(), _streamed()


class _Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive; one request after the other, each with a Content-Length."""

    def __init__(self) -> None:
        self._received = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport if isinstance(transport, asyncio.WriteTransport) else None

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        lengths = [
            line.split(b":")[1]
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        ]
        if separator and len(body) >= int((lengths or [b"0"])[0]):
            self._received = b""
            reply = STREAMED if b'"stream":true' in body.replace(b" ", b"") else WHOLE
            asyncio.get_running_loop().call_later(SECONDS, self._answer, reply)

    def _answer(self, reply: bytes) -> None:
        if self._transport is not None:
            self._transport.write(reply)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(
        _Connection, "127.0.0.1", 0, backlog=256
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def clients(port: int, requests: int, at_once: int) -> None:
    """So many requests over so many connections, each written as bytes and its answer thrown
    away."""
    body = json.dumps(
        {"model": "stand-in", "messages": [{"role": "user", "content": "Say hello."}]}
    ).encode()
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s"
        % (len(body), body)
    )
    left = iter(range(requests))

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in left:
            writer.write(request)
            await reader.readexactly(len(WHOLE))
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(connection() for _ in range(at_once)))


def _exact_loop() -> asyncio.AbstractEventLoop:
    """A loop with timers in microseconds: epoll's come up to a millisecond late, which
    adds up over hundreds of answers."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=_exact_loop) as runner:
        runner.run(_serve())
