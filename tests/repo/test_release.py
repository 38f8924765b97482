"""A release: what a tag must fulfil, and that the workflow runs the tested steps."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.support.repositories import ENVIRONMENT, Repository

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci/release.py"
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
DIGEST = f"sha256:{'ab' * 32}"
IMAGE = f"docker://ghcr.io/org/agentevals-action@{DIGEST}"
VERSION_FILE = "src/agentevals_action/__init__.py"
SHARDED = ".github/workflows/sharded.yml"
USES = "jobs: {plan: {steps: [\n  uses: org/agentevals-action@%s # the release moves it\n]}}\n"
FILES: Mapping[str, str] = {
    "action.yml": "name: Gate\nruns:\n  using: docker\n  image: Dockerfile\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.3\n\n- A feature.\n\n## 1.2.2\n\n- Older.\n",
    VERSION_FILE: '__version__ = "1.2.3"\n',
    SHARDED: USES % ("0" * 40),
}


def release(repository: Repository, *words: str) -> tuple[int, str]:
    """The exit code of a command of the script, and what it prints."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        cwd=repository.path,
        env={**ENVIRONMENT, "GIT_CONFIG_COUNT": "0"},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def releasable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a repository `origin`, whose main can be released as 1.2.3, and its `clone`."""
    folder = tmp_path_factory.mktemp("releasable")
    origin = Repository.create(folder / "origin", FILES)
    origin.git("checkout", "--quiet", "--detach")
    origin.git("clone", "--quiet", "--branch", "main", str(origin.path), str(folder / "clone"))
    Repository(folder / "clone").git("remote", "set-url", "origin", "../origin")
    return folder


@pytest.fixture
def clone(tmp_path: Path, releasable: Path) -> Repository:
    shutil.copytree(releasable, tmp_path, symlinks=True, dirs_exist_ok=True)
    return Repository(tmp_path / "clone")


@pytest.mark.slow
def test_release__the_tag_names_the_image_by_digest_and_the_major_tag_moves(
    clone: Repository,
) -> None:
    main = clone.head()
    clone.git("push", "--quiet", "origin", f"{main}:refs/tags/v1")  # an earlier release
    assert release(clone, "check", "1.2.3") == (0, "")
    assert release(clone, "tag", "1.2.3", DIGEST) == (0, "")
    assert release(clone, "push", "1.2.3") == (0, "")
    user = Repository(clone.path.parent / "user")
    user.path.mkdir()
    clone.git("clone", "--quiet", str(clone.path.parent / "origin"), str(user.path))
    action = yaml.safe_load(user.git("show", "v1:action.yml"))
    assert action["runs"] == {"using": "docker", "image": IMAGE}
    assert user.git("rev-parse", "v1^{commit}") == user.git("rev-parse", "v1.2.3^{commit}")
    assert user.git("rev-parse", "v1~2") == main == user.git("rev-parse", "origin/main")
    # The reusable workflow uses the action of the release, also where it is pinned by commit.
    used = user.git("rev-parse", "v1~")
    assert used in user.git("show", f"v1:{SHARDED}")
    assert user.git("show", f"{used}:action.yml") == user.git("show", "v1:action.yml")
    assert release(user, "check-tag", "v1.2.3") == (0, "")
    assert release(user, "notes", "1.2.3") == (0, "- A feature.\n")


@pytest.mark.slow
def test_release__a_tag_never_changes(clone: Repository) -> None:
    assert release(clone, "tag", "1.2.3", DIGEST)[0] == 0
    assert release(clone, "push", "1.2.3")[0] == 0
    clone.git("checkout", "--quiet", "main")
    clone.git("reset", "--quiet", "--hard", "origin/main")
    code, printed = release(clone, "check", "1.2.3")
    assert (code, "the tag v1.2.3 exists, and a tag never changes" in printed) == (1, True)
    # Also if somebody pushes without the check; the tag of the major version stays, too.
    before = clone.git("ls-remote", "--tags", "origin")
    clone.git("tag", "--delete", "v1.2.3")
    assert release(clone, "tag", "1.2.3", DIGEST.replace("ab", "cd"))[0] == 0
    assert release(clone, "push", "1.2.3")[0] == 1
    assert clone.git("ls-remote", "--tags", "origin") == before


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({VERSION_FILE: '__version__ = "1.2.4"\n'}, "has the version 1.2.4, not 1.2.3"),
        ({"CHANGELOG.md": "## 1.2.3\n\n## 1.2.2\n\nOlder.\n"}, "has no text below `## 1.2.3`"),
        (
            {"action.yml": FILES["action.yml"].replace("Dockerfile", IMAGE)},
            "does not build its image",
        ),
    ],
)
def test_check__refuses_a_commit_that_is_no_release(
    clone: Repository, files: Mapping[str, str], problem: str
) -> None:
    clone.commit("a change", files)
    clone.git("push", "--quiet", "origin", "main")
    code, printed = release(clone, "check", "1.2.3")
    assert (code, problem in printed) == (1, True), printed


def test_check__refuses_what_is_not_merged_or_not_committed(clone: Repository) -> None:
    clone.write({"action.yml": FILES["action.yml"] + "#\n"})
    assert "files are not committed" in release(clone, "check", "1.2.3")[1]
    clone.commit("not merged")
    assert "HEAD is not on origin/main" in release(clone, "check", "1.2.3")[1]


def test_check__refuses_a_version_before_the_latest_release(clone: Repository) -> None:
    """Accident: a release of an older commit of main moves v1 back."""
    for tag in ("v1.2.2", "v1.10.0", "v2.0.0", "v1.x"):
        clone.git("push", "--quiet", "origin", f"main:refs/tags/{tag}")
    refused = "v1.10.0 is released, and v1 would move back from it\n"
    assert release(clone, "check", "1.2.3") == (1, refused)
    clone.git("push", "--quiet", "--delete", "origin", "v1.10.0")
    assert release(clone, "check", "1.2.3") == (0, "")


def retag(clone: Repository, files: Mapping[str, str], *, annotated: bool = True) -> None:
    """The tags v1.2.3 and v1 on a new commit with these files, and on that of the reusable
    workflow."""
    clone.commit("The image of 1.2.3", files)
    clone.commit("Release 1.2.3", {SHARDED: USES % clone.head(), **files})
    options = ("--annotate", "--message", "1.2.3") if annotated else ()
    clone.git("tag", "--force", *options, "v1.2.3")
    clone.git("tag", "--force", "v1", "HEAD")


RELEASED = {"action.yml": FILES["action.yml"].replace("Dockerfile", IMAGE)}


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (RELEASED, ""),
        ({"README.md": "x"}, "does not name the image by its digest"),
        ({"action.yml": RELEASED["action.yml"].replace(f"@{DIGEST}", ":1.2.3")}, "by its digest"),
        ({"action.yml": RELEASED["action.yml"].replace("org/", "other/")}, "by its digest"),
        ({**RELEASED, "src/x.py": "x"}, "changes more than the image in action.yml"),
        ({"action.yml": RELEASED["action.yml"] + "#\n"}, "changes more than the image"),
        ({**RELEASED, VERSION_FILE: '__version__ = "1.2.4"\n'}, "has the version 1.2.4"),
        ({**RELEASED, SHARDED: USES % ("1" * 40)}, "does not use the action of the release"),
    ],
)
def test_tag__of_another_commit_is_refused(
    clone: Repository, files: Mapping[str, str], problem: str
) -> None:
    retag(clone, files)
    code, printed = release(clone, "check-tag", "v1.2.3")
    assert (code, problem in printed) == (1 if problem else 0, True), printed


def test_tag__not_on_main_not_annotated_or_without_its_major_tag_is_refused(
    clone: Repository,
) -> None:
    clone.commit("not merged", {"src/x.py": "x"})
    retag(clone, RELEASED, annotated=False)
    clone.git("tag", "--force", "v1", "HEAD^")
    code, printed = release(clone, "check-tag", "v1.2.3")
    assert code == 1
    assert printed.splitlines() == [
        "v1.2.3 is not an annotated tag",
        "the release is not two commits with one parent each after origin/main",
        "the tag v1 is not on the commit of v1.2.3",
    ]


def scripts(job: str) -> list[str]:
    return [step["run"] for step in WORKFLOW["jobs"][job]["steps"] if "run" in step]


def test_workflow__runs_every_step_of_the_dry_run() -> None:
    text = "\n".join(script for job in WORKFLOW["jobs"] for script in scripts(job))
    used = {shlex.split(line)[2] for line in text.splitlines() if "release.py" in line}
    steps = re.findall(r'step\("([a-z-]+)"', SCRIPT.read_text(encoding="utf-8"))
    assert used == {*steps} - {"check-tag"}  # `tag` checks what it made
    assert 'check "python3 .ci/release.py --dry-run"' in (ROOT / ".ci/run").read_text()


def test_workflow__no_step_is_given_an_expression_in_its_script() -> None:
    """Attack: a version such as `1.0.0"; curl …` is a command of the shell."""
    assert [script for job in WORKFLOW["jobs"] for script in scripts(job) if "${{" in script] == []


def test_workflow__pypi_has_no_token_and_only_the_tested_files() -> None:
    job = WORKFLOW["jobs"]["pypi"]
    assert job["permissions"] == {"id-token": "write"}
    assert [step["uses"].partition("@")[0] for step in job["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")


# Builds the wheel with tools of the package registry.
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_dry_run__of_the_last_commit_succeeds() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--dry-run"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "would succeed" in done.stdout
