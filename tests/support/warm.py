"""A process that has the program imported and forks itself for each command: a process of its own,
spared the start-up."""

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

#: Bytes of one command: its arguments and its environment.
_LONGEST = 1 << 17
_PACKAGE = "agentevals_action"
_ROOT = Path(__file__).resolve().parents[2]
#: What libraries import when it is first needed.
_LATE = (
    "anyio._backends._asyncio",
    "encodings.utf_16_le",
    "encodings.utf_8_sig",
    "httpcore",
    "rich._emoji_codes",
)


class Warm:
    """The one who asks."""

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

    def start(
        self,
        folder: Path,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
    ) -> "Fork":
        """Starts the command with these streams: output, errors and, if it has one, input."""
        asked = {
            "folder": str(folder),
            "arguments": arguments,
            "environment": dict(environment),
        }
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            message = json.dumps(asked).encode("utf-8", "surrogateescape")
            socket.send_fds(self._commands, [message], [*streams, theirs.fileno()])
        return Fork(status, arguments)


class Fork:
    """A command that runs: what tests use of `subprocess.Popen`."""

    stdout: IO[str] | None = None
    stderr: IO[str] | None = None
    returncode: int | None = None

    def __init__(self, status: socket.socket, arguments: Sequence[str]) -> None:
        self._status = status
        self._arguments = list(arguments)
        self.pid = self._number(None)

    def __enter__(self) -> "Fork":
        return self

    def __exit__(self, *_error: object) -> None:
        for stream in filter(None, (self.stdout, self.stderr)):
            stream.close()
        self.wait()

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code; TimeoutExpired after so many seconds."""
        if self.returncode is None:
            self.returncode = self._number(timeout)
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Waits for its end; what it wrote to the streams that are pipes."""
        with ThreadPoolExecutor(2) as pool:
            parts = [pool.submit(_read, stream) for stream in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            return parts[0].result(), parts[1].result()

    def _number(self, timeout: float | None) -> int:
        self._status.settimeout(timeout)
        try:
            answer = self._status.recv(20)
        except (TimeoutError, BlockingIOError):
            raise subprocess.TimeoutExpired(self._arguments, timeout or 0) from None
        assert answer, "the process that forks for each command has ended"
        return int(answer)


def _read(stream: IO[str] | None) -> str:
    if stream is None or stream.closed:
        return ""
    with stream:
        return stream.read()


@functools.cache
def process(**environment: str) -> Warm:
    """The one of this worker, started when it is first asked for."""
    return Warm(environment)


def _asked(commands: socket.socket) -> Any:
    """Answers each command with the process id of a fork and later its exit code, until nobody asks
    any more: None. In the fork, the command."""
    with selectors.DefaultSelector() as selector:
        selector.register(commands, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not commands:
                    _end(selector, key)
                    continue
                message, descriptors, _, _ = socket.recv_fds(commands, _LONGEST, 4)
                if not message:
                    return None
                *streams, status = descriptors
                child = os.fork()
                if not child:
                    for stream, number in zip(streams, (1, 2, 0), strict=False):
                        os.dup2(stream, number)
                    commands.close()
                    _forget(selector, descriptors)
                    return json.loads(message.decode("utf-8", "surrogateescape"))
                for stream in streams:
                    os.close(stream)
                answers = socket.socket(fileno=status)
                answers.send(b"%d" % child)
                selector.register(os.pidfd_open(child), selectors.EVENT_READ, (child, answers))


def _end(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    """Reports the exit code of a fork that has ended."""
    child, answers = key.data
    selector.unregister(key.fileobj)
    os.close(key.fd)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with answers, contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        answers.send(b"%d" % code)


def _forget(selector: selectors.BaseSelector, descriptors: Sequence[int]) -> None:
    """Closes in a fork what is the server's."""
    for key in selector.get_map().values():
        if key.data:
            key.data[1].close()
            os.close(key.fd)
    for descriptor in descriptors:
        os.close(descriptor)


def _main() -> None:
    """Imports all that a command may need and waits; a fork goes on as `python -m agentevals_action` does."""
    gc.disable()  # nothing of what is imported becomes garbage
    import agentevals_action

    for module in pkgutil.walk_packages(agentevals_action.__path__, f"{_PACKAGE}."):
        if module.name != f"{_PACKAGE}.__main__":
            importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)
    _build_what_all_use()
    gc.collect()
    gc.freeze()  # a fork that collected these objects would copy the memory of all of them
    gc.enable()
    with socket.socket(fileno=int(sys.argv[1])) as commands:
        asked = _asked(commands)
    if asked:
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.argv[1:] = asked["arguments"]
        sys.path.insert(0, asked["folder"])
        at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
        sys.stdout = io.TextIOWrapper(
            open(1, "wb", 0 if at_once else -1, closefd=False),  # noqa: SIM115
            os.environ.get("PYTHONIOENCODING", "utf-8"),
            line_buffering=os.isatty(1),
            write_through=at_once,
        )
        sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
        try:
            runpy.run_module(_PACKAGE, run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            if isinstance(ended.code, int):
                _exit(ended.code)
            raise


def _build_what_all_use() -> None:
    """Builds what each command would build at its first use: pydantic's validators, the packaged
    templates, what rendering and loading keep, the patterns that find suites and the trusted
    authorities. It starts no thread: a fork would not have it."""
    from pydantic import BaseModel
    from pydantic.dataclasses import is_pydantic_dataclass, rebuild_dataclass

    from agentevals_action import templating
    from agentevals_action.reports.registry import REPORTS
    from agentevals_action.reports.terminal import console
    from agentevals_action.reports.view.build import build_view
    from agentevals_action.suites.find import find_suites
    from agentevals_action.suites.load import load_suite
    from agentevals_action.suites.target_use import Catalog

    for module in [each for name, each in sys.modules.items() if name.startswith(_PACKAGE)]:
        for value in list(vars(module).values()):
            if not isinstance(value, type):
                continue
            if issubclass(value, BaseModel) and value is not BaseModel:
                value.model_rebuild()
            elif is_pydantic_dataclass(value):
                rebuild_dataclass(value)
    folder = templating.packaged_folder("templates")
    environments = {
        "*.j2": templating._REPORTS,
        "report/*.j2": templating._PAGES,
        "init/*.j2": templating._FILES,
        "judges/*.j2": templating._PROMPTS,
    }
    for pattern, environment in environments.items():
        for path in folder.glob(pattern):
            environment.get_template(path.relative_to(folder).as_posix())
    sys.path.insert(0, str(_ROOT))
    reviews = importlib.import_module("tests.support.reviews")
    del sys.path[0]
    view = build_view(reviews.regression_and_gate(), reviews.LINKS)
    for report in REPORTS.values():
        report(view)
    console.print_suites(view, io.StringIO())
    example = templating.packaged_folder("examples") / "first-suite"
    load_suite(example / "EVAL.yaml", example, Catalog())
    find_suites(Path("/"), Path("/"), (), ["EVAL.yaml"])


def _exit(code: int) -> None:
    """Ends a fork as the interpreter does, but leaves out the modules: to tear down those that the
    command did not import itself takes longer than most commands. Prints a warning about what the
    command left open."""
    threading._shutdown()  # type: ignore[attr-defined]  # as a fork of multiprocessing ends
    atexit._run_exitfuncs()
    gc.collect()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120  # as the interpreter does
    os._exit(code)


if __name__ == "__main__":
    _main()
