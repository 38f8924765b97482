"""Measures the server of a suite's tools and the stub of a command: `python benchmarks/tools.py`.

Each sample has a server of its own in the process of the action. The clients are in another
process: each connects, asks and reads, again and again, as fast as it can. The goals are for a
machine with two cores that nothing else uses."""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

from agentevals_action.model.tools import Command, Tool, ToolSet, combine_tools
from agentevals_action.tools.mcp import serve_tools
from agentevals_action.tools.session import ToolSession

STARTS, CALLS, SAMPLES, STUBS = 200, 20, 50, 20
TOOL = {
    "name": "find_order",
    "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    "replies": [
        *(
            {"when": {"id": number}, "reply": {"id": number, "state": "sent"}}
            for number in range(20)
        ),
        {"error": "order not found"},
    ],
}
COMMAND = {"name": "gh", "replies": [{"when": {"line": "pr view 7"}, "stdout": "a title"}]}
BODY = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "find_order", "arguments": {"id": 19}},
    }
)


def session() -> ToolSession:
    command = Command.model_validate(COMMAND)
    return ToolSession(ToolSet(combine_tools([Tool.model_validate(TOOL)]), {"gh": command}))


async def measure_starts() -> list[float]:
    """Milliseconds of each start of a server."""
    found = []
    for _ in range(STARTS):
        own, started = session(), time.perf_counter()
        async with serve_tools(own):
            found.append((time.perf_counter() - started) * 1000)
    return found


async def measure_calls(samples: int) -> list[float]:
    """Milliseconds of each call of the clients of so many samples at once."""
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(serve_tools(session())) for _ in range(samples)]
        addresses = json.dumps([[each.address("suite"), each.token] for each in servers])
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, __file__, "clients"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await client.communicate(addresses.encode())
    return json.loads(output)  # type: ignore[no-any-return]


async def ask_all() -> None:
    """The clients: prints the milliseconds of their calls."""

    async def ask(address: str, token: str) -> list[float]:
        found, url = [], urlsplit(address)
        head = (
            f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {token}\r\n"
        )
        request = f"{head}Content-Length: {len(BODY)}\r\n\r\n{BODY}".encode()
        for _ in range(CALLS):
            started = time.perf_counter()
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            writer.write(request)
            answer = await reader.read()
            writer.close()
            found.append((time.perf_counter() - started) * 1000)
            assert b'"isError":false' in answer, answer
        return found

    asked = await asyncio.gather(*(ask(*server) for server in json.load(sys.stdin)))
    print(json.dumps([each for sample in asked for each in sample]))


async def measure_stubs() -> list[float]:
    """Milliseconds of each call of a command's stub."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        async with serve_tools(session()) as access:
            stub = Path(folder, "gh")
            stub.write_text(access.stubs["gh"])
            stub.chmod(0o700)
            for _ in range(STUBS):
                started = time.perf_counter()
                process = await asyncio.create_subprocess_exec(
                    stub, "pr", "view", "7", stdout=asyncio.subprocess.DEVNULL
                )
                assert await process.wait() == 0
                found.append((time.perf_counter() - started) * 1000)
    return found


async def main() -> None:
    if sys.argv[1:] == ["clients"]:
        return await ask_all()
    rows = {
        "start of a server (goal: 5 ms)": await measure_starts(),
        "call, one sample (goal: 5 ms)": await measure_calls(1),
        f"call, {SAMPLES} samples at once (goal: p99 100 ms)": await measure_calls(SAMPLES),
        "stub of a command": await measure_stubs(),
    }
    print("| | median | p99 |\n|---|--:|--:|")
    for title, found in rows.items():
        print(f"| {title} | {statistics.median(found):.2f} ms | {percentile(found):.2f} ms |")
    return None


def percentile(found: Sequence[float]) -> float:
    return statistics.quantiles(found, n=100, method="inclusive")[-1]


if __name__ == "__main__":
    asyncio.run(main())
