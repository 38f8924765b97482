"""The image, built and started as GitHub's runner does it, where a Docker daemon is to be had."""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.github_server import GitHubServer
from tests.support.github_world import file
from tests.support.payloads import pull_request_event
from tests.support.repositories import pull_request

ROOT = Path(__file__).resolve().parents[2]
RUN_STEP = ROOT / "../shared/container/run_step.py"
BASE, IMAGE = "python:3.13-slim", "agentevals-action:test"
MOST_BYTES = 260_000_000
#: What run_step.py hands over as the job's token.
TOKEN = "ghs_localtesttoken0123456789"

# A cold build takes its libraries and git from their registries.
pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]


def docker(*words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["docker", *words], capture_output=True, text=True, check=False, timeout=550
    )
    assert expect is None or done.returncode == expect, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image of this checkout, built once for all test processes."""
    if shutil.which("docker") is None or docker("info", expect=None).returncode:
        pytest.skip("no Docker daemon is to be had: start one, or name it in DOCKER_HOST")
    with (tmp_path_factory.getbasetemp().parent / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        docker("build", "--tag", IMAGE, str(ROOT))
    return IMAGE


def run(image: str, *words: str, options: tuple[str, ...] = (), expect: int = 0) -> str:
    """What a fresh container prints, on either stream."""
    done = docker("run", "--rm", *options, image, *words, expect=expect)
    return done.stdout + done.stderr


def test_image__is_small(image: str) -> None:
    sizes = [
        int(docker("image", "inspect", "--format", "{{.Size}}", name).stdout)
        for name in (image, BASE)
    ]
    assert sizes[0] - sizes[1] < MOST_BYTES


def test_image__starts_as_the_runner_starts_it(image: str) -> None:
    config = json.loads(docker("image", "inspect", "--format", "{{json .Config}}", image).stdout)
    assert (config.get("User", ""), config.get("WorkingDir", "")) == ("", "")
    assert config["Labels"]["org.opencontainers.image.licenses"] == "MIT"
    assert run(image, "--version", options=("--entrypoint", "agentevals-action")).startswith(
        "agentevals-action "
    )


def test_image__holds_no_build_tools_and_nothing_of_the_history(image: str) -> None:
    script = (
        "for tool in gcc cc g++ make hatch hatchling; do command -v $tool; done; "
        "/opt/agentevals/bin/python -I -c 'import hatchling' 2>/dev/null && echo hatchling; "
        "/opt/agentevals/bin/python -I -m pip --version 2>/dev/null; "
        "find / -xdev -name .git -o -xdev -path '*/agentevals_action/tests' | head; ls /build 2>/dev/null; ls /var/lib/apt/lists; true"
    )
    assert run(image, "-c", script, options=("--entrypoint", "sh")) == ""


def test_image__holds_templates_examples_and_schemas(image: str) -> None:
    code = "from agentevals_action import templating; print(*(len(list(templating.packaged_folder(n).rglob('*'))) for n in ('templates', 'examples', 'schemas')))"
    counts = run(
        image, "-I", "-c", code, options=("--entrypoint", "/opt/agentevals/bin/python")
    ).split()
    assert all(int(count) > 0 for count in counts)
    listing = run(
        image,
        "-c",
        "ls -a /opt/agentevals/lib/python3.*/site-packages/agentevals_action/_data/examples/demo/base",
        options=("--entrypoint", "sh"),
    )
    assert ".agentv" in listing.split()


def test_image__imports_nothing_from_the_workspace(image: str, tmp_path: Path) -> None:
    for name in ("yaml.py", "json.py", "sitecustomize.py", "agentevals_action/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit('the workspace was imported')\n")
    mounted = (
        "--volume",
        f"{tmp_path}:/github/workspace",
        "--workdir",
        "/github/workspace",
        "--env",
        "PYTHONPATH=/github/workspace",
    )
    said = run(image, options=mounted, expect=2)
    assert "the workspace was imported" not in said
    assert "GITHUB_EVENT_NAME" in said


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A git server on loopback for the repositories of a folder; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        "git",
        "daemon",
        "--listen=127.0.0.1",
        f"--port={port}",
        f"--base-path={folder}",
        "--export-all",
        "--reuseaddr",
        "--verbose",
    ]
    # Another user's repository is served too: only the daemon's own configuration may allow that.
    trusting = {
        **os.environ,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=trusting) as daemon:
        assert daemon.stderr is not None
        assert "Ready to rumble" in daemon.stderr.readline()
        yield f"git://127.0.0.1:{port}"
        daemon.terminate()


def give_to_the_runner(folder: Path) -> None:
    """Hosted runners own the workspace as another user than the container's."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 1001, 127, follow_symlinks=False)


