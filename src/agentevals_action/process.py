"""Every child process: scrubbed environment, time limit, process group killed, output bounded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Completed:
    """A child that ended. `returncode` is negative for a signal; texts are UTF-8 with replacement and bounded."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool = False
    truncated: bool = False
    duration_ms: float = 0.0


@dataclass(frozen=True)
class CompletedBytes:
    """A child of `call` that ended: raw bytes, for git."""

    returncode: int
    stdout: bytes
    stderr: bytes


async def run(command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout: float, stdin: str = "") -> Completed:
    """Runs a child in its own process group to its end or its time limit (seconds); OSError when it cannot be started."""
    ...


def call(command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout: float, stdin: bytes = b"") -> CompletedBytes:
    """The same for a caller that waits (git); raw bytes."""
    ...


def scrubbed(environ: Mapping[str, str], allowed: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment that a child may see, and the names that were withheld from it."""
    ...
