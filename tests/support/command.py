"""The command line as its users start it: a process of its own, with an environment of its own."""

import os
import pty
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import warm

#: Where the tests' own interpreter has its commands; children must find `python3` there too.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
COMMAND = [sys.executable, "-m", "agentevals_action"]


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
        streams = (out, out if merged else err)
        if sys.platform.startswith("linux"):
            code = warm.process(**environment()).finish(
                folder, arguments, environ, streams, timeout
            )
        else:  # a fork may not use all of the system's libraries there
            words, nothing = [*COMMAND, *arguments], subprocess.DEVNULL
            code = subprocess.run(
                words,
                cwd=folder,
                env=environ,
                stdin=nothing,
                stdout=streams[0],
                stderr=streams[1],
                timeout=timeout,
            ).returncode
        out.seek(0)
        err.seek(0)
        return Done(code, out.read(), err.read())


def run_with_small_files(folder: Path, kilobytes: int, *arguments: str) -> Done:
    """The same where no file can grow larger than this: what a full disk does, in the middle of a
    row."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment({"PYTHONDONTWRITEBYTECODE": "1"}),
        capture_output=True,
        text=True,
        timeout=100,
        preexec_fn=small_files(kilobytes),
    )
    return Done(done.returncode, done.stdout, done.stderr)


def small_files(kilobytes: int | None) -> Callable[[], None] | None:
    """What a child has to do before it begins so that no file of its grows larger; None where they
    may."""
    if kilobytes is None:
        return None
    size = kilobytes * 1024
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def run_on_terminal(folder: Path, *arguments: str, columns: int = 100) -> str:
    """What a command writes to a terminal of so many columns on both streams, without what it
    erases again."""
    main, side = pty.openpty()
    extra = {"TERM": "xterm-256color", "COLUMNS": str(columns)}
    done = subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=environment(extra), stdout=side, stderr=side
    )
    os.close(side)
    written = b""
    try:
        while part := os.read(main, 65536):
            written += part
    except OSError:  # Linux says so when the other end of a terminal is closed
        pass
    os.close(main)
    done.wait(timeout=100)
    return written.decode()


def start(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> "subprocess.Popen[str]":
    """Starts it and gives the process, for tests that kill it."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