def example(side: str) -> dict[str, bytes]:
    files = ROOT / "examples" / "demo" / side
    return {
        path.relative_to(files).as_posix(): path.read_bytes()
        for path in files.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def step(
    image: str, workspace: Path, event: Path, server: GitHubServer, inputs: Mapping[str, str]
) -> dict[str, Any]:
    """One step of a workflow on a pull request, as the runner runs it."""
    given = [f"--input={name}={value}" for name, value in inputs.items()]
    words = [
        sys.executable,
        str(RUN_STEP),
        f"--action={ROOT}",
        f"--workspace={workspace}",
        f"--event={event}",
        f"--api-url={server.url}",
    ]
    done = subprocess.run(
        [*words, "--network=host", f"--image={image}", *given],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "log": done.stderr}


def test_step__gates_a_pull_request_at_depth_one_in_another_users_workspace(
    image: str, tmp_path: Path
) -> None:
    if not RUN_STEP.is_file():
        pytest.skip(
            "the runner's part is not beside this checkout (../shared/container/run_step.py)"
        )
    if os.geteuid() != 0:
        pytest.skip("only root can give the workspace to another user")
    pull = pull_request(
        tmp_path / "origin", example("base"), example("head"), {"CHANGES.md": "main moved on"}
    )
    workspace = pull.checkout(tmp_path / "workspace", pull.merge)
    payload = pull_request_event(pull.head, pull.main)
    payload["pull_request"]["merge_commit_sha"] = pull.merge
    event = tmp_path / "event.json"
    event.write_text(json.dumps(payload))

    with served(tmp_path) as address, GitHubServer("acme", "agent", token=TOKEN) as server:
        server.add_pull(7, pull.head, pull.main, [file("agent.py"), file("evals/more.jsonl")])
        workspace.git("remote", "set-url", "origin", f"{address}/origin/.git")
        give_to_the_runner(workspace.path)
        done = step(image, workspace.path, event, server, {})

        assert done["exit"] == 1, done["log"]
        assert (
            done["outputs"]["outcome"],
            done["outputs"]["regressions"],
            done["outputs"]["improvements"],
        ) == ("failed", "3", "1")
        assert (done["outputs"]["base-sha"], done["outputs"]["head-sha"]) == (pull.main, pull.head)
        (comment,) = server.comments
        assert "refund-window" in comment.body
        (check,) = server.check_runs
        assert (check.head_sha, check.status, check.conclusion) == (
            pull.head,
            "completed",
            "failure",
        )
        gates = {
            (one["path"], one["start_line"])
            for one in check.annotations
            if one["annotation_level"] == "failure"
        }
        assert gates == {
            ("evals/EVAL.yaml", line_of("value: 30 days")),
            ("evals/EVAL.yaml", line_of("name: no-email-address")),
        }

    assert done["summary"]
    assert [str(path) for path in workspace.path.rglob("*") if path.lstat().st_uid != 1001] == []
    assert workspace.git("worktree", "list").count("\n") == 0
    assert TOKEN not in done["log"]


def line_of(text: str) -> int:
    lines = (ROOT / "examples" / "demo" / "base" / "evals" / "EVAL.yaml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)
