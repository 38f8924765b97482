"""What a report format is: one file in the report folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from agentevals_action.errors import OutputError
from agentevals_action.model.comparison import Review

#: What to do where a file cannot be written.
WRITABLE = "see that there is room on the disk and that the folder may be written to, or name another one, and run again"


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
    """Writes UTF-8 whole or not at all, making the folder; OutputError when it cannot be
    written."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with written(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_text(text, encoding="utf-8", errors="replace", newline="\n")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Around what writes a file: OutputError, with the system's reason, when it cannot be
    written."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror or error}", WRITABLE
        ) from error
