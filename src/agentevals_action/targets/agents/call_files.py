"""The folder of one call: files that the command reads and writes."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.targets.agents import placeholders

#: The files by the placeholder that stands for their path.
FILE_NAMES = {
    "PROMPT_FILE": "prompt.txt",
    "MESSAGES_FILE": "messages.json",
    "OUTPUT_FILE": "output.txt",
}
_MEGABYTE = 1024**2


@dataclass(frozen=True)
class CallFiles:
    """The folder, and its descriptor, which stays valid if the agent replaces the folder."""

    folder: Path
    descriptor: int

    def path(self, placeholder: str) -> Path:
        """The path of a file."""
        return self.folder / FILE_NAMES[placeholder]

    def read(self, placeholder: str, limit: int) -> bytes | None:
        """The content of a file, up to `limit` bytes; None if there is none. The command can put
        anything there: only a regular file is read, and no link is followed. AttemptError of kind
        `target` for anything else, and for a larger file."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            file = os.open(FILE_NAMES[placeholder], flags, dir_fd=self.descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            problem = f"{{{placeholder}}} cannot be read: {error.strerror}"
            raise AttemptError("target", problem) from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise AttemptError("target", f"{{{placeholder}}} is not a regular file")
        with os.fdopen(file, "rb") as stream:
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise AttemptError("target", f"{{{placeholder}}} is over {limit // _MEGABYTE} MB")
        return data


def needs_folder(command: placeholders.Command) -> bool:
    """Whether a command uses files."""
    return any(placeholders.uses(command, name) for name in (*FILE_NAMES, "FILES"))


@contextmanager
def call_files(parent: Path | None, command: placeholders.Command) -> Iterator[CallFiles]:
    """A folder for the files of a call; only the parent if the command uses no files."""
    if not needs_folder(command):
        yield CallFiles(parent or Path(tempfile.gettempdir()), -1)
        return
    with tempfile.TemporaryDirectory(
        prefix="agentevals-", dir=parent, ignore_cleanup_errors=True
    ) as folder:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield CallFiles(Path(folder), descriptor)
        finally:
            os.close(descriptor)
