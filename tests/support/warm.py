"""A process that has the program imported and forks itself for each command: a process of its own,
spared the start-up."""

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

#: Bytes of one command: its arguments and its environment.
_LONGEST = 1 << 17
_PACKAGE = "agentevals_action"


class Warm:
    """The one who asks: one command at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._commands, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-P", __file__, str(theirs.fileno())]
        self._process = subprocess.Popen(
            words,
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        atexit.register(self.close)

    def close(self) -> None:
        """Lets the process end, and waits for it."""
        self._commands.close()
        self._process.wait()

    def finish(
        self,
        folder: Path,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: tuple[IO[str], IO[str]],
        timeout: float,
    ) -> int:
        """Runs the command to its end; its exit code, or TimeoutExpired, which ends this process
        too."""
        asked = json.dumps(
            {"folder": str(folder), "arguments": arguments, "environment": dict(environment)}
        )
        socket.send_fds(
            self._commands,
            [asked.encode("utf-8", "surrogateescape")],
            [stream.fileno() for stream in streams],
        )
        self._commands.settimeout(timeout)
        try:
            answer = self._commands.recv(20)
        except TimeoutError:
            os.killpg(self._process.pid, signal.SIGKILL)
            process.cache_clear()
            raise subprocess.TimeoutExpired(list(arguments), timeout) from None
        assert answer, f"the process that forks for each command ended with {self._process.wait()}"
        return int(answer)


@functools.cache
def process(**environment: str) -> Warm:
    """The one of this worker, started when it is first asked for."""
    return Warm(environment)


def _asked(commands: socket.socket) -> Any:
    """Answers each command with the exit code of a fork until nobody asks any more: None. In the
    fork, the command."""
    while True:
        message, streams, _, _ = socket.recv_fds(commands, _LONGEST, 2)
        if not message:
            return None
        child = os.fork()
        if not child:
            os.dup2(streams[0], 1)
            os.dup2(streams[1], 2)
            for descriptor in (*streams, commands.detach()):
                os.close(descriptor)
            return json.loads(message.decode("utf-8", "surrogateescape"))
        for descriptor in streams:
            os.close(descriptor)
        commands.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _main() -> None:
    """Imports all that a command may need and waits; a fork goes on as `python -m
    agentevals_action` does."""
    import agentevals_action

    for module in pkgutil.walk_packages(agentevals_action.__path__, f"{_PACKAGE}."):
        if module.name != f"{_PACKAGE}.__main__":
            importlib.import_module(module.name)
    _build_models_and_templates()
    gc.collect()
    gc.freeze()  # a fork that collected these objects would copy the memory of all of them
    with socket.socket(fileno=int(sys.argv[1])) as commands:
        asked = _asked(commands)
    if asked:
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.argv[1:] = asked["arguments"]
        sys.path.insert(0, asked["folder"])
        try:
            runpy.run_module(_PACKAGE, run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            if isinstance(ended.code, int):
                _exit(ended.code)
            raise


def _build_models_and_templates() -> None:
    """Builds what each command would build at its first use: pydantic's validators and the packaged
    templates."""
    from pydantic import BaseModel
    from pydantic.dataclasses import is_pydantic_dataclass, rebuild_dataclass

    from agentevals_action import templating

    for module in [each for name, each in sys.modules.items() if name.startswith(_PACKAGE)]:
        for value in list(vars(module).values()):
            if not isinstance(value, type):
                continue
            if issubclass(value, BaseModel) and value is not BaseModel:
                value.model_rebuild()
            elif is_pydantic_dataclass(value):
                rebuild_dataclass(value)
    for environment in (templating._REPORTS, templating._PROMPTS):
        for name in environment.list_templates():
            environment.get_template(name)


def _exit(code: int) -> None:
    """Ends a fork as the interpreter does, but leaves out the modules: to tear down those that the
    command did not import itself takes longer than most commands. Prints a warning about what the
    command left open."""
    threading._shutdown()  # type: ignore[attr-defined]  # as a fork of multiprocessing ends
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _main()
