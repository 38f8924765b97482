"""What a report format is: one file in the report folder."""

import os
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


def write_whole(path: Path, text: str) -> None:
    """Writes UTF-8 whole or not at all, making the folder; OSError when it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
