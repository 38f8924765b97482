"""What the runner reads from a job: commands in the log, outputs, the job summary."""

import logging
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agentevals_action.formatting import counted
from agentevals_action.reports.markdown import github_limits as limits
from agentevals_action.reports.publication import Annotation

log = logging.getLogger(__name__)

_LEVELS = {"failure": "error", "warning": "warning"}
_SUMMARY_CUT = "\n\n**The summary is longer than GitHub's limit of 1 MiB: the rest is cut off.**\n"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def command(name: str, message: str = "", **properties: str | int) -> str:
    """A command as a line of the log, with its parts encoded."""
    given = ",".join(
        f"{key}={_encode_property(str(value))}" for key, value in properties.items() if value != ""
    )
    return f"::{name}{' ' if given else ''}{given}::{_encode(message)}"


def annotations(entries: Iterable[Annotation]) -> Iterator[str]:
    """Annotations as lines of the log, and a line that counts those over GitHub's limit."""
    counts = dict.fromkeys(_LEVELS.values(), 0)
    for annotation in entries:
        name = _LEVELS[annotation.level]
        counts[name] += 1
        if counts[name] <= limits.COMMANDS_PER_STEP:
            yield command(
                name,
                annotation.message,
                file=annotation.path,
                line=max(1, annotation.line),
                title=annotation.title,
            )
    left_out = {name: count - limits.COMMANDS_PER_STEP for name, count in counts.items()}
    if parts := [counted(count, name) for name, count in left_out.items() if count > 0]:
        yield f"Not shown as annotations: {' and '.join(parts)} more."


class CommandFile:
    """A file that the runner reads after the step, with its content from before the run.

    The runner takes the last value of an output, and a program of the pull request could add one:
    every write replaces the file. A file that cannot be written is a warning. `path` is None if
    there is no such file."""

    def __init__(self, name: str, path: Path | None) -> None:
        self._name, self._path, self._content = name, path, b""
        if path is None or not os.path.lexists(path):
            return
        if path.is_file() and not path.is_symlink():
            self._content = path.read_bytes()
        else:  # `/dev/null`
            log.warning("%s is not a regular file: it is not written", name)
            self._path = None

    def append(self, text: str) -> None:
        """Appends text to the content from before the run."""
        if self._path is None:
            return
        content = self._content + text.encode("utf-8", "replace")
        try:
            self._path.unlink(missing_ok=True)
            with self._path.open("xb") as file:
                file.write(content)
        except OSError as error:
            log.warning("%s could not be written: %s", self._name, error)
        else:
            self._content = content

    @property
    def size(self) -> int:
        """Bytes from before the run and of the action."""
        return len(self._content)


def write_outputs(file: CommandFile, outputs: Mapping[str, str]) -> None:
    """Appends outputs for the runner; no value can end itself early. ValueError for an invalid
    name."""
    parts = []
    for name, value in outputs.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid name of an output")
        delimiter = f"end_{secrets.token_hex(16)}"
        parts.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    file.append("".join(parts))


def append_summary(file: CommandFile, markdown: str) -> None:
    """Appends Markdown to the job summary, visibly cut to GitHub's limit, above which GitHub shows
    nothing."""
    free = limits.STEP_SUMMARY_BYTES - file.size
    text = markdown if markdown.endswith("\n") else f"{markdown}\n"
    size = len(text.encode("utf-8", "replace"))
    if size > free:
        kept = limits.cut_bytes(text, free - len(_SUMMARY_CUT))
        text = kept[: kept.rfind("\n") + 1] + _SUMMARY_CUT if free >= len(_SUMMARY_CUT) else ""
    file.append(text)


def _encode(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _encode_property(text: str) -> str:
    return _encode(text).replace(":", "%3A").replace(",", "%2C")
