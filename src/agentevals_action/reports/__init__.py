"""The files of the report folder. A new report is one module and one line in `REPORTS`."""

from collections.abc import Mapping
from pathlib import Path

from agentevals_action.reports import markdown, summary_json
from agentevals_action.reports.base import Report
from agentevals_action.reports.view.models import ReportView
from agentevals_action.system.tree_files import write_atomically

#: The reports by the names of their files.
REPORTS: Mapping[str, Report] = {
    "comment.md": markdown.comment,
    "summary.json": summary_json.review_summary,
}


def write_reports(view: ReportView, folder: Path) -> None:
    """Writes every report into a folder; OutputError if one cannot be written."""
    for name, report in REPORTS.items():
        write_atomically(folder / name, report(view))
