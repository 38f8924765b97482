"""Temporary folders: removed with their run, by the next run, and whatever is in them."""

import os
import subprocess
import sys
from pathlib import Path

from agentevals_action.system import temp_dirs
from tests.support.waiting import entered

PREFIX = "agentevals-test-"
HOLDER = """
import asyncio, sys
from pathlib import Path
from agentevals_action.system.temp_dirs import locked_folder
async def main():
    async with locked_folder(sys.argv[1], Path(sys.argv[2])) as folder:
        print(folder, flush=True)
        sys.stdin.read()
asyncio.run(main())
"""


def test_locked_folder__is_removed_at_the_end(tmp_path: Path) -> None:
    with entered(temp_dirs.locked_folder(PREFIX, tmp_path)) as folder:
        (folder / "file").touch()
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_locked_folder__removes_the_folder_of_a_killed_run_and_keeps_that_of_a_running_one(
    tmp_path: Path,
) -> None:
    (tmp_path / f"{PREFIX}other").mkdir()
    command = [sys.executable, "-c", HOLDER, PREFIX, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        with entered(temp_dirs.locked_folder(PREFIX, tmp_path)):
            assert held.is_dir()
        holder.kill()
        holder.wait()
        with entered(temp_dirs.locked_folder(PREFIX, tmp_path)):
            assert not held.exists()
    assert [path.name for path in tmp_path.iterdir()] == [f"{PREFIX}other"]


def test_locked_folder__does_not_wait_for_a_fifo_of_another_program(tmp_path: Path) -> None:
    made = tmp_path / f"{PREFIX}made"
    made.mkdir()
    os.mkfifo(made / "lock")
    with entered(temp_dirs.locked_folder(PREFIX, tmp_path)) as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_remove_folder__without_permissions_and_without_following_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    outside.chmod(0o500)
    inner = tmp_path / "top" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    (inner / "link").symlink_to(outside)
    inner.chmod(0o000)
    temp_dirs.remove_folder(tmp_path / "top")
    assert list(tmp_path.iterdir()) == [outside]
    assert outside.stat().st_mode & 0o777 == 0o500
