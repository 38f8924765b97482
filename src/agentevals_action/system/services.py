"""Services: programs of a repository that listen on a port of this machine. Each starts once and
answers many calls."""

import asyncio
import re
import socket
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import SystemRandom

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.system import process
from agentevals_action.system.program import Program, child_error

#: The placeholder for the port in the command of a service; `${PORT}` is a variable of the shell.
PORT = re.compile(r"(?<!\$)\{PORT\}")
#: The ports of services. No system gives them to connections, or to programs that ask for any
#: free port: nobody else takes a port before its service listens there.
_PORTS = range(20_000, 30_000)
#: How many ports are tried: a program may have taken them all.
_TRIES = 1000
#: The state of a socket that listens (proc_pid_net(5)).
_LISTENS = "0A"
#: Seconds until a service must be ready, and between two checks whether it is.
_READY_SECONDS, _PAUSE = 120.0, 0.1

#: Asks the service at a port whether it is ready for calls; AttemptError if it is not.
AskReady = Callable[[int], Awaitable[None]]


class StartedService:
    """A service from its start to its end; `port` is the one that it is to listen on.

    It is first asked whether it is ready `delay` seconds after its start, and must be `limit`
    seconds later."""

    def __init__(
        self, program: Program, port: int, ask_ready: AskReady, delay: float, limit: float
    ) -> None:
        words = tuple(PORT.sub(str(port), word) for word in program.words)
        self.port, self._program = port, replace(program, words=words)
        self._running: process.LongChild | None = None
        self._starting = asyncio.create_task(self._start(ask_ready, delay, limit))

    async def wait(self) -> None:
        """Waits until the service is ready; a caller that gives up does not end the start.
        AttemptError if it could not be started, was not ready in time, or has ended (it is not
        started again), and if the program of another user listens on its port.

        Attack: an agent of head reads the port in the list of processes, listens there before the
        service does, and answers for a judge or for base."""
        try:
            await asyncio.shield(self._starting)
        except AttemptError as error:
            raise error.copy() from None
        if ended := await self._ended():
            raise ended
        user = self._program.user
        if user and (users := _users_listening(self.port)) != {user.uid}:
            others = "a program of another user listens" if users else "nothing listens"
            raise self.error(f"its service cannot be asked: {others} on its port {self.port}")

    def error(self, problem: str) -> AttemptError:
        """An error with the last lines that the service wrote."""
        output = self._running.written if self._running else ""
        wrote = "; its service wrote" if output.strip() else ""
        return child_error("target", problem + wrote, output, self._program.hint)

    async def explained(self, error: AttemptError) -> AttemptError:
        """The error of a call with the last lines that the service wrote, or its end, if that is
        the cause. A service that refuses every call is an error of each test: the target is not
        dead, because the other side has its own service."""
        if isinstance(error, TransientError) and self._running:
            await self._running.find_end(process.DRAIN)  # its connections are lost before it ends
        if isinstance(error, TargetDead):
            error = error.copy()
        explained = self.error(str(error))
        error.args, error.hint = explained.args, error.hint or explained.hint
        return await self._ended() or error

    async def end(self) -> None:
        """Ends the service with all processes of its group, also while it starts."""
        self._starting.cancel()
        await asyncio.gather(self._starting, return_exceptions=True)
        if self._running:
            await self._running.end()

    async def _start(self, ask_ready: AskReady, delay: float, limit: float) -> None:
        try:
            with tempfile.TemporaryFile() as empty:
                child = await process.Child.start(self._program, empty)
        except OSError as error:
            raise self._program.start_error("target", "its service", error) from None
        self._running = process.LongChild(child, child.output, child.errors)
        problem = "it did not answer"
        try:
            async with asyncio.timeout(delay + limit):
                while not await child.wait(delay):
                    try:
                        return await ask_ready(self.port)
                    except AttemptError as error:
                        problem, delay = str(error), _PAUSE
        except TimeoutError:
            not_ready = f"its service was not ready within {limit:g} s"
            raise self.error(f"{not_ready}: {problem}") from None

    async def _ended(self) -> AttemptError | None:
        """The error of a service that has ended, None while it runs."""
        running = self._running
        if running is None or not (end := await running.find_end()):
            return None
        foreground = "" if running.child.returncode else ", and must stay in the foreground"
        return self.error(f"its service {end}{foreground}")


class StartedServices:
    """The services of a run: one for each name and program, from its first call to the end. They
    must be ready in `limit` seconds."""

    def __init__(self, limit: float = _READY_SECONDS) -> None:
        self._limit = limit
        self._running: dict[tuple[str, Program], StartedService] = {}

    def of(
        self, name: str, program: Program, ask_ready: AskReady, delay: float = 0.0
    ) -> StartedService:
        """The service of a name and a program, in whose words `{PORT}` stands for its port."""
        key = name, program
        if key not in self._running:
            port = self._free_port()
            self._running[key] = StartedService(program, port, ask_ready, delay, self._limit)
        return self._running[key]

    async def close(self) -> None:
        """Ends all services. None may be in use; a later call starts new ones."""
        running, self._running = self._running, {}
        await asyncio.gather(*(service.end() for service in running.values()))

    def _free_port(self) -> int:
        """A port on which nothing listens, and that no other service gets: two that share theirs
        (`SO_REUSEPORT`) would answer each other's calls."""
        taken = {service.port for service in self._running.values()}
        for _ in range(_TRIES):
            port = SystemRandom().choice(_PORTS)
            with suppress(OSError), socket.create_server(("127.0.0.1", port)):
                if port not in taken:
                    return port
        free = f"{_PORTS[0]} to {_PORTS[-1]}"
        raise AttemptError("target", f"its service has no free port: {_TRIES} of {free} are in use")


def _users_listening(port: int) -> set[int]:
    """The users whose sockets listen on a port of Linux, at any address; one for both versions of
    IP is in `tcp6`."""
    tables = [path for path in map(Path, ("/proc/net/tcp", "/proc/net/tcp6")) if path.exists()]
    lines = [line.split() for path in tables for line in path.read_text().splitlines()[1:]]
    ending = f":{port:04X}"
    return {int(line[7]) for line in lines if line[3] == _LISTENS and line[1].endswith(ending)}
