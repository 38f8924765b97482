"""Users of child processes: what is left of them, and whose rights this process has for them."""

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.system import isolation, process
from agentevals_action.system.isolation import ChildUser
from agentevals_action.system.process import Completed
from agentevals_action.system.program import Program

#: Leaves its process group and its parent, and says where it is.
DAEMON = """\
import os, sys, time
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.write(write, str(os.getpid()).encode())
    os.close(1); os.close(2)
    time.sleep(600)
print(os.read(read, 20).decode())
"""

#: As DAEMON, but its first thread ends.
THREAD = DAEMON.replace(
    "time.sleep(600)",
    "import ctypes, threading\n"
    "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
    "    ctypes.CDLL(None).pthread_exit(None)",
)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start other users' processes")


#: The user of the programs of this test process. The users of the image belong to the containers
#: of other tests on this machine, whose programs would be ended, and would count as its processes.
UID = 61_000 + os.getpid() % 4_000


@pytest.fixture
def user() -> ChildUser:
    """A user in a folder that it can reach."""
    return ChildUser(UID, Path("/tmp"), Path("/tmp"))  # any folder will do


def run(
    *words: str, user: ChildUser | None = None, folder: Path = Path("/"), stdin: str = ""
) -> Completed:
    environment = {"PATH": os.environ["PATH"], "HOME": "/root"}
    program = Program(words, folder, environment, user)
    return asyncio.run(process.run(program, timeout=60, stdin=stdin))


def daemon(program: str) -> int:
    done = run(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a parent for orphans")
@pytest.mark.parametrize(
    "program", [DAEMON, THREAD], ids=["a daemon", "a process whose first thread ended"]
)
def test_end_processes__finds_what_left_its_group(program: str) -> None:
    script = (
        "import sys; from tests.unit.system.test_isolation import *\n"
        "isolation.adopt_orphans(); pid = daemon(sys.argv[1])\n"
        "print(pid in isolation._descendants())\n"
        "isolation.end_processes(); print(isolation._descendants())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "True\nset()\n", done.stderr


#: Leaves processes behind, which end at once, and waits until no dead process is left of them.
LEAVING = """\
import os, pathlib, time
for _ in range(20):
    if os.fork() == 0:
        os._exit(0 if os.fork() else 0)
    os.wait()
def dead():
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z" and int(parent) == os.getppid():
            return True
while dead():
    time.sleep(0.01)
"""
#: Runs that program beside children that end with code 7, then alone, and prints all codes.
REAPING = """\
from tests.unit.system.test_isolation import *
isolation.adopt_orphans()
async def code_of(words):
    program = Program(words, Path("/"), {"PATH": os.environ["PATH"]})
    return (await process.run(program, timeout=60)).returncode
async def codes():
    found = set(await asyncio.gather(*map(code_of, [LEAVES] + 60 * [SEVEN])))
    return {await code_of(LEAVES), *found}
LEAVES, SEVEN = (sys.executable, "-c", LEAVING), ("sh", "-c", "exit 7")
print(asyncio.run(codes()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a parent for orphans")
def test_run__dead_orphans_do_not_pile_up_and_no_exit_code_is_lost() -> None:
    """They count for the limit of processes of their user."""
    done = subprocess.run(
        [sys.executable, "-c", REAPING], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "{0, 7}\n", done.stdout + done.stderr


def test_end_processes__spares_those_of_a_process_that_adopts_none() -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        isolation.end_processes()
        assert other.poll() is None
        other.send_signal(signal.SIGKILL)


@as_root
def test_run__as_a_user_has_its_rights_alone(user: ChildUser) -> None:
    command = (
        "id -u; id -g; id -G; echo seen > /dev/stderr; cat /dev/stdin; git config safe.directory"
    )
    done = run("sh", "-c", command, user=user, stdin="fed\n")
    uid = str(UID)
    assert done.stdout.split() == [uid, uid, uid, "fed", "*"], done.stderr
    assert done.stderr == "seen\n"


@as_root
def test_file_access_as__has_the_rights_of_the_user(user: ChildUser, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    with isolation.file_access_as(user), pytest.raises(PermissionError):
        secret.read_text()
    assert secret.read_text() == "x"


#: Starts threads, which count like processes and need less memory, until the system refuses one.
THREADS = """\
import os, threading
threading.stack_size(65536)
end, number = threading.Event(), 0
try:
    while number < 5000:
        threading.Thread(target=end.wait).start()
        number += 1
except RuntimeError:
    pass
print(number, flush=True)
os._exit(0)
"""


@pytest.mark.slow
@as_root
def test_restrict_children__a_user_has_a_limited_number_of_processes(user: ChildUser) -> None:
    """Attack: an agent starts processes until the machine has none left for the action."""
    script = (
        "import sys; from tests.unit.system.test_isolation import *\n"
        "isolation.restrict_children(); user = ChildUser(UID, Path('/'), Path('/'))\n"
        "print(run('/usr/bin/python3', '-c', THREADS, user=user).stdout)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert 0 < int(done.stdout) <= isolation.MAX_PROCESSES, done.stderr


def test_find_obstacle__outside_of_the_image() -> None:
    assert isolation.find_obstacle({}) == "the action does not run in its own container"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@as_root
@pytest.mark.parametrize("group", [None, UID], ids=["an agent", "a judge"])
def test_run__a_folder_that_a_program_replaced_by_a_link_is_not_entered(
    user: ChildUser, shared: Path, group: int | None
) -> None:
    """Attack: a suite's folder becomes a link into the tree of base, whose folders everybody may
    read who is inside."""
    user = replace(user, uid=isolation.UIDS[2] if group else user.uid, group=group)
    (shared / "base").mkdir(mode=0o710)
    (shared / "base/tree").mkdir()
    (shared / "base/tree/rules.txt").write_text("the other side's")
    (shared / "evals").symlink_to("base/tree")

    with pytest.raises(PermissionError, match="evals"):
        run("cat", "rules.txt", user=user, folder=shared / "evals")
    os.chown(shared / "base", 0, UID)
    done = run("cat", "rules.txt", user=user, folder=shared / "evals")
    assert done.stdout == "the other side's"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux offers this")
@as_root
def test_hide_from_children__a_child_of_the_same_user_cannot_read_the_parents_environment(
    user: ChildUser,
) -> None:
    """Root may read everything; the user cannot import the package."""
    script = (
        "import ctypes, os, subprocess, sys\n_PR_SET_DUMPABLE = 4\n"
        f"{inspect.getsource(isolation.hide_from_children)}\n"
        "def child(): return subprocess.call(['cat', f'/proc/{os.getpid()}/environ'], stdout=subprocess.DEVNULL)\n"
        "before = child(); hide_from_children(); print(before, child())\n"
    )
    assert run("/usr/bin/python3", "-c", script, user=user).stdout.split() == ["0", "1"]
