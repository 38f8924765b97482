"""The image, built and started as GitHub's runner does it, where a Docker daemon is to be had."""

import fcntl
import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN_STEP = ROOT / "../shared/container/run_step.py"
BASE, IMAGE = "python:3.13-slim", "agentevals-action:test"
MOST_BYTES = 260_000_000

# A cold build takes its libraries and git from their registries.
pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]


def docker(*words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False, timeout=550)
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
    sizes = [int(docker("image", "inspect", "--format", "{{.Size}}", name).stdout) for name in (image, BASE)]
    assert sizes[0] - sizes[1] < MOST_BYTES


def test_image__starts_as_the_runner_starts_it(image: str) -> None:
    config = json.loads(docker("image", "inspect", "--format", "{{json .Config}}", image).stdout)
    assert (config.get("User", ""), config.get("WorkingDir", "")) == ("", "")
    assert config["Labels"]["org.opencontainers.image.licenses"] == "MIT"
    assert run(image, "--version", options=("--entrypoint", "agentevals-action")).startswith("agentevals-action ")


def test_image__holds_no_build_tools_and_nothing_of_the_history(image: str) -> None:
    script = (
        "for tool in gcc cc g++ make hatch hatchling; do command -v $tool; done; "
        "/opt/agentevals/bin/python -I -c 'import hatchling' 2>/dev/null && echo hatchling; "
        "/opt/agentevals/bin/python -I -m pip --version 2>/dev/null; "
        "find / -xdev -name .git -o -xdev -path '*/agentevals_action/tests' | head; ls /build 2>/dev/null; ls /var/lib/apt/lists; true"
    )
    assert run(image, "-c", script, options=("--entrypoint", "sh")) == ""


def test_image__holds_templates_examples_and_schemas(image: str) -> None:
    code = "from agentevals_action import resources; print(*(len(list(resources.folder(n).rglob('*'))) for n in ('templates', 'examples', 'schemas')))"
    counts = run(image, "-I", "-c", code, options=("--entrypoint", "/opt/agentevals/bin/python")).split()
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
    mounted = ("--volume", f"{tmp_path}:/github/workspace", "--workdir", "/github/workspace", "--env", "PYTHONPATH=/github/workspace")
    said = run(image, options=mounted, expect=2)
    assert "the workspace was imported" not in said
    assert "GITHUB_EVENT_NAME" in said
