"""The image, and one step of a workflow as GitHub's runner starts it in a container."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.github_server import GitHubServer

ROOT = Path(__file__).resolve().parents[2]
RUN_STEP = ROOT / "../shared/container/run_step.py"
IMAGE = "agentevals-action:test"
#: What run_step.py hands over as the job's token.
TOKEN = "ghs_localtesttoken0123456789"

Process = subprocess.Popen[str]


def docker(*words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["docker", *words], capture_output=True, text=True, check=False, timeout=550
    )
    assert expect is None or done.returncode == expect, done.stdout + done.stderr
    return done


def built_image(folder: Path) -> str:
    """The image of this checkout, built once for all test processes that share a folder, or the one
    that a release will push."""
    if shutil.which("docker") is None or docker("info", expect=None).returncode:
        pytest.skip("no Docker daemon is to be had: start one, or name it in DOCKER_HOST")
    if tested := os.environ.get("AGENTEVALS_TESTED_IMAGE"):
        return tested
    with (folder / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        docker("build", "--tag", IMAGE, str(ROOT))
    return IMAGE


def give_to_the_runner(folder: Path) -> None:
    """Hosted runners own the workspace as another user than the container's."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 1001, 127, follow_symlinks=False)


def step_words(
    image: str,
    workspace: Path,
    event: Path,
    server: GitHubServer,
    inputs: Mapping[str, str],
    variables: Mapping[str, str] | None = None,
    event_name: str = "pull_request",
) -> list[str]:
    """The command of one step of a workflow, as the runner runs it."""
    given = [f"--input={name}={value}" for name, value in inputs.items()]
    given += [f"--env={name}={value}" for name, value in (variables or {}).items()]
    words = [
        sys.executable,
        str(RUN_STEP),
        f"--action={ROOT}",
        f"--workspace={workspace}",
        f"--event={event}",
        f"--event-name={event_name}",
        f"--api-url={server.url}",
    ]
    return [*words, "--network=host", f"--image={image}", *given]


def step(
    words: Sequence[str],
    on_start: Callable[[Process], None] = lambda _: None,
    path: str = os.environ["PATH"],
) -> dict[str, Any]:
    """Runs a step to its end; `on_start` is called when it has been started."""
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PATH": path},
    ) as process:
        on_start(process)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return {**json.loads(out), "log": err}


def with_docker(folder: Path, lines: str) -> str:
    """A PATH whose `docker` runs these lines of a shell before the real one; `folder` is a new
    one. Other shells drop variables with a hyphen in their names, as `INPUT_GITHUB-TOKEN`."""
    folder.mkdir()
    program = folder / "docker"
    program.write_text(f'#!/bin/bash\n{lines}\nexec {shutil.which("docker")} "$@"\n')
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
