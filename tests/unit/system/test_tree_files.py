"""Copies of folders that a process still changes."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentevals_action.system.tree_files import copy_tree


@contextlib.contextmanager
def changing(path: Path) -> Iterator[None]:
    """Within the block, a process replaces the file by a FIFO and back, again and again."""
    fifo, other = path.with_name("..fifo"), path.with_name("..other")
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            os.mkfifo(fifo)
            fifo.replace(path)
            other.write_text("text")
            other.replace(path)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_copy_tree__a_file_that_becomes_a_fifo_does_not_block(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("text")
    copied = 0
    with changing(folder / "file"):
        for number in range(300):
            # The folder changes while it is listed: an error of the copy is an answer, too.
            with contextlib.suppress(OSError):
                copy_tree(folder, tmp_path / f"copy-{number}", "keep")
                copied += 1
    for copy in tmp_path.glob("copy-*/file"):
        assert copy.read_text() == "text"
    assert copied


def test_copy_tree__a_file_that_takes_no_space_is_not_copied_over_the_limit(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with (folder / "large").open("wb") as file:
        file.truncate(1024**4)
    with pytest.raises(OSError, match="larger than 16 MiB"):
        copy_tree(folder, tmp_path / "copy", "keep", most=16 * 1024**2)
    assert not (tmp_path / "copy" / "large").exists()


def test_copy_tree__many_small_entries_count_as_blocks(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number}").touch()
    with pytest.raises(OSError, match="larger than 1 MiB"):
        copy_tree(folder, tmp_path / "copy", "keep", most=1024**2)
