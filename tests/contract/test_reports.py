"""Every report format, by its registry: one file in the folder, whole or not at all, valid whatever
an agent said."""

import pkgutil
from pathlib import Path

import pytest

from agentevals_action import reports
from agentevals_action.errors import OutputError
from agentevals_action.reports.base import Report
from agentevals_action.reports.view.links import Links
from agentevals_action.system.tree_files import write_atomically
from tests.support import reviews

#: Modules that are no format of a review: the contract, what all formats share, remarks for a host,
#: and rows that are written while running.
_NO_FORMAT = {"base", "view", "annotations", "jsonl"}

REPORTS = reports.files(Links())

formats = pytest.mark.parametrize("report", REPORTS, ids=lambda report: str(report.filename))


def test_registry__every_module_is_in_it() -> None:
    modules = {module.name for module in pkgutil.iter_modules(reports.__path__)} - _NO_FORMAT
    assert {type(report).__module__.rsplit(".", 1)[1] for report in REPORTS} == modules


def test_registry__file_names_are_plain_and_differ() -> None:
    names = [report.filename for report in REPORTS]
    assert len(set(names)) == len(names)
    assert all(Path(name).name == name for name in names)


@formats
@pytest.mark.parametrize("name", reviews.GOLDEN)
def test_format__writes_its_file_and_nothing_else(
    report: Report, name: str, tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "folder"
    review = reviews.GOLDEN[name]()
    report.write(review, folder)
    assert [path.name for path in folder.iterdir()] == [report.filename]
    first = (folder / report.filename).read_bytes()
    assert first.decode("utf-8")
    report.write(review, folder)
    assert (folder / report.filename).read_bytes() == first


def test_write_whole__leaves_the_old_file_when_it_fails(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    (taken / "inside").mkdir(parents=True)
    with pytest.raises(OutputError, match="taken cannot be written: Is a directory"):
        write_atomically(taken, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
