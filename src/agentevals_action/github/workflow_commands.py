"""What the runner reads from a job: commands in the log, outputs, the job summary."""

import logging
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentevals_action.formatting import counted
from agentevals_action.model import github_limits as limits
from agentevals_action.model.report import Annotation
from agentevals_action.reports.terminal import no_command

log = logging.getLogger(__name__)

_LEVELS = {"failure": "error", "warning": "warning"}
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
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


def safe_log_line(text: str) -> str:
    """Text for the log with its lines, none of which is a command to the runner."""
    return "\n".join(no_command(line) for line in _LINE_ENDS.split(text))


def write_outputs(path: Path | None, outputs: Mapping[str, str]) -> None:
    """Appends outputs to the runner's file, if there is one; no value can end itself early. A file
    that cannot be written is a warning. ValueError for an invalid name."""
    parts = []
    for name, value in outputs.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid name of an output")
        delimiter = f"end_{secrets.token_hex(16)}"
        parts.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    if path is not None:
        with _warn_on_failure("the outputs"):
            _append(path, "".join(parts))


def append_summary(path: Path | None, markdown: str) -> None:
    """Appends Markdown to the job summary, if there is one, visibly cut to GitHub's limit, above
    which GitHub shows nothing. A file that cannot be written is a warning."""
    if path is None:
        return
    with _warn_on_failure("the job summary"):
        free = limits.STEP_SUMMARY_BYTES - (path.stat().st_size if path.exists() else 0)
        text = markdown if markdown.endswith("\n") else f"{markdown}\n"
        if len(text.encode("utf-8", "replace")) > free:
            kept = limits.cut_bytes(text, free - len(_SUMMARY_CUT))
            text = kept[: kept.rfind("\n") + 1] + _SUMMARY_CUT if free >= len(_SUMMARY_CUT) else ""
        _append(path, text)


@contextmanager
def _warn_on_failure(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        log.warning("%s could not be written: %s", what, error)


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", errors="replace", newline="\n") as file:
        file.write(text)


def _encode(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _encode_property(text: str) -> str:
    return _encode(text).replace(":", "%3A").replace(",", "%2C")
