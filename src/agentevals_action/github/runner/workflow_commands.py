"""What the runner reads from a job: commands in the log, outputs, the job summary."""

import errno
import logging
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agentevals_action.formatting import counted
from agentevals_action.model import github_limits as limits
from agentevals_action.model.report import Annotation

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


def annotations(found: Iterable[Annotation]) -> Iterator[str]:
    """Annotations as lines of the log, and a line that counts those over GitHub's limit."""
    counts = dict.fromkeys(_LEVELS.values(), 0)
    for annotation in found:
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

    The runner takes the last value of an output. A program of the pull request that knows the file
    could add one, or put a link, a FIFO or a device there: whatever it wrote is removed when the
    action writes. A file that cannot be written is a warning. `path` None means there is none."""

    def __init__(self, name: str, path: Path | None) -> None:
        self._name = name
        self._path = path
        self._content = b""
        if path is not None and os.path.lexists(path):
            try:
                with os.fdopen(_open_regular(path, os.O_RDONLY), "rb") as file:
                    self._content = file.read()
            except OSError as error:
                self._warn(error)
                self._path = None

    def append(self, text: str) -> None:
        """Appends text to the content from before the run."""
        if self._path is None:
            return
        added = text.encode("utf-8", "replace")
        try:
            self._remove_irregular(self._path)
            with os.fdopen(_open_regular(self._path, os.O_RDWR | os.O_CREAT), "r+b") as file:
                if file.read(len(self._content) + 1) != self._content:
                    log.warning(
                        "another program wrote to %s during the run: its text was removed; see "
                        "which agent, hook or judge writes there",
                        self._name,
                    )
                file.seek(0)
                file.truncate()
                file.write(self._content + added)
        except OSError as error:
            self._warn(error)
        else:
            self._content += added

    @property
    def size(self) -> int:
        """Bytes from before the run and of the action."""
        return len(self._content)

    def _remove_irregular(self, path: Path) -> None:
        facts = path.lstat() if os.path.lexists(path) else None
        if facts and not _is_regular(facts):
            log.warning("another program replaced %s during the run", self._name)
            path.unlink()

    def _warn(self, error: OSError) -> None:
        log.warning("%s could not be written: %s", self._name, error)


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


def append_summary(file: CommandFile, markdown: str, chart: str = "") -> None:
    """Appends Markdown to the job summary, visibly cut to GitHub's limit, above which GitHub shows
    nothing, and a chart if all of it has space."""
    free = limits.STEP_SUMMARY_BYTES - file.size
    text = markdown if markdown.endswith("\n") else f"{markdown}\n"
    size = len(text.encode("utf-8", "replace"))
    if size + len(chart.encode()) <= free:
        text += chart
    elif size > free:
        kept = limits.cut_bytes(text, free - len(_SUMMARY_CUT))
        text = kept[: kept.rfind("\n") + 1] + _SUMMARY_CUT if free >= len(_SUMMARY_CUT) else ""
    file.append(text)


def _open_regular(path: Path, flags: int) -> int:
    """A descriptor of a regular file, without waiting for a reader of a FIFO; OSError for anything
    else."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if not _is_regular(os.fstat(descriptor)):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file with one name", str(path))
    return descriptor


def _is_regular(facts: os.stat_result) -> bool:
    """Whether a file is one that only this name leads to: another name would be a link, too."""
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1


def _encode(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _encode_property(text: str) -> str:
    return _encode(text).replace(":", "%3A").replace(",", "%2C")
