"""Whose program answers at the port of a service."""

import asyncio
import contextlib
import os
import socket
from pathlib import Path

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.system import services
from agentevals_action.system.isolation import ChildUser
from agentevals_action.system.program import Program
from agentevals_action.system.services import StartedService, StartedServices
from tests.unit.system.test_isolation import UID, as_root

#: Listens at the address that is its first argument; without one nowhere.
LISTENING = """\
import os, socket, sys, time
address, port = sys.argv[1:]
server = socket.create_server((address, int(port)), family=socket.AF_INET6 if ":" in address
    else socket.AF_INET, dualstack_ipv6=address == "::") if address else None
time.sleep(600)
"""
FOREIGN = "a program of another user listens"


def listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family)


@as_root
@pytest.mark.parametrize(
    ("own", "foreign", "problem"),
    [
        ("127.0.0.1", "", ""),
        ("0.0.0.0", "", ""),
        ("::", "", ""),
        ("", "127.0.0.1", FOREIGN),
        ("127.0.0.1", "::1", FOREIGN),  # `localhost` may be either
        ("127.0.0.1", "127.0.0.2", FOREIGN),
    ],
)
def test_wait__only_the_program_of_its_user_listens(own: str, foreign: str, problem: str) -> None:
    """Attack: the agent of head answers for a judge, or for base."""

    async def connect(port: int) -> None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            raise AttemptError("target", "not yet") from None

    async def outcome(service: StartedService) -> str:
        try:
            await service.wait()
        except AttemptError as error:
            return str(error)
        return ""

    async def run() -> str:
        started = StartedServices()
        words = ("python3", "-S", "-c", LISTENING, own, "{PORT}")
        user = ChildUser(UID, Path("/tmp"), Path("/tmp"))
        program = Program(words, Path("/"), {"PATH": os.environ["PATH"]}, user)
        service = started.of("agent", program, connect)
        with contextlib.ExitStack() as opened:
            if foreign:  # before the program starts
                opened.enter_context(listen(foreign, service.port))
            try:
                return await outcome(service)
            finally:
                await started.close()

    found = asyncio.run(run())
    assert found.startswith(f"its service cannot be asked: {problem} on") if problem else not found


def test_of__all_ports_in_use_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: an agent takes them all, so that the search does not end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(services, "_PORTS", range(port, port + 1))
        program = Program(("true", "{PORT}"), Path("/"), {})
        with pytest.raises(AttemptError, match="its service has no free port: 1000 of"):
            StartedServices().of("agent", program, lambda _: asyncio.sleep(0))
