"""Messages as plain text, with the contents of the files in them."""

import json
from collections.abc import Sequence
from io import BytesIO, TextIOWrapper

from agentevals_action.model.suite import Block, Message
from agentevals_action.system.files.regular_files import read_resolved

#: Characters of a file in a message.
#:
#: Attack: an agent replaces a file of a later test by an empty one of a terabyte.
MAX_CHARACTERS = 10_000_000
_MAX_BYTES = 4 * (MAX_CHARACTERS + 1)  # in UTF-8


def prompt_text(messages: Sequence[Message]) -> str:
    """The prompt as text: one user message is its text, several are
    headed blocks."""
    if len(messages) == 1 and messages[0].role == "user":
        return content_text(messages[0])
    return "\n\n".join(
        f"@[{message.role.capitalize()}]:\n{content_text(message)}" for message in messages
    )


def reference_text(expected: Sequence[Message]) -> str:
    """The text of the expected answer: the last assistant message, else the last one; empty if
    nothing is expected."""
    messages = [message for message in expected if message.role == "assistant"] or list(expected)
    return content_text(messages[-1]) if messages else ""


def content_text(message: Message) -> str:
    """A message's blocks joined by newlines: text as it is, JSON as JSON, a file with its content,
    an image as its path.

    ValueError if a file is no UTF-8 text; OSError if it cannot be read."""
    return "\n".join(map(_block_text, message.blocks))


def _block_text(block: Block) -> str:
    if block.type == "json":
        return json.dumps(block.value, ensure_ascii=False)
    if block.type == "file" and block.path is not None:
        try:
            data = read_resolved(block.path, _MAX_BYTES)
            with TextIOWrapper(BytesIO(data), encoding="utf-8") as file:
                text = file.read(MAX_CHARACTERS + 1)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"the file {block.value} is no UTF-8 text ({error.reason} at byte {error.start})"
            ) from None
        if len(text) > MAX_CHARACTERS:
            limit = MAX_CHARACTERS // 1_000_000
            raise ValueError(f"the file {block.value} is longer than {limit} million characters")
        return f'<file path="{block.value}">\n{text}\n</file>'
    return str(block.value)
