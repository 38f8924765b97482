"""Files that an agent made and a diff cannot show: a judge gets the pictures, and the names of the
files that it cannot see."""

import re
from collections.abc import Sequence
from pathlib import Path

from agentevals_action.model.evaluator import Case
from agentevals_action.model.messages import MAX_PICTURE, Block, image_type
from agentevals_action.system.files.regular_files import read_resolved

_BINARY = re.compile(r"^Binary files .* and \"?b/(.+?)\"? differ$", re.MULTILINE)
_SHOWN = frozenset({"image/png", "image/jpeg"})
#: Pictures that a judge gets for one answer.
_MOST_PICTURES = 8


def find_produced_files(case: Case) -> tuple[Sequence[Block], Sequence[str]]:
    """The pictures (PNG and JPEG) that the agent made or changed, and the paths of the other files
    whose content a judge does not see."""
    pictures: list[Block] = []
    unseen: list[str] = []
    for name in _BINARY.findall(case.file_changes or ""):
        data = _read(case.workspace, name)
        if image_type(data) in _SHOWN and len(pictures) < _MOST_PICTURES:
            pictures.append(Block("image", name, Path(name), data))
        else:
            unseen.append(name)
    return pictures, unseen


def _read(workspace: Path | None, name: str) -> bytes:
    """The content of a file, empty if it cannot be shown: it is too large, or gone."""
    try:
        data = read_resolved(workspace.resolve() / name, MAX_PICTURE + 1) if workspace else b""
    except (OSError, ValueError):
        return b""
    return data if len(data) <= MAX_PICTURE else b""
