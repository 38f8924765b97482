"""The command line as its users start it: a process of its own, with an environment of its own."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import warm

#: Where the tests' own interpreter has its commands; children must find `python3` there too.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
COMMAND = [sys.executable, "-m", "agentevals_action"]
#: A command that runs.
Process = warm.Fork | subprocess.Popen[str]
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


def run_with_small_files(
    folder: Path, kilobytes: int, arguments: Sequence[str], environ: Mapping[str, str]
) -> Done:
    """The same where no file can grow larger than this: what a full disk does, in the middle of a
    row. Both streams are in `out`."""
    size = kilobytes * 1024
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,  # a file would be held short, too
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        text=True,
        timeout=100,
    )
    return Done(done.returncode, done.stdout, "")


def start(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Process:
    """Starts it and gives the process, for tests that kill it."""
    return start_with_pipes(folder, arguments, environment(env))


def start_with_pipes(
    folder: Path, arguments: Sequence[str], environ: Mapping[str, str], *, merged: bool = False
) -> Process:
    """Starts it in exactly this environment with a pipe for each stream, or one for both."""
    if not _FORKS:
        return subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            text=True,
        )
    reading, writing = os.pipe()
    reading_errors, writing_errors = (None, writing) if merged else os.pipe()
    fork = warm.process(**environment()).start(
        folder, arguments, environ, (writing, writing_errors)
    )
    for descriptor in {writing, writing_errors}:
        os.close(descriptor)
    fork.stdout = os.fdopen(reading, encoding="utf-8")
    fork.stderr = None if reading_errors is None else os.fdopen(reading_errors, encoding="utf-8")
    return fork


def wait_for(file: Path, process: Process, words: str = "") -> None:
    """Waits until what a running command starts has written words into a file."""
    deadline = time.monotonic() + 60
    while not file.exists() or words not in file.read_text():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def start_into(
    folder: Path, arguments: Sequence[str], environ: Mapping[str, str], streams: Sequence[int]
) -> Process:
    """Starts it in exactly this environment with these descriptors as its streams: output, errors
    and, if it has one, input."""
    if _FORKS:
        return warm.process(**environment()).start(folder, arguments, environ, streams)
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environ,
        stdin=streams[2] if streams[2:] else subprocess.DEVNULL,
        stdout=streams[0],
        stderr=streams[1],
        text=True,
    )
