"""The models of messages in a suite, with their short forms; files in them are looked up."""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from agentevals_action.model import suite as model
from agentevals_action.model.messages import ROLES, read_tool_call
from agentevals_action.model.validation.file_model import (
    FileModel,
    ListOf,
    NonEmpty,
    errors_at,
    expected,
)
from agentevals_action.suites.files.diagnostics import Findings
from agentevals_action.suites.files.positions import Items, Map, plain
from agentevals_action.system.files.paths import Folder

_MAX_FILE = 40_000_000  # bytes
#: First bytes of the image formats that models accept.
_IMAGE_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM")


class ToolFunction(FileModel):
    """The function of a tool call."""

    name: NonEmpty = Field(description="Name of the function.")
    arguments: str = Field(default="", description="The arguments as a string of JSON.")


class ToolCall(FileModel):
    """A tool call of an assistant, in the specification's form (`function`) or AgentV's
    (`tool`)."""

    id: str | None = Field(default=None, description="Identifier that a tool message refers to.")
    type: Literal["function"] = Field(default="function", description="Always `function`.")
    function: ToolFunction | None = Field(default=None, description="The function that was called.")
    tool: NonEmpty | None = Field(default=None, description="AgentV's form: name of the tool.")
    input: Any = Field(default=None, description="AgentV's form: the arguments.")
    output: Any = Field(default=None, description="AgentV's form: the result of the tool.")
    duration_ms: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="AgentV's form: the duration of the call in milliseconds."
    )

    @model_validator(mode="after")
    def _has_a_name(self) -> "ToolCall":
        self.call()
        return self

    def call(self) -> model.ToolCall:
        """The call with its arguments decoded; ValueError if it names no tool."""
        return read_tool_call(self.model_dump(exclude_none=True))


class Block(FileModel):
    """One part of a message."""

    type: model.BlockType = Field(description="The type of `value`.")
    value: Any = Field(
        description="The text; the path of a file; the path or base64 data of an image; or JSON "
        "data."
    )
    _path: Path | None = None
    _data: bytes = b""

    @model_validator(mode="before")
    @classmethod
    def _is_object(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return value
        raise expected("a block, as `{type: text, value: …}`")

    @model_validator(mode="after")
    def _find_file(self, info: ValidationInfo) -> "Block":
        if self.type == "json":
            return self
        if not isinstance(self.value, str):
            raise errors_at({("value",): expected("a text")})
        if self.type == "text" or (self.type == "image" and _is_inline_image(self.value)):
            return self
        try:
            folder = folder_of(info)
            self._path = folder.file(self.value)
            self._data = folder.read(self._path, f"the file {self.value!r}", _MAX_FILE)
        except ValueError as error:
            advice = (
                "write the path of a file, from the folder of this one"
                if self.type == "file"
                else "write a path, or base64 data of an image"
            )
            raise errors_at({("value",): f"{error}; {advice}"}) from None
        return self

    def block(self) -> model.Block:
        """The block with its file."""
        return model.Block(self.type, plain(self.value), self._path, self._data)


def folder_of(info: ValidationInfo) -> Folder:
    """The folder of the declaring file, from the context of a validation."""
    if isinstance(info.context, Folder):
        return info.context
    raise TypeError("models that name files are validated with the folder of the declaring file")


def _is_inline_image(value: str) -> bool:
    """Whether an image's value is a `data:` URI, or base64 of a known format."""
    if value.startswith("data:"):
        return True
    compact = "".join(value.split())
    try:
        head = base64.b64decode(compact[:64], validate=True)
        base64.b64decode(compact, validate=True)
    except (binascii.Error, ValueError):
        return False
    return head.startswith(_IMAGE_SIGNATURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def _read_blocks(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [{"type": "json", "value": value}]
    if value is None or isinstance(value, str | list):
        return value
    raise expected("a text or a list of blocks")


class Message(FileModel):
    """One message."""

    role: model.Role = Field(description="The author of the message.")
    content: Annotated[str | ListOf[Block] | None, BeforeValidator(_read_blocks)] = Field(
        default=None, description="A text, or a list of blocks."
    )
    name: str | None = Field(default=None, description="Name of the tool, on tool messages.")
    tool_call_id: str | None = Field(
        default=None, description="The tool call that a tool message answers."
    )
    tool_calls: ListOf[ToolCall] = Field(default=(), description="Tools that an assistant called.")

    @model_validator(mode="before")
    @classmethod
    def _is_object(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return value
        raise expected("a message, as `{role: user, content: …}`")

    @model_validator(mode="after")
    def _has_content(self) -> "Message":
        if self.content is None and not self.tool_calls:
            raise ValueError("this message has no `content`; write a text or a list of blocks")
        return self

    def message(self) -> model.Message:
        """The message with its files and decoded arguments."""
        content = self.content or ""
        return model.Message(
            role=self.role,
            content=content
            if isinstance(content, str)
            else tuple(block.block() for block in content),
            name=self.name,
            tool_call_id=self.tool_call_id,
            tool_calls=tuple(call.call() for call in self.tool_calls),
        )


def _read_messages(role: model.Role) -> Callable[[Any], Any]:
    """Converts the short forms: a text, or JSON data, is one message of `role`."""

    def read(value: Any) -> Any:
        if isinstance(value, str) or (
            isinstance(value, Mapping) and value.get("role") not in ROLES
        ):
            return [{"role": role, "content": value}]
        if isinstance(value, Mapping):
            return [value]
        if isinstance(value, list) and value:
            return value
        raise expected("a text, an object, or a list of messages")

    return read


Question = Annotated[ListOf[Message], BeforeValidator(_read_messages("user"))]
Answer = Annotated[ListOf[Message], BeforeValidator(_read_messages("assistant"))]


def with_files(data: Map, files: Sequence[str], findings: Findings) -> None:
    """Puts blocks of `type: file` before the text that is the `input` of a test."""
    text = data.get("input")
    if not files or not isinstance(text, str):
        if files and text is not None:
            problem = "`input_files` needs an `input` that is a text"
            findings.error(
                data.value_location("input"), problem, "write blocks of `type: file` in `input`"
            )
        return
    location = data.value_location("input")
    start = (location.line, location.column)
    blocks = Items(data.source, start)
    for kind, value in (*(("file", path) for path in files), ("text", text)):
        block = Map(data.source, start)
        block.update(type=kind, value=value)
        blocks.put(block, start)
    message = Map(data.source, start)
    message.update(role="user", content=blocks)
    messages = Items(data.source, start)
    messages.put(message, start)
    data.adopt(data, "input", "input", messages)


def named_files(messages: tuple[model.Message, ...], folder: Folder) -> Iterator[model.NamedFile]:
    """The files that messages name."""
    for message in messages:
        for block in message.content if isinstance(message.content, tuple) else ():
            if block.path is not None:
                role = "image" if block.type == "image" else "file"
                yield model.NamedFile(folder.relative(block.path), role)
