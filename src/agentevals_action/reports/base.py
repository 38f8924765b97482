"""What a report format is: one file in the report folder."""

from pathlib import Path
from typing import Protocol

from agentevals_action.model.comparison import Review


class Report(Protocol):
    """A file made from a review."""

    filename: str

    def write(self, review: Review, folder: Path) -> None:
        """Writes `folder/filename`, whole or not at all."""
        ...
