"""The interface of a report format."""

from pathlib import Path
from typing import Protocol

from agentevals_action.model.comparison import Review


class Report(Protocol):
    """A file made from a review."""

    @property
    def filename(self) -> str:
        """Name of the file in the report folder."""
        ...

    def write(self, review: Review, folder: Path) -> None:
        """Writes `folder/filename`, whole or not at all."""
        ...
