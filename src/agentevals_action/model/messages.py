"""Messages as a suite has them, their wire forms (of the specification and of AgentV), and their
pictures."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.system.files.paths import Folder
from agentevals_action.validation.field_errors import describe
from agentevals_action.validation.file_model import (
    Computed,
    ComputedStored,
    FileModel,
    ListOf,
    NonEmpty,
    check_fields,
    errors_at,
    expected,
    get_folder,
    spelled,
)

Role = Literal["system", "user", "assistant", "tool"]
BlockType = Literal["text", "file", "image", "json"]
ROLES: tuple[str, ...] = get_args(Role)
BLOCK_TYPES: tuple[str, ...] = get_args(BlockType)

_MAX_FILE = 40_000_000  # bytes
#: The image formats that models accept, by their first bytes.
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
#: A dataclass that is read from a file: objects are read, and nothing else is converted.
_RECORD = ConfigDict(extra="ignore", strict=False, arbitrary_types_allowed=True, defer_build=True)


def _is_of_file(info: ValidationInfo) -> bool:
    return isinstance(info.context, Folder)


@dataclass(frozen=True)
class Block:
    """One part of a message. `path` is the absolute file of a `file` or an `image` (None for an
    inline base64 image), and `data` its content when the suite was loaded."""

    __pydantic_config__ = _RECORD
    noun = "block"

    type: Annotated[BlockType, Field(description="The type of `value`.")]
    value: Annotated[
        Any,
        spelled(
            "value",
            "text",
            description="The text; the path of a file; the path or base64 data of an image; or "
            "JSON data.",
        ),
    ]
    path: Computed[Path | None] = None
    data: Computed[bytes] = field(default=b"", repr=False)

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            raise expected("a block, as `{type: text, value: …}`")
        return check_fields(cls, value, info)

    @model_validator(mode="after")
    def _find_file(self, info: ValidationInfo) -> "Block":
        if self.type == "json":
            return self
        if not isinstance(self.value, str):
            raise errors_at({("value",): expected("a text")})
        is_inline = self.type == "text" or (self.type == "image" and _is_inline_image(self.value))
        if is_inline or not _is_of_file(info):
            return self
        try:
            folder = get_folder(info)
            path = folder.file(self.value)
            return replace(
                self, path=path, data=folder.read(path, f"the file {self.value!r}", _MAX_FILE)
            )
        except ValueError as error:
            advice = (
                "write the path of a file, from the folder of this one"
                if self.type == "file"
                else "write a path, or base64 data of an image"
            )
            raise errors_at({("value",): f"{error}; {advice}"}) from None


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
    return image_type(head) is not None


def image_type(head: bytes) -> str | None:
    """The media type of an image by its first 12 bytes; None if models do not accept it."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    types = (media_type for start, media_type in _IMAGES.items() if head.startswith(start))
    return next(types, None)


@dataclass(frozen=True)
class ToolCall:
    """A tool that an assistant called; `arguments` decoded, `duration_ms` None when unknown.
    `refused`: the call was not made, because the agent may not make it, waits for the approval of a
    person, or has no such tool."""

    name: str
    arguments: Any = None
    output: Any = None
    id: str | None = None
    duration_ms: float | None = None
    refused: bool = False


class ToolFunction(FileModel):
    """The function of a tool call."""

    noun = "`function`"

    name: NonEmpty = Field(description="Name of the function.")
    arguments: Any = Field(
        default="",
        json_schema_extra={"type": "string"},
        description="The arguments as a string of JSON.",
    )

    @field_validator("arguments")
    @classmethod
    def _is_text(cls, value: Any, info: ValidationInfo) -> Any:
        if _is_of_file(info) and not isinstance(value, str):  # some servers send an object
            raise expected("a text")
        return value


