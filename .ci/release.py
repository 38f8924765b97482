#!/usr/bin/env python3
"""The steps of a release that need no account; `.github/workflows/release.yml` runs them.

    release.py check VERSION          before anything is built: may this commit be released?
    release.py build FOLDER           the wheel and the source archive, and whether they are whole
    release.py tag VERSION DIGEST     the release commit and its tags in this clone
    release.py check-tag TAG          what a tag must fulfil
    release.py push VERSION           pushes the tags, all or none
    release.py notes VERSION          the section of CHANGELOG.md
    release.py --dry-run              all of these in a temporary clone, with an origin of its own

Needs git and Python 3.11; `build` needs pip. Exit code 1 with a sentence for each problem."""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

IMAGE = "ghcr.io/org/agentevals-action"
ACTION, CHANGELOG = "action.yml", "CHANGELOG.md"
VERSION_FILE = "src/agentevals_action/__init__.py"
#: The reusable workflow, and its steps that use the action.
SHARDED = ".github/workflows/sharded.yml"
USED = re.compile(r"(?<= uses: org/agentevals-action@)[0-9a-f]{40}(?= # the release moves it\n)")
#: `action.yml` on main, whose image is built, and on a release.
BUILT = "\n  image: Dockerfile\n"
PULLED = re.compile(rf"\n  image: docker://{re.escape(IMAGE)}@(sha256:[0-9a-f]{{64}})\n")
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_AUTHOR = ("-c", "user.name=agentevals-action", "-c", "user.email=noreply@github.com")


class Refused(Exception):
    """A release that must not be made; one sentence for each reason."""


def git(*words: str, expect: int | None = 0) -> str:
    """What git prints in the current folder. Refused if it fails; `expect` None accepts that."""
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    if expect is not None and done.returncode != expect:
        raise Refused(f"`git {' '.join(words)}` failed: {done.stderr.strip()}")
    return done.stdout.strip()


def show(revision: str, path: str) -> str:
    """The text of a file in a commit."""
    return git("show", f"{revision}:{path}") + "\n"


def section(changelog: str, version: str) -> str:
    """The text below the heading of a version, empty if there is none."""
    pattern = rf"^## {re.escape(version)}\b.*\n((?:(?!## ).*\n?)*)"
    found = re.search(pattern, changelog, re.MULTILINE)
    return found[1].strip() if found else ""


def major_tag(version: str) -> str:
    """The tag that moves with each release of a major version: `v1`."""
    return f"v{version.partition('.')[0]}"


def _problems_of_source(revision: str, version: str) -> Iterator[str]:
    if not _VERSION.fullmatch(version):
        yield f"`{version}` is not a version; write three numbers, such as 1.2.3"
        return
    declared = re.search(r'__version__ = "([^"]*)"', show(revision, VERSION_FILE))
    if declared is None or declared[1] != version:
        found = declared[1] if declared else "none"
        yield f"{VERSION_FILE} has the version {found}, not {version}; change it on main"
    if not section(show(revision, CHANGELOG), version):
        yield f"{CHANGELOG} has no text below `## {version}`; write what changed"


def check(version: str) -> None:
    """Refused if HEAD must not be released as this version."""
    problems = list(_problems_of_source("HEAD", version))
    if git("status", "--porcelain"):
        problems.append("files are not committed; commit or remove them")
    if BUILT not in show("HEAD", ACTION):
        problems.append(f"{ACTION} does not build its image; on main it has `image: Dockerfile`")
    if not USED.search(show("HEAD", SHARDED)):
        problems.append(f"{SHARDED} has no step that uses the action by a commit")
    if not _is_on_main("HEAD"):
        problems.append("HEAD is not on origin/main; release a commit that was merged")
    if git("ls-remote", "--tags", "origin", f"refs/tags/v{version}"):
        problems.append(f"the tag v{version} exists, and a tag never changes; raise the version")
    if newer := _newer_release(version):
        problems.append(f"v{newer} is released, and {major_tag(version)} would move back from it")
    _refuse(problems)


