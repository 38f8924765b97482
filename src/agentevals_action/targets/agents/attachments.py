"""The files of a prompt as an agent behind a command gets them: paths."""

import base64
from collections.abc import Sequence
from pathlib import Path

from agentevals_action.model.suite import Message
from agentevals_action.targets.apis.images import picture


def attached(messages: Sequence[Message], scratch: Path) -> tuple[str, ...]:
    """The absolute paths of the files and pictures in messages, in their order, each once. A
    picture that is written out in the suite is put into `scratch`; ValueError when it is none,
    OSError when it cannot be written."""
    blocks = [
        block
        for message in messages
        if not isinstance(message.content, str)
        for block in message.content
    ]
    paths: dict[str, None] = {}
    for number, block in enumerate(block for block in blocks if block.type in ("file", "image")):
        if block.path is None and block.type == "image":
            shown = picture(block)
            path = scratch / f"image-{number + 1}.{shown.media_type.rpartition('/')[2]}"
            path.write_bytes(base64.b64decode(shown.data))
            paths[str(path)] = None
        elif block.path is not None:
            paths[str(block.path)] = None
    return tuple(paths)
