import os
import socket
from pathlib import Path

import pytest

from agentevals_action.system.files.regular_files import (
    NotRegularFile,
    open_regular,
    open_resolved,
    read_regular,
    read_resolved,
)


def test_read__content_and_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content\r\n")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "file", 100) == b"content\r\n"
    assert read_regular(tmp_path / "link", 3) == b"con"


def test_read__other_types_are_errors_and_do_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name, found in {
            "pipe": "a named pipe",
            "link": "a named pipe",
            "socket": "a socket",
            ".": "a folder",
        }.items():
            with pytest.raises(NotRegularFile, match=f"it is {found}, not a regular file"):
                open_regular(tmp_path / name)
    with pytest.raises(NotRegularFile, match="it is a device"):
        open_regular(Path(os.devnull))


def test_read__a_missing_file_is_the_usual_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 1)


def test_read_resolved__content_and_limit(tmp_path: Path) -> None:
    folder = tmp_path / "searched"
    folder.mkdir()
    (folder / "file").write_bytes(b"content")
    assert read_resolved(folder / "file", 100) == b"content"
    assert read_resolved(folder / "file", 3) == b"con"
    with pytest.raises(FileNotFoundError):
        read_resolved(folder / "none", 1)
    os.mkfifo(folder / "pipe")
    with pytest.raises(NotRegularFile, match="it is a named pipe"):
        open_resolved(folder / "pipe")


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