class ToolCallEntry(FileModel):
    """A tool call in a file or a reply: in the form of the specification (`function`) or of AgentV
    (`tool`)."""

    noun = "tool call"

    id: str | None = Field(default=None, description="Identifier that a tool message refers to.")
    type: Any = Field(
        default="function",
        json_schema_extra={"const": "function"},
        description="Always `function`.",
    )
    function: ToolFunction | None = Field(default=None, description="The function that was called.")
    tool: NonEmpty | None = Field(default=None, description="AgentV's form: name of the tool.")
    input: Any = Field(default=None, description="AgentV's form: the arguments.")
    output: Any = Field(default=None, description="AgentV's form: the result of the tool.")
    duration_ms: Annotated[float, Field(ge=0)] | None = spelled(
        "duration_ms",
        "durationMs",
        default=None,
        description="AgentV's form: the duration of the call in milliseconds.",
    )
    refused: ComputedStored[bool | None] = None

    @field_validator("type")
    @classmethod
    def _is_function(cls, value: Any, info: ValidationInfo) -> Any:
        if _is_of_file(info) and value != "function":  # some servers send another word
            raise expected("`function`")
        return value

    @model_validator(mode="after")
    def _has_a_name(self) -> Self:
        self.call()
        return self

    def call(self) -> ToolCall:
        """The call with its arguments decoded; ValueError if it names no tool."""
        if self.function is not None:
            name, arguments = self.function.name, decode_arguments(self.function.arguments)
        elif self.tool is not None:
            name, arguments = self.tool, self.input
        else:
            raise ValueError("a tool call has function.name or tool")
        return ToolCall(
            name, arguments, self.output, self.id, self.duration_ms, refused=self.refused is True
        )


def decode_arguments(arguments: Any) -> Any:
    """The arguments in a string of JSON; ValueError for other text."""
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        raise ValueError("a tool call's function.arguments is a string of JSON") from None


def _read_call(value: Any, info: ValidationInfo) -> Any:
    """A call of a file or a reply; a call of a stored trace, which has no context, as it is."""
    if info.context is None:
        return value
    return ToolCallEntry.model_validate(value, context=info.context, extra="ignore").call()


