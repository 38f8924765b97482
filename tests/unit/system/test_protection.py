"""A checkout during a run with isolation: which credentials its programs can read, and what is left
of it after the run, also after a signal."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentevals_action.system.isolation import ChildUser
from agentevals_action.system.process import run
from agentevals_action.system.program import Program
from agentevals_action.system.protection import protected_checkout, restore_owner
from agentevals_action.system.stored_credentials import warn_of_credentials
from tests.support.repositories import Repository
from tests.support.waiting import entered

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to users")

SECRET = "dG9rZW4tb2YtdGhlLWpvYg=="
STORED = "Y3JlZGVudGlhbHMtaW4tYS1maWxl"
HEADER = f'[http "https://github.com/"]\n\textraheader = AUTHORIZATION: basic {SECRET}\n'
RUNNER = 1001
HOLDER = """
import asyncio, sys
from pathlib import Path
from agentevals_action.system.protection import protected_checkout
from agentevals_action.system.signals import run
async def hold():
    async with protected_checkout(Path(sys.argv[1]), [], {}):
        print("protected", flush=True)
        await asyncio.Event().wait()
run(hold())
"""


@pytest.fixture
def made() -> Iterator[Repository]:
    """A checkout of the runner's user in a folder that every user can reach, with a credential in
    each configuration file that git reads there."""
    folder = Path(tempfile.mkdtemp(prefix="test-protection-"))
    folder.chmod(0o755)
    repository = Repository.create(folder / "checkout", {"agent.py": "1", "ci/agent.py": "1"})
    for name, text in {
        ".git/config": f"{HEADER}[user]\n\tname = Ada\n[include]\n\tpath = ../ci/job.inc\n",
        ".git/config.worktree": HEADER,
        ".git/modules/sub/config": f'[url "https://me:{SECRET}@host/"]\n\tinsteadOf = x\n',
        ".git/modules/sub/modules/deep/config.worktree": HEADER.replace("\n\t", ""),
        "second/.git/config": f"{HEADER}[user]\n\temail = ada@example.org\n",
        "third/.git/config": f'[remote "origin"]\n\turl = https://{SECRET}@host/a\n'
        f"[http]\n\tcookieFile = {SECRET}.txt\n",
        "fourth/.git/config": f'[credential]\n\thelper = "!f() {{ \\\n echo {SECRET}; }}; f"\n',
        ".git/credentials": f"https://me:{STORED}@host\n",
        ".git/own/cookies": f"host\tTRUE\t/\tTRUE\t0\tid\t{STORED}\n",
        ".git/modules/sub/job.inc": STORED,
        "second/.git/cookies": STORED,
    }.items():
        path = repository.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(text)
    for path in (repository.path, *repository.path.rglob("*")):
        os.chown(path, RUNNER, 127, follow_symlinks=False)
    yield repository
    shutil.rmtree(folder)


def state(made: Repository) -> dict[str, tuple[int, int, int, bytes]]:
    """Mode, owner, group and content of everything in the checkout."""
    return {
        str(path): (*facts[0:1], *facts[4:6], path.read_bytes() if path.is_file() else b"")
        for path in (made.path, *made.path.rglob("*"))
        if path.suffix != ".lock" and path.name != "index"
        for facts in (path.lstat(),)
    }


def output_of(user: ChildUser | None, folder: Path, script: str) -> str:
    program = Program(("sh", "-c", script), folder, {"PATH": os.environ["PATH"]}, user)
    return asyncio.run(run(program, timeout=60)).stdout


READ_ALL = "find . -type f -exec cat {} + 2> /dev/null"


def test_protected_checkout__no_configuration_of_git_holds_a_credential(
    made: Repository, caplog: pytest.LogCaptureFixture
) -> None:
    before = state(made)
    with entered(protected_checkout(made.path, [], {})) as users:
        for user in (None, users.head, users.base):
            assert SECRET not in output_of(user, made.path, READ_ALL)
            assert SECRET not in output_of(user, made.path / ".git", READ_ALL)
            assert user is None or STORED not in output_of(user, made.path, READ_ALL)
        # The rest is in effect, and what a program could write is not.
        settings = output_of(users.head, made.path, "git config --list; cat second/.git/config")
        assert "user.name=Ada" in settings
        assert "ada@example.org" in settings
    asyncio.run(restore_owner(made.path))
    assert state(made) == before
    assert "`.git/modules/sub/config`" in caplog.text
    assert "and 2 more, which the programs of the tests cannot read" in caplog.text


def test_protected_checkout__a_second_repository_stays_one(made: Repository) -> None:
    """An agent commits in it, and does not get at what is beside its configuration."""
    second = made.path / "second"
    subprocess.run(["git", "init", "--quiet"], cwd=second, check=True)
    for path in (second, *second.rglob("*")):
        os.chown(path, RUNNER, 127)
    work = "touch x && git add x && git -c user.name=Ada commit -qm x && git log --format=%an"
    with entered(protected_checkout(made.path, [], {})) as users:
        assert output_of(users.head, second, work) == "Ada\n"
        output_of(users.head, second, "mv .git away; mv .git/cookies away; rm -f .git/cookies")
        assert (second / ".git/cookies").read_text() == STORED


def test_warn_of_credentials__without_protection(
    made: Repository, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_credentials(made.path)
    assert "which the programs of the tests can read" in caplog.text


def test_protected_checkout__a_link_does_not_get_the_credentials(
    made: Repository, caplog: pytest.LogCaptureFixture
) -> None:
    """Attack: a program replaces the folder of a second repository by a link to its own copy."""
    second, copy = made.path / "second", made.path.parent / "copy"
    with entered(protected_checkout(made.path, [], {})):
        shutil.copytree(second, copy)
        shutil.rmtree(second)
        second.symlink_to(copy)
    assert SECRET not in (copy / ".git/config").read_text()
    assert "second/.git/config was changed during a run" in caplog.text
    assert not [*(made.path / ".git").glob("agentevals-*")]


def holder(made: Repository) -> "subprocess.Popen[str]":
    """A process that protects the checkout until it gets a signal."""
    words = [sys.executable, "-c", HOLDER, str(made.path)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "protected\n"
    return child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_protected_checkout__is_restored_after_a_signal(
    made: Repository, number: signal.Signals
) -> None:
    before = state(made)
    with holder(made) as child:
        assert state(made) != before
        child.send_signal(number)
        child.wait(60)
    asyncio.run(restore_owner(made.path))
    assert state(made) == before
