"""Temporary folders: removed with their run, whatever is in them."""

from pathlib import Path

from agentevals_action.system import temp_dirs
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