def _read_blocks(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [{"type": "json", "value": value}]
    if isinstance(value, str | list):
        return value
    raise expected("a text or a list of blocks")


@dataclass(frozen=True)
class Message:
    """One message; a string content in the file is kept as a string, blocks as a tuple."""

    __pydantic_config__ = _RECORD
    noun = "message"

    role: Annotated[Role, Field(description="The author of the message.")]
    content: Annotated[
        str | tuple[Block, ...],
        BeforeValidator(
            _read_blocks, json_schema_input_type=str | list[Block] | dict[str, Any] | None
        ),
        Field(description="A text, or a list of blocks."),
    ]
    name: Annotated[str | None, Field(description="Name of the tool, on tool messages.")] = None
    tool_call_id: Annotated[
        str | None, Field(description="The tool call that a tool message answers.")
    ] = None
    tool_calls: Annotated[
        tuple[
            Annotated[ToolCall, BeforeValidator(_read_call, json_schema_input_type=ToolCallEntry)],
            ...,
        ],
        spelled("tool_calls", "toolCalls", description="Tools that an assistant called."),
    ] = ()

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            raise expected("a message, as `{role: user, content: …}`")
        read = {
            name: part for name, part in check_fields(cls, value, info).items() if part is not None
        }
        if _is_of_file(info) and not read.keys() & {"content", "tool_calls"}:
            raise ValueError("this message has no `content`; write a text or a list of blocks")
        return {"content": "", **read}

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks; a string is one block of text."""
        return (Block("text", self.content),) if isinstance(self.content, str) else self.content


def _read_messages(role: Role) -> Callable[[Any], Any]:
    """Converts the short forms: a text, or JSON data, is one message of `role`."""

    def read(value: Any) -> Any:
        if isinstance(value, str) or (isinstance(value, Mapping) and not is_message(value)):
            return [{"role": role, "content": value}]
        if isinstance(value, Mapping):
            return [value]
        if isinstance(value, tuple) or (isinstance(value, list) and value):
            return value
        raise expected("a text, an object, or a list of messages")

    return read


def is_message(data: Mapping[str, Any]) -> bool:
    """Whether an object is a message, and not JSON data."""
    return data.get("role") in ROLES


_MESSAGES = str | dict[str, Any] | Annotated[list[Message], Field(min_length=1)]
Question = Annotated[
    ListOf[Message],
    BeforeValidator(_read_messages("user"), json_schema_input_type=_MESSAGES),
]
Answer = Annotated[
    ListOf[Message],
    BeforeValidator(_read_messages("assistant"), json_schema_input_type=_MESSAGES),
]
#: Files that precede a text, by their paths.
FileBlocks = ListOf[
    Annotated[
        Block,
        BeforeValidator(
            lambda path: {"type": "file", "value": path}, json_schema_input_type=NonEmpty
        ),
    ]
]


def named_files(messages: Iterable[Message], root: Path) -> tuple[NamedFile, ...]:
    """The files that messages name, relative to the repository at `root`."""
    return tuple(
        NamedFile(
            block.path.relative_to(root).as_posix(), "image" if block.type == "image" else "file"
        )
        for message in messages
        for block in (message.content if isinstance(message.content, tuple) else ())
        if block.path is not None
    )


_MESSAGE = TypeAdapter(Message)
#: The context in which a message of a reply or a result is validated.
_REPLY: Final = "reply"


def read_message(data: Any) -> Message:
    """One message of a reply or a result; files in it are not read. ValueError for an invalid
    message."""
    try:
        return _MESSAGE.validate_python(data, context=_REPLY)
    except ValidationError as error:
        raise ValueError(describe(error, data)) from None


def read_tool_call(data: Any) -> ToolCall:
    """One tool call of a reply: `{id, type, function: {name, arguments}}` or `{tool, input,
    output, duration_ms}`; ValueError if neither."""
    try:
        return ToolCallEntry.model_validate(data, extra="ignore").call()
    except ValidationError as error:
        raise ValueError(describe(error, data)) from None


def wire_message(message: Message) -> dict[str, Any]:
    """One message as judges and results get it; a tool call carries both wire forms."""
    content = message.content
    data: dict[str, Any] = {"role": message.role}
    data["content"] = (
        content
        if isinstance(content, str)
        else [{"type": block.type, "value": block.value} for block in content]
    )
    if message.name is not None:
        data["name"] = message.name
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        data["tool_calls"] = [
            {**chat_tool_call(call), **wire_tool_call(call)} for call in message.tool_calls
        ]
    return data


def encode_arguments(call: ToolCall) -> str:
    """A tool call's arguments as a string of JSON."""
    return json.dumps(call.arguments if call.arguments is not None else {}, ensure_ascii=False)


def chat_tool_call(call: ToolCall) -> dict[str, Any]:
    """A tool call as OpenAI's chat API has it."""
    data = {"id": call.id} if call.id is not None else {}
    function = {"name": call.name, "arguments": encode_arguments(call)}
    return {**data, "type": "function", "function": function}


def wire_tool_call(call: ToolCall) -> dict[str, Any]:
    """A tool call as AgentV has it, without what is unknown."""
    data = {
        "tool": call.name,
        "input": call.arguments,
        "output": call.output,
        "duration_ms": call.duration_ms,
        "refused": call.refused or None,
    }
    return {key: value for key, value in data.items() if value is not None}


def wire_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as judges and results get them."""
    return [wire_message(message) for message in messages]


#: Maximum size of a picture in bytes; vendors refuse larger pictures.
MAX_PICTURE = 20 * 1024 * 1024


@dataclass(frozen=True)
class Picture:
    """A picture: `media_type` as `image/png`, `data` in base64 on one line."""

    media_type: str
    data: str

    @property
    def uri(self) -> str:
        """The picture as a `data:` URI."""
        return f"data:{self.media_type};base64,{self.data}"


def picture(block: Block) -> Picture:
    """An image block's picture; ValueError if it is no picture, or over 20 MB. Vendors refuse a
    type that the bytes do not have, so the bytes decide, not the `data:` URI."""
    name, data = f"the picture {block.value}", block.data
    if block.path is None:
        name = "an image block's picture"
        encoded = "".join(str(block.value).split()).rpartition(",")[2]  # base64 is often wrapped
        try:
            data = base64.b64decode(encoded, validate=True)
        except ValueError as error:
            raise ValueError(f"{name} is neither a file nor base64 ({error})") from None
    if len(data) > MAX_PICTURE:
        raise ValueError(f"{name} is over 20 MB")
    if (media_type := image_type(data)) is None:
        raise ValueError(f"{name} is not a PNG, JPEG, GIF or WebP")
    return Picture(media_type, base64.b64encode(data).decode())
