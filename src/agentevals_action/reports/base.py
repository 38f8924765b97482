"""The contract of a report: a file that is made from the view of a review."""

from collections.abc import Callable

from agentevals_action.reports.view.models import ReportView

#: Makes the text of a report's file.
Report = Callable[[ReportView], str]
