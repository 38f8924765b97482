"""Copies of folders that a process still changes."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentevals_action.system.files.tree_files import copy_tree

#: Replaces a file by a FIFO and back until it is killed.
CHANGING = """\
import os, sys
path, other = sys.argv[1:]
while True:
    os.mkfifo(other)
    os.replace(other, path)
    with open(other, "w") as file:
        file.write("text")
    os.replace(other, path)
"""


@contextlib.contextmanager
def changing(path: Path, other: Path) -> Iterator[None]:
    """Within the block, a process changes the file."""
    with subprocess.Popen([sys.executable, "-c", CHANGING, str(path), str(other)]) as child:
        try:
            yield
        finally:
            child.kill()


@pytest.mark.slow
def test_copy_tree__a_file_that_becomes_a_fifo_does_not_block(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("text")
    copied = 0
    with changing(folder / "file", tmp_path / "other"):
        for number in range(1000):
            # A file that is replaced between two looks at it is an error of the copy.
            with contextlib.suppress(OSError):
                copy_tree(folder, tmp_path / f"copy-{number}", complete=True)
                copied += 1
    assert copied
