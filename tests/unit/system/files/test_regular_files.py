"""Reading of files, where a program may have put a FIFO, a device or a link."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from agentevals_action.system.files.regular_files import NotRegularFile, read_regular, read_resolved

both = pytest.mark.parametrize("read", [read_regular, read_resolved])


@both
def test_read__content_and_limit(tmp_path: Path, read: Callable[[Path, int], bytes]) -> None:
    (tmp_path / "file").write_bytes(b"content\r\n")
    assert read(tmp_path / "file", 100) == b"content\r\n"
    assert read(tmp_path / "file", 3) == b"con"
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none", 1)


@both
def test_read__other_types_are_errors_and_do_not_block(
    tmp_path: Path, read: Callable[[Path, int], bytes]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path in (*tmp_path.iterdir(), tmp_path, Path(os.devnull)):
            with pytest.raises(NotRegularFile, match="it is not a regular file"):
                read(path, 1)


@pytest.mark.parametrize("replaced", ["file", "folder"])
def test_read_resolved__follows_no_link_that_a_program_made(tmp_path: Path, replaced: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("a key")
    path = tmp_path / "repository" / "folder" / "file"
    path.parent.mkdir(parents=True)
    if replaced == "file":
        path.symlink_to(outside / "file")
    else:
        path.parent.rmdir()
        path.parent.symlink_to(outside)
    assert read_regular(path, 10) == b"a key"
    with pytest.raises(NotRegularFile, match="a program replaced it"):
        read_resolved(path, 10)
