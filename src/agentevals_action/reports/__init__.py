"""The report formats: one file each; a new one is its file and its line here."""

from pathlib import Path
from typing import TYPE_CHECKING

from agentevals_action.reports.base import Report

if TYPE_CHECKING:
    from agentevals_action.reports.view.links import Links


def files(links: "Links", custom: Path | None = None) -> tuple[Report, ...]:
    """The files of the report folder that are made from a review; `custom` is the comment's own
    template."""
    # Late: a run on this machine writes rows and renders nothing.
    from agentevals_action.reports.markdown import CommentFile
    from agentevals_action.reports.summary_json import SummaryFile

    return (CommentFile(links, custom), SummaryFile())
