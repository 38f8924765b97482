"""What every report shows, made ready once: `view_of` turns a review into words that a template only has to place."""

from agentevals_action.reports.view.links import Links
from agentevals_action.reports.view.making import view_of
from agentevals_action.reports.view.shapes import MARKER, Limits, View
from agentevals_action.reports.view.verdict import headline

__all__ = ["MARKER", "Limits", "Links", "View", "headline", "view_of"]
