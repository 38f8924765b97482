"""Messages as plain text, with the contents of the files in them."""

import json
from collections.abc import Sequence

from agentevals_action.model.messages import Block, Message


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

    ValueError if a file is no UTF-8 text."""
    return "\n".join(map(_block_text, message.blocks))


def _block_text(block: Block) -> str:
    if block.type == "json":
        return json.dumps(block.value, ensure_ascii=False)
    if block.type == "file" and block.path is not None:
        try:
            text = block.data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"the file {block.value} is no UTF-8 text ({error.reason} at byte {error.start})"
            ) from None
        return f'<file path="{block.value}">\n{text}\n</file>'
    return str(block.value)
