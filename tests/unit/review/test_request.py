"""The report folder before a review begins."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentevals_action.errors import ExitCode, InvalidInput, OutputError
from agentevals_action.review.request import ReviewWorkspace
from agentevals_action.settings import Settings

_NOBODY = 65_534


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """A folder that may not be written to; root, who may write anywhere, is somebody else for so
    long."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_make_report_folder__that_may_not_be_written_could_not_be_scored(tmp_path: Path) -> None:
    with (
        without_rights(tmp_path),
        pytest.raises(
            OutputError, match=r"agentevals-report cannot be written: Permission denied"
        ) as caught,
    ):
        ReviewWorkspace(tmp_path, Settings(), {}).make_report_folder()
    assert caught.value.exit_code is ExitCode.INCONCLUSIVE


@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300])
def test_make_report_folder__that_cannot_be_a_folder_is_an_error_of_the_input(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be used"):
        ReviewWorkspace(tmp_path, Settings(report_dir=name), {}).make_report_folder()
