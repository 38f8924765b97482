"""Every report of the registry: one file in the folder, complete or not at all, valid for every
answer of an agent."""

from pathlib import Path

import pytest

from agentevals_action.errors import OutputError
from agentevals_action.reports.registry import REPORTS, write_reports
from agentevals_action.reports.view.build import build_view
from agentevals_action.system.files.tree_files import write_file
from tests.support import reviews

reports_by_name = pytest.mark.parametrize("name", REPORTS)


def test_registry__file_names_have_no_folder() -> None:
    assert all(Path(name).name == name for name in REPORTS)


@pytest.mark.slow
@reports_by_name
@pytest.mark.parametrize("review", reviews.REVIEWS)
def test_report__is_utf_8_and_the_same_each_time(name: str, review: str) -> None:
    view = build_view(reviews.REVIEWS[review]())
    text = REPORTS[name](view)
    assert text.encode("utf-8", "strict" if name.endswith(".json") else "replace")
    assert REPORTS[name](view) == text


def test_write_reports__writes_the_registered_files_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    view = build_view(reviews.hostile())
    assert write_reports(view, folder).problems == ()
    assert {path.name for path in folder.iterdir()} == set(REPORTS)
    first = {path.name: path.read_bytes().decode("utf-8") for path in folder.iterdir()}
    assert write_reports(view, folder).problems == ()
    assert {path.name: path.read_bytes().decode("utf-8") for path in folder.iterdir()} == first


def test_write_reports__one_that_cannot_be_written_does_not_prevent_the_others(
    tmp_path: Path,
) -> None:
    (tmp_path / "report" / "comment.md").mkdir(parents=True)
    written = write_reports(build_view(reviews.hostile()), tmp_path / "report")
    (problem,) = written.problems
    assert "comment.md cannot be written: Is a directory; check that the disk" in problem
    assert (tmp_path / "report" / "summary.json").is_file()


def test_write_file__leaves_the_old_file_when_it_fails(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    (taken / "inside").mkdir(parents=True)
    with pytest.raises(OutputError, match="taken cannot be written: Is a directory"):
        write_file(taken, [b"new"])
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_write_file__follows_no_link_to_another_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "report").symlink_to("other")
    for path in (tmp_path / "report/file", tmp_path / "report/new/file"):
        with pytest.raises(OutputError, match="file cannot be written: a link leads to another"):
            write_file(path, [b"new"])
    assert list((tmp_path / "other").iterdir()) == []
