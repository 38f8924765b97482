"""The command line as its users start it: a process of its own, with an environment of its own."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, Self

from tests.support import warm

#: Where the tests' own interpreter has its commands; children must find `python3` there too.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
MODULE = "agentevals_action"
COMMAND = [sys.executable, "-m", MODULE]
#: A fork may not use all of the system's libraries elsewhere.
_FORKS = sys.platform.startswith("linux")


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment without anything of this machine's but the path."""
    return {
        "PATH": PATH,
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "PYTHONWARNINGS": "error",
        **(extra or {}),
    }


def run(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 100
) -> Done:
    """Runs `agentevals-action ARGUMENTS` in a folder to its end."""
    return finish(folder, arguments, environment(env), timeout)


def finish(
    folder: Path,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    timeout: float = 100,
    *,
    merged: bool = False,
) -> Done:
    """Runs it in exactly this environment to its end; `merged` puts both streams into `out` as they
    came."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
    ):
        streams = (out.fileno(), (out if merged else err).fileno())
        with start_into(folder, arguments, environ, streams) as process:
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        out.seek(0)
        err.seek(0)
        return Done(code, out.read(), err.read())


def run_with_small_files(folder: Path, kilobytes: int, *arguments: str) -> Done:
    """The same where no file can grow larger than this: what a full disk does, in the middle of a
    row."""
    with start_with_pipes(folder, arguments, environment(), kilobytes=kilobytes) as process:
        out, err = process.communicate(timeout=100)
        return Done(process.wait(), out, err)


def small_files(kilobytes: int | None) -> Callable[[], None] | None:
    """What a child has to do before it begins so that no file of its grows larger; None where they
    may."""
    if kilobytes is None:
        return None
    size = kilobytes * 1024
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class Process(Protocol):
    """A command that runs: what tests use of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    @property
    def stdout(self) -> IO[str] | None: ...
    @property
    def stderr(self) -> IO[str] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def kill(self) -> None: ...
    def communicate(self, *, timeout: float | None = None) -> tuple[str, str]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: Any) -> None: ...


def start(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Process:
    """Starts it and gives the process, for tests that kill it."""
    return start_with_pipes(folder, arguments, environment(env))


def start_with_pipes(
    folder: Path,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    merged: bool = False,
    kilobytes: int | None = None,
    module: str = MODULE,
) -> Process:
    """Starts it, or another `module` that is a program, in exactly this environment with a pipe for
    each stream, or one for both."""
    if not _FORKS:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            preexec_fn=small_files(kilobytes),
            text=True,
        )
    reading, writing = os.pipe()
    reading_errors, writing_errors = (None, writing) if merged else os.pipe()
    fork = warm.process(**environment()).start(
        folder, arguments, environ, (writing, writing_errors), kilobytes, module
    )
    for descriptor in {writing, writing_errors}:
        os.close(descriptor)
    fork.stdout = os.fdopen(reading, encoding="utf-8")
    fork.stderr = None if reading_errors is None else os.fdopen(reading_errors, encoding="utf-8")
    return fork


def start_into(
    folder: Path, arguments: Sequence[str], environ: Mapping[str, str], streams: tuple[int, int]
) -> Process:
    """Starts it in exactly this environment with these descriptors as its streams."""
    if _FORKS:
        return warm.process(**environment()).start(folder, arguments, environ, streams)
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=streams[0],
        stderr=streams[1],
        text=True,
    )
