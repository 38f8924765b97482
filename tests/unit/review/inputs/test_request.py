"""The report folder before a review begins."""

from pathlib import Path

import pytest

from agentevals_action.errors import ExitCode, InvalidInput, OutputError
from agentevals_action.review.inputs.request import ReviewWorkspace
from agentevals_action.settings import Settings


def test_make_report_folder__that_may_not_be_written_is_inconclusive() -> None:
    workspace = ReviewWorkspace(Path("/sys"), Settings(), {})  # where nobody makes a folder
    with pytest.raises(OutputError, match=r"agentevals-report cannot be written: ") as caught:
        workspace.make_report_folder()
    assert caught.value.exit_code is ExitCode.INCONCLUSIVE


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_make_report_folder__that_cannot_be_a_folder_is_an_error_of_the_input(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be used"):
        ReviewWorkspace(tmp_path, Settings(report_dir=name), {}).make_report_folder()
