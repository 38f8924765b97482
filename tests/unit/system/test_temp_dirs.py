"""Temporary folders: removed with their run, whatever is in them."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from agentevals_action.system import temp_dirs
from agentevals_action.system.isolation import ChildUser, file_access_as
from tests.support.waiting import entered

PREFIX = "agentevals-test-"


def test_temp_folder__is_removed_at_the_end(tmp_path: Path) -> None:
    with entered(temp_dirs.temp_folder(PREFIX, tmp_path)) as folder:
        (folder / "file").touch()
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to users")
@pytest.mark.parametrize("is_foreign", [False, True], ids=["unreadable", "of another user"])
def test_remove_folder__without_the_rights_of_root(
    is_foreign: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The action runs as a user outside of its container; an agent may start one of its own."""
    top, uid = Path(tempfile.mkdtemp(prefix=PREFIX)), 61_000
    top.chmod(0o777)  # every user can reach it
    try:
        below = top / "made" / "closed" / "below"
        below.mkdir(parents=True)
        (below / "file").touch()
        for folder in (below, below.parent, below.parent.parent):
            if folder != below or not is_foreign:
                os.chown(folder, uid, uid)
                folder.chmod(0)
        with file_access_as(ChildUser(uid, top, top)):
            temp_dirs.remove_folder(top / "made")
        assert (below / "file").exists() is is_foreign
        assert ("could not be removed" in caplog.text) is is_foreign
    finally:
        shutil.rmtree(top)
