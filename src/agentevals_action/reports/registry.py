"""The files of the report folder. A new report is one module and one line in `REPORTS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.errors import OutputError
from agentevals_action.reports import annotations, junit, summary_json
from agentevals_action.reports.markdown import texts as markdown
from agentevals_action.reports.page.report_page import PAGE, report_page
from agentevals_action.reports.view.models import ReportView
from agentevals_action.system.files.tree_files import write_file

#: The reports by the names of their files: each makes the text from the view of a review.
REPORTS: Mapping[str, Callable[[ReportView], str]] = {
    "comment.md": markdown.comment,
    PAGE: report_page,
    "junit.xml": junit.junit,
    "results.sarif": annotations.sarif,
    "summary.json": summary_json.review_summary,
}


@dataclass(frozen=True)
class WrittenReports:
    """The contents of the reports by the names of their files, and a sentence for each file that
    could not be written."""

    contents: Mapping[str, bytes]
    problems: tuple[str, ...]


def write_reports(view: ReportView, folder: Path) -> WrittenReports:
    """Writes every report into a folder."""
    contents, problems = {}, []
    for name, report in REPORTS.items():
        contents[name] = report(view).encode("utf-8", "replace")
        try:
            write_file(folder / name, [contents[name]])
        except OutputError as error:
            problems.append(error.sentence)
    return WrittenReports(contents, tuple(problems))