def _newer_release(version: str) -> str:
    """The latest release of the same major version if it is newer, else an empty text.

    Accident: a release of an older commit of main gives its old code to all users of `v1`."""
    if not _VERSION.fullmatch(version):
        return ""
    listed = git("ls-remote", "--tags", "origin", f"refs/tags/{major_tag(version)}.*").splitlines()
    found = [line.rpartition("/v")[2] for line in listed]
    versions = [*filter(_VERSION.fullmatch, found), version]
    latest = max(versions, key=lambda release: tuple(map(int, release.split("."))))
    return latest if latest != version else ""


def _is_on_main(revision: str) -> bool:
    git("fetch", "--quiet", "origin", "main")
    return not git("rev-list", "--max-count=1", revision, "^FETCH_HEAD")


def build(folder: Path) -> None:
    """Builds the distributions into a folder. Refused if they are not complete."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temp:
        venv.create(Path(temp, "tools"), with_pip=True)
        python = str(Path(temp, "tools/bin/python"))
        for words in (
            ["-m", "pip", "install", "--quiet", "build"],
            ["-m", "build", "--outdir", str(folder)],
        ):
            done = subprocess.run([python, *words], capture_output=True, text=True, check=False)
            if done.returncode:
                raise Refused(f"`python {' '.join(words)}` failed: {done.stderr[-2000:]}")
    (wheel,) = folder.glob("*.whl")
    version = wheel.name.split("-")[1]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(f"agentevals_action-{version}.dist-info/METADATA").decode()
    needed = ("_data/templates/comment.md.j2", "_data/schemas/eval.schema.json", "__main__.py")
    missing = [name for name in needed if f"agentevals_action/{name}" not in names]
    declared = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    problems = [f"the wheel lacks {name}" for name in missing]
    if f"Name: {declared}\nVersion: {version}\n" not in metadata:
        problems.append(f"the wheel's metadata has another name or version than {wheel.name}")
    if not list(folder.glob("*.tar.gz")):
        problems.append("there is no source archive")
    _refuse(problems)


def tag(version: str, digest: str) -> None:
    """Commits `action.yml` with the digest of the image on HEAD, then the reusable workflow that
    uses the action of that commit, and makes the tags of the version and of its major version."""
    if not _DIGEST.fullmatch(digest):
        raise Refused(f"`{digest}` is not the digest of an image (sha256:…)")
    path = Path(ACTION)
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace(BUILT, f"\n  image: docker://{IMAGE}@{digest}\n"), encoding="utf-8"
    )
    git(*_AUTHOR, "commit", "--quiet", "--message", f"The image of {version}", "--", ACTION)
    used = USED.sub(git("rev-parse", "HEAD"), show("HEAD", SHARDED))
    Path(SHARDED).write_text(used, encoding="utf-8")
    git(*_AUTHOR, "commit", "--quiet", "--message", f"Release {version}", "--", SHARDED)
    git(*_AUTHOR, "tag", "--annotate", f"v{version}", "--message", f"Release {version}")
    git("tag", "--force", major_tag(version), "HEAD")
    check_tag(f"v{version}")


def check_tag(name: str) -> None:
    """Refused if a tag is not that of a release: the version, the changes, a pulled image, and two
    commits after one of main, that of the image in `action.yml` and that of the reusable workflow,
    which uses the action of the first one.

    Accident: a release of which the reusable workflow runs the action of an older commit."""
    version = name.removeprefix("v")
    problems = list(_problems_of_source(name, version))
    if git("cat-file", "-t", name) != "tag":
        problems.append(f"{name} is not an annotated tag")
    action = show(name, ACTION)
    if not PULLED.search(action):
        problems.append(f"{ACTION} does not name the image by its digest, so that it can change")
    image, *others = _parents(name)
    source, *more = _parents(image)
    if others or more or not _is_on_main(source):
        problems.append("the release is not two commits with one parent each after origin/main")
    else:
        expected = PULLED.sub(BUILT, action)
        changed = git("diff", "--name-only", source, image).splitlines()
        if changed != [ACTION] or show(source, ACTION) != expected:
            problems.append(f"the release commit changes more than the image in {ACTION}")
        expected = USED.sub(image, show(image, SHARDED))
        changed = git("diff", "--name-only", image, name).splitlines()
        if changed != [SHARDED] or show(name, SHARDED) != expected:
            problems.append(f"{SHARDED} does not use the action of the release, or more is changed")
    major = git("rev-parse", "--verify", "--quiet", f"{major_tag(version)}^{{commit}}", expect=None)
    if major != git("rev-parse", f"{name}^{{commit}}"):
        problems.append(f"the tag {major_tag(version)} is not on the commit of {name}")
    _refuse(problems)


def _parents(revision: str) -> list[str]:
    """The parents of a commit; one empty text if it has none."""
    return git("rev-list", "--parents", "--max-count=1", revision).split()[1:] or [""]


def push(version: str) -> None:
    """Pushes the tags, all or none. Only that of the major version may move."""
    tags = (f"refs/tags/v{version}", f"+refs/tags/{major_tag(version)}")
    git("push", "--quiet", "--atomic", "origin", *tags)


def _refuse(problems: list[str]) -> None:
    if problems:
        raise Refused("\n".join(problems))


def dry_run() -> None:
    """A release of HEAD of the current repository in a temporary clone. The registry's part is
    simulated: the digest is that of the wheel."""
    version = re.search(r'__version__ = "([^"]*)"', show("HEAD", VERSION_FILE))
    if version is None:
        raise Refused(f"{VERSION_FILE} has no version")
    source, head = git("rev-parse", "--show-toplevel"), git("rev-parse", "HEAD")
    with tempfile.TemporaryDirectory() as temp:
        origin, clone = Path(temp, "origin.git"), Path(temp, "clone")
        git("clone", "--quiet", "--bare", source, str(origin))
        git("--git-dir", str(origin), "update-ref", "refs/heads/main", head)
        # A release that is already tagged is made again for this test.
        git("--git-dir", str(origin), "tag", "--delete", f"v{version[1]}", expect=None)
        git("clone", "--quiet", "--branch", "main", str(origin), str(clone))
        script = str(Path(__file__).resolve())

        def step(*words: str, expect: int = 0) -> str:
            print(f"== {' '.join(words)}", flush=True)
            done = subprocess.run(
                [sys.executable, script, *words],
                cwd=clone,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != expect:
                raise Refused(f"`{' '.join(words)}` failed: {done.stderr.strip()}")
            return done.stdout

        dist = Path(temp, "dist")
        step("check", version[1])
        step("build", str(dist))
        (wheel,) = dist.glob("*.whl")
        digest = f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
        step("tag", version[1], digest)
        step("push", version[1])
        if not step("notes", version[1]).strip():
            raise Refused("the release has no notes")
        # What users get: the tags of the origin, as a fresh clone sees them.
        clone = Path(temp, "user")
        git("clone", "--quiet", str(origin), str(clone))
        step("check-tag", f"v{version[1]}")
        step("check", version[1], expect=1)  # the same version again
    print(f"== a release of {version[1]} would succeed")


def main() -> int:
    """Runs one command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("words", nargs="*", metavar="COMMAND")
    options = parser.parse_args()
    try:
        match options.words:
            case [] if options.dry_run:
                dry_run()
            case ["check", version]:
                check(version)
            case ["build", folder]:
                build(Path(folder))
            case ["tag", version, digest]:
                tag(version, digest)
            case ["check-tag", name]:
                check_tag(name)
            case ["push", version]:
                push(version)
            case ["notes", version]:
                print(section(show("HEAD", CHANGELOG), version))
            case _:
                parser.error("name one of the commands")
    except Refused as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
