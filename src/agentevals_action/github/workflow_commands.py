"""What the runner reads from a job: commands in the log, outputs, the job summary; and text kept
from being taken for a command."""

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agentevals_action.github import limits
from agentevals_action.github.base import Annotation
from agentevals_action.reports.terminal import no_command

_LEVELS = {"failure": "error", "warning": "warning"}
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_SUMMARY_CUT = (
    "\n\n**The summary is longer than the 1 MiB that GitHub takes: the rest is cut off.**\n"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def command(name: str, message: str = "", **properties: str | int) -> str:
    """One command as a line of the log, its parts encoded."""
    given = ",".join(
        f"{key}={_property(str(value))}" for key, value in properties.items() if value != ""
    )
    return f"::{name}{' ' if given else ''}{given}::{_data(message)}"


def annotations(found: Iterable[Annotation]) -> Iterator[str]:
    """Lines that show annotations where no check could be written: ten errors and ten warnings, all
    that GitHub keeps of a step, and a line that counts the others."""
    counts = dict.fromkeys(_LEVELS.values(), 0)
    for annotation in found:
        name = _LEVELS[annotation.level]
        counts[name] += 1
        if counts[name] <= limits.COMMANDS_A_STEP:
            yield command(
                name,
                annotation.message,
                file=annotation.path,
                line=max(1, annotation.line),
                title=annotation.title,
            )
    left = {
        name: count - limits.COMMANDS_A_STEP
        for name, count in counts.items()
        if count > limits.COMMANDS_A_STEP
    }
    if left:
        told = (f"{count} {name}{'' if count == 1 else 's'}" for name, count in left.items())
        yield f"Not shown as annotations: {' and '.join(told)} more."


def notice(message: str) -> str:
    """A line that shows a sentence above the log."""
    return command("notice", message)


def warning(message: str) -> str:
    """A line that shows a sentence above the log, as a warning."""
    return command("warning", message)


def error(message: str) -> str:
    """A line that shows a sentence above the log, as an error."""
    return command("error", message)


def group(title: str) -> str:
    """A line that begins a folded group; groups do not nest."""
    return command("group", title)


def endgroup() -> str:
    """A line that ends the group."""
    return command("endgroup")


def add_mask(value: str) -> str:
    """A line that makes the runner hide a value, and each of its lines, in the log."""
    return command("add-mask", value)


def safe_log_line(text: str) -> str:
    """Text for the log, its lines kept, none of which the runner takes for a command."""
    return "\n".join(no_command(line) for line in _LINE_ENDS.split(text))


def write_outputs(path: Path, outputs: Mapping[str, str]) -> None:
    """Adds outputs to the runner's file; no value can end itself early. ValueError for a name that
    is none; OSError."""
    parts = []
    for name, value in outputs.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of an output")
        delimiter = f"end_{secrets.token_hex(16)}"
        parts.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    with path.open("a", encoding="utf-8", errors="replace", newline="\n") as file:
        file.write("".join(parts))


def append_summary(path: Path, markdown: str) -> None:
    """Adds Markdown to the job summary. GitHub shows nothing of a file over 1 MiB, so what does not
    fit is cut, visibly. OSError."""
    present = path.stat().st_size if path.exists() else 0
    room = limits.STEP_SUMMARY_BYTES - present
    text = markdown if markdown.endswith("\n") else f"{markdown}\n"
    if len(text.encode("utf-8", "replace")) > room:
        kept = limits.cut_bytes(text, room - len(_SUMMARY_CUT))
        text = kept[: kept.rfind("\n") + 1] + _SUMMARY_CUT if room >= len(_SUMMARY_CUT) else ""
    with path.open("a", encoding="utf-8", errors="replace", newline="\n") as file:
        file.write(text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
