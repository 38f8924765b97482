"""What is asked and what is expected: texts, objects and messages of a suite into messages, with
the files in them looked up."""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from agentevals_action.model import messages
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Block, Message, NamedFile, Role
from agentevals_action.suites import dialects
from agentevals_action.suites.files.diagnostics import Findings, kind
from agentevals_action.suites.files.positions import Items, Map, plain
from agentevals_action.suites.schema_models import BlockEntry, MessageEntry
from agentevals_action.system.paths import Folder

#: First bytes of the pictures that models take.
_IMAGE_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM")


def read_content(
    data: Map, key: str, role: Role, folder: Folder, findings: Findings
) -> tuple[Message, ...]:
    """The messages under a field: a string or an object that is no message is one message of
    `role`, a list is messages.

    Files that the messages name are looked up from `folder`; what is wrong goes to `findings` and
    its message is left out."""
    value = data[key]
    place = data.value_location(key)
    name = data.written(key)
    if isinstance(value, str):
        return (Message(role, value),)
    if isinstance(value, Map):
        if value.get("role") not in messages.ROLES:
            return (Message(role, (Block("json", plain(value)),)),)
        return _read_all([(value, value.location)], name, folder, findings)
    if isinstance(value, list) and value:
        places = [
            value.item_location(index) if isinstance(value, Items) else place
            for index in range(len(value))
        ]
        return _read_all(list(zip(value, places, strict=True)), name, folder, findings)
    findings.error(
        place, f"`{name}` is {kind(value)}", "write a text, an object, or a list of messages"
    )
    return ()


def _read_all(
    values: list[tuple[Any, Location]], name: str, folder: Folder, findings: Findings
) -> tuple[Message, ...]:
    read = (_read_message(value, place, name, folder, findings) for value, place in values)
    return tuple(message for message in read if message is not None)


def _read_message(
    value: Any, place: Location, name: str, folder: Folder, findings: Findings
) -> Message | None:
    if not isinstance(value, Map):
        findings.error(
            place,
            f"an item of `{name}` is {kind(value)}",
            "write a message, as `{role: user, content: …}`",
        )
        return None
    data = dialects.fold(value, dialects.MESSAGE, findings)
    blocks = data.get("content")
    whole = findings.read(MessageEntry, data, "message") is not None
    if isinstance(blocks, list):
        for index, block in enumerate(blocks):
            at = blocks.item_location(index) if isinstance(blocks, Items) else place
            whole &= _valid_block(block, at, findings)
    elif not isinstance(blocks, str | Map) and not (blocks is None and data.get("tool_calls")):
        problem = f"`content` is {kind(blocks)}" if "content" in data else "`content` is missing"
        findings.error(data.value_location("content"), problem, "write a text or a list of blocks")
        return None
    if not whole:
        return None
    try:
        message = messages.read_message(plain(data))
    except ValueError as error:
        findings.error(place, f"this message cannot be read: {error}", "mend it")
        return None
    return _with_files(message, data, folder, findings)


def _valid_block(block: Any, place: Location, findings: Findings) -> bool:
    if not isinstance(block, Map):
        findings.error(
            place, f"a block of `content` is {kind(block)}", "write it as `{type: text, value: …}`"
        )
        return False
    if findings.read(BlockEntry, dialects.fold(block, dialects.BLOCK, findings), "block") is None:
        return False
    value = block.get("value", block.get("text"))
    if block["type"] != "json" and not isinstance(value, str):
        findings.error(block.value_location("value"), f"`value` is {kind(value)}", "write a text")
        return False
    return True


def _with_files(message: Message, data: Map, folder: Folder, findings: Findings) -> Message:
    if isinstance(message.content, str):
        return message
    sources = data["content"] if isinstance(data["content"], list) else [data]
    return replace(
        message,
        content=tuple(
            _with_path(block, source, folder, findings)
            for block, source in zip(message.content, sources, strict=True)
        ),
    )


def _with_path(block: Block, source: Map, folder: Folder, findings: Findings) -> Block:
    if block.type not in ("file", "image") or (
        block.type == "image" and is_inline_image(block.value)
    ):
        return block
    try:
        return replace(block, path=folder.file(block.value))
    except ValueError as error:
        advice = (
            "write the path of a file, from the folder of this one"
            if block.type == "file"
            else "write a path, or base64 data of an image"
        )
        findings.error(source.value_location("value"), str(error), advice)
        return block


def is_inline_image(value: str) -> bool:
    """Whether an image's value is the picture itself: a `data:` URI, or base64 of a known
    format."""
    if value.startswith("data:"):
        return True
    compact = "".join(value.split())
    try:
        head = base64.b64decode(compact[:64], validate=True)
        base64.b64decode(compact, validate=True)
    except (binascii.Error, ValueError):
        return False
    return head.startswith(_IMAGE_SIGNATURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def named_files(content: tuple[Message, ...], folder: Folder) -> Iterator[NamedFile]:
    """The files that messages name."""
    for message in content:
        for block in message.content if isinstance(message.content, tuple) else ():
            if block.path is not None:
                yield NamedFile(
                    folder.relative(block.path), "image" if block.type == "image" else "file"
                )
