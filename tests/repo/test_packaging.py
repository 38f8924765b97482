"""What is shipped: pinned and hashed requirements, a small image, and a workflow and checks that
agree with the README."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = ("requirements.txt", "requirements-build.txt")

#: Where the locked libraries are installed: the image, and runners of the composite action.
TARGETS = [
    {
        "python_version": version,
        "python_full_version": f"{version}.0",
        "sys_platform": platform,
        "platform_system": system,
        "extra": "",
    }
    for version in ("3.11", "3.12", "3.13", "3.14")
    for platform, system in (("linux", "Linux"), ("darwin", "Darwin"))
]


@dataclass(frozen=True)
class Pin:
    """One locked library."""

    name: str
    version: str
    hashes: tuple[str, ...]


def entries(lock: str) -> Iterator[str]:
    """The logical lines of a requirements file, without comments."""
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    return (
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.strip().startswith("#")
    )


def pins(lock: str) -> dict[str, Pin]:
    found: dict[str, Pin] = {}
    for line in entries(lock):
        words = line.split()
        name, _, version = words[0].partition("==")
        found[canonicalize_name(name)] = Pin(name, version, tuple(words[1:]))
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_lock__pins_and_hashes_every_line(lock: str) -> None:
    pattern = re.compile(r"[a-z0-9._-]+==[\w.]+( +--hash=sha256:[0-9a-f]{64})+")
    assert [line for line in entries(lock) if not pattern.fullmatch(line)] == []
    assert len(list(entries(lock))) == len(pins(lock)) > 0


@pytest.mark.parametrize("lock", LOCKS)
def test_lock__names_no_index(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert re.findall(r"--(?:index|extra|find|trusted)|\w+://|@", text) == []


@pytest.mark.parametrize(
    ("lock", "declared"),
    [
        (LOCKS[0], PROJECT["project"]["dependencies"]),
        (LOCKS[1], PROJECT["build-system"]["requires"]),
    ],
)
def test_lock__contains_every_dependency_within_its_range(lock: str, declared: list[str]) -> None:
    locked = pins(lock)
    wanted = [Requirement(line) for line in declared]
    wrong = [
        str(each)
        for each in wanted
        if (pin := locked.get(canonicalize_name(each.name))) is None
        or pin.version not in each.specifier
    ]
    assert wanted
    assert wrong == [], "run .ci/lock"


def test_lock__is_complete_wherever_it_is_installed() -> None:
    locked = pins(LOCKS[0])
    installed: dict[str, metadata.Distribution] = {
        canonicalize_name(each.name): each for each in metadata.distributions()
    }
    # Only the metadata of the locked version lists what that version needs.
    known = [
        installed[name]
        for name, pin in locked.items()
        if name in installed and installed[name].version == pin.version
    ]
    needs = {(each.name, need) for each in known for need in each.requires or ()}
    wrong = [
        f"{name} needs {need}"
        for name, need in sorted(needs)
        if any(
            (parsed := Requirement(need)).marker is None or parsed.marker.evaluate(target)
            for target in TARGETS
        )
        and (
            (pin := locked.get(canonicalize_name(parsed.name))) is None
            or pin.version not in parsed.specifier
        )
    ]
    assert wrong == []


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = (
        "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        .replace("\\\n", " ")
        .splitlines()
    )
    return [
        (word.upper(), " ".join(rest.split()))
        for word, _, rest in (line.strip().partition(" ") for line in lines if line.strip())
    ]


def test_dockerfile__uses_the_argument_and_sets_no_user_or_folder() -> None:
    found = instructions()
    assert found[0] == ("ARG", "PYTHON_IMAGE=python:3.13-slim")
    assert {rest.partition(" AS ")[0] for word, rest in found if word == "FROM"} == {
        "${PYTHON_IMAGE}"
    }
    # GitHub's rules for Docker actions: root, in the workspace that the runner mounts.
    assert {word for word, _ in found} & {"USER", "WORKDIR", "VOLUME"} == set()


def test_dockerfile__installs_from_the_index_with_hashes_alone() -> None:
    runs = [
        part.strip() for word, rest in instructions() if word == "RUN" for part in rest.split("&&")
    ]
    pip = [part for part in runs if re.search(r"\bpip\b.* (install|wheel|download) ", part)]
    assert pip
    assert [
        part for part in pip if "--require-hashes" not in part and "--no-index" not in part
    ] == []
    assert [part for part in pip if "--no-deps" not in part] == []


def test_build_context__is_a_list_of_what_goes_in() -> None:
    lines = [
        line
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert lines[0] == "*"
    kept = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        source
        for word, rest in instructions()
        if word == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    }
    assert copied == kept
    assert [name for name in kept if not (ROOT / name).exists()] == []


def test_checks__run_the_command_of_the_readme() -> None:
    command = "python3 -m pip install -e '.[dev]' && python3 -m pytest"
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f'check "{command}"' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.name for path in WORKFLOWS])
def test_workflow__pins_every_action_and_grants_nothing_by_default(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"].values()
    used = [step["uses"] for job in jobs for step in job.get("steps", ()) if "uses" in step]
    assert [
        name
        for name in used
        if not name.startswith("./") and not re.search(r"@[0-9a-f]{40}$", name)
    ] == []
    assert all("permissions" in job and "timeout-minutes" in job for job in jobs)
