"""The nouns of a suite: messages, evaluators, tests and the suite itself. They are read from a file
in every dialect, and the whole program uses them."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.files import NamedFile
from agentevals_action.model.target import Target, TargetTable
from agentevals_action.model.validation.file_model import (
    Computed,
    FileModel,
    ListOf,
    NonEmpty,
    Weight,
    check_fields,
    errors_at,
    expected,
    folder_of,
    spelled,
)
from agentevals_action.model.workspace import Workspace

Role = Literal["system", "user", "assistant", "tool"]
BlockType = Literal["text", "file", "image", "json"]
Origin = Literal["test", "rubrics", "suite", "default"]

#: The longest name that tables and titles of checks show completely.
MAX_NAME = 64
#: The score that an evaluator with `required: true` must reach.
REQUIRED_SCORE = 0.8

_NAME_PATTERN = r"^[a-z][a-z0-9]*(-+[a-z0-9]+)*$"
_MAX_FILE = 40_000_000  # bytes
#: First bytes of the image formats that models accept.
_IMAGE_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM")
#: A dataclass that is read from a file: objects are read, and nothing else is converted.
_RECORD = ConfigDict(extra="ignore", strict=False, arbitrary_types_allowed=True)

Seconds = Annotated[float, Field(ge=1, le=3600)]


def _given(default: Any) -> Callable[[Any, ValidationInfo], Any]:
    """A validator for a field that the loader reads by itself, and sets in a copy."""
    return lambda value, info: value if info.context is None else default


def _empty_if_none(value: Any) -> Any:
    return {} if value is None else value


#: Data of the user's own.
Data = Annotated[dict[str, Any], BeforeValidator(_empty_if_none)]


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
        if self.type == "json" or info.context is None:
            return self
        if not isinstance(self.value, str):
            raise errors_at({("value",): expected("a text")})
        if self.type == "text" or (self.type == "image" and _is_inline_image(self.value)):
            return self
        try:
            folder = folder_of(info)
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
    return head.startswith(_IMAGE_SIGNATURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


@dataclass(frozen=True)
class ToolCall:
    """A tool that an assistant called; `arguments` decoded, `duration_ms` None when unknown.
    `refused`: the agent was not permitted to make the call, so that it was not made."""

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
    arguments: str = Field(default="", description="The arguments as a string of JSON.")


class ToolCallEntry(FileModel):
    """A tool call in a file, in the specification's form (`function`) or AgentV's (`tool`)."""

    noun = "tool call"

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
        return ToolCall(name, arguments, self.output, self.id, self.duration_ms)


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


_CALLS: TypeAdapter[tuple[ToolCallEntry, ...]] = TypeAdapter(
    ListOf[ToolCallEntry], config=ConfigDict(defer_build=True)
)


def _read_calls(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """The calls of a file; those of a stored trace as they are."""
    if info.context is None:
        return handler(value)
    return tuple(entry.call() for entry in _CALLS.validate_python(value, context=info.context))


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
        tuple[ToolCall, ...],
        WrapValidator(_read_calls, json_schema_input_type=list[ToolCallEntry]),
        Field(description="Tools that an assistant called."),
    ] = ()

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            raise expected("a message, as `{role: user, content: …}`")
        read = check_fields(cls, value, info)
        if read.get("content") is not None:
            return read
        if not read.get("tool_calls"):
            raise ValueError("this message has no `content`; write a text or a list of blocks")
        return {**read, "content": ""}

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks; a string is one of text."""
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
    return data.get("role") in get_args(Role)


_MESSAGES = str | dict[str, Any] | Annotated[list[Message], Field(min_length=1)]
Question = Annotated[
    ListOf[Message],
    BeforeValidator(_read_messages("user"), json_schema_input_type=_MESSAGES),
]
Answer = Annotated[
    ListOf[Message],
    BeforeValidator(_read_messages("assistant"), json_schema_input_type=_MESSAGES),
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


@dataclass(frozen=True)
class Gate:
    """Something `required`: `name` is the path of names from the test's evaluator down, joined by
    `/`; `location` is where an annotation goes (the gate's own entry, or the test when the gate is
    the suite's)."""

    name: str
    location: Location


@dataclass(frozen=True)
class Mismatch:
    """A reason why an evaluator's options do not fit a test."""

    location: Location | None
    problem: str
    advice: str


class EvaluatorTraits(FileModel):
    """The properties of an evaluator that the options of its type declare.

    `deterministic` types give the same score for the same answer. With `asks_judge`, the common
    field `target` names a judge. `children_field` is the field that holds other evaluators."""

    noun = "evaluator"

    deterministic: ClassVar[bool] = True
    asks_judge: ClassVar[bool] = False
    children_field: ClassVar[str] = ""

    def needs_judge(self) -> bool:
        """Whether these options need a judge target."""
        return self.asks_judge

    def judge_temperature(self) -> float | None:
        """The temperature that the judge is asked with; None for the target's own."""
        return None

    def missing_script(self) -> Path | None:
        """The program or script that these options run as a file and that does not exist."""
        return None

    def check(self, test: "Test") -> Sequence[Mismatch]:  # noqa: ARG002  # of the interface
        """Reasons why these options, not those of inner evaluators, do not fit a test."""
        return ()

    def children(self) -> Sequence["Evaluator"]:
        """The evaluators directly inside this one, in suite order."""
        return ()

    def inner_gates(self) -> Sequence[tuple[str, Location | None]]:
        """Gates inside this evaluator: the name below it, and the location where it is known.

        An empty name is the evaluator itself, if it can fail the test without `required`."""
        return ()


def _read_required(value: Any) -> Any:
    if value is None:
        raise ValueError("it is empty; write `true`, a number over 0 and up to 1, or leave it out")
    return value


class Evaluator(FileModel):
    """One evaluator: the fields that all types have in common, and the type's own in `options`.

    `location` is that of its entry, `target_location` that of its judge's name. `gates` are its own
    gate (when it is one) and those inside it. `files` are what its options name."""

    noun = "evaluator"

    name: NonEmpty = Field(
        default="",
        description="Shown in results and gates; made from type and value when missing.",
    )
    weight: Weight = Field(default=1.0, description="Weight in the test's score, 0 to 1,000,000.")
    required: Annotated[
        bool | Annotated[float, Field(gt=0, le=1)] | None,
        BeforeValidator(
            _read_required, json_schema_input_type=bool | Annotated[float, Field(gt=0, le=1)]
        ),
    ] = Field(
        default=None,
        description="Makes it a gate that fails the test: true (0.8 must be reached) or the score "
        "that must be reached.",
    )
    min_score: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None, description="AgentV: the threshold of the gate, over 0 and up to 1."
    )
    negate: bool = Field(default=False, description="Turns the score into 1 - score.")
    config: Data = Field(default={}, description="Passed on to the evaluator as it is.")
    target: NonEmpty | None = Field(default=None, description="Name of the target that judges.")

    type: Computed[str] = ""
    options: Computed[EvaluatorTraits] = EvaluatorTraits()
    origin: Computed[Origin] = "test"
    location: Computed[Location] = Location("")
    target_location: Computed[Location | None] = None
    gates: Computed[tuple[Gate, ...]] = ()
    files: Computed[tuple[NamedFile, ...]] = ()

    @property
    def threshold(self) -> float | None:
        """The score (0-1) that it must reach as a gate, None when it is none."""
        if self.required is None or self.required is False:
            return None
        if self.required is True:
            return self.min_score if self.min_score is not None else REQUIRED_SCORE
        return self.required


_EVALUATORS = Annotated[
    tuple[Evaluator, ...], PlainValidator(_given(()), json_schema_input_type=list[Any])
]


class SuiteExecution(FileModel):
    """Defaults for every test of the suite."""

    noun = "`execution`"

    evaluators: _EVALUATORS = spelled(
        "evaluators",
        "assert",
        "assertions",
        default=(),
        exclude=True,
        description="The same as `assert`.",
    )
    target: NonEmpty | None = Field(
        default=None,
        description="Name of the target (see .agentv/targets.yaml) that answers the tests.",
    )
    timeout_seconds: Seconds | None = Field(
        default=None, description="Time limit of each test in seconds, 1-3600."
    )


class TestExecution(SuiteExecution):
    """Overrides for one test."""

    __test__ = False  # pytest: not a test case

    skip_defaults: bool = Field(
        default=False, description="Leaves out the suite's evaluators and its input for this test."
    )


_WORKSPACE = Annotated[
    Workspace | None, PlainValidator(_given(None), json_schema_input_type=NonEmpty | Workspace)
]


class Test(FileModel):
    """One test, effective: the suite's messages and evaluators are already in it, in the order of
    the README's section "Suites"."""

    __test__ = False  # pytest: not a test case
    noun = "test"

    id: NonEmpty = Field(description="Identifier of the test, unique in the suite.")
    input: Question = spelled(
        "input",
        "input_messages",
        description="The question to the agent: a text, an object, or messages.",
    )
    criteria: str | None = spelled(
        "criteria",
        "expected_outcome",
        default=None,
        description="What makes an answer good, in words; for judges and readers.",
    )
    expected_output: Answer = spelled(
        "expected_output",
        "expected_messages",
        default=(),
        description="A reference answer: a text, an object, or messages.",
    )
    rubrics: Any = Field(
        default=None,
        description="Criteria that a judge checks one by one: texts, or objects with id, outcome, "
        "weight, required.",
    )
    evaluators: _EVALUATORS = spelled(
        "evaluators",
        "assert",
        "assertions",
        default=(),
        description="The evaluators of the answer; plain strings make one rubric.",
    )
    workspace: _WORKSPACE = Field(
        default=None,
        description="The folder that the agent works in: its fields replace the suite's, one by "
        "one.",
    )
    execution: TestExecution = Field(
        default=TestExecution(), description="Overrides for this test."
    )
    input_files: ListOf[NonEmpty] = Field(
        default=(), description="Files that precede the `input`, which must be a text."
    )
    vars: dict[str, Any] | None = Field(
        default=None,
        description="Variables for `{{ name }}` in `input`, `criteria` and `expected_output`.",
    )
    description: str | None = Field(default=None, description="For readers.")
    conversation_id: str | None = Field(
        default=None, description="Groups tests of one conversation."
    )
    note: str | None = Field(default=None, description="Context for evaluators.")
    metadata: Data = Field(default={}, description="Anything; passed on to evaluators.")

    location: Computed[Location] = Location("")
    files: Computed[tuple[NamedFile, ...]] = ()

    @property
    def target(self) -> str | None:
        """Name of the target that answers, if the test names one."""
        return self.execution.target

    @property
    def timeout_seconds(self) -> float | None:
        """The test's own time limit."""
        return self.execution.timeout_seconds

    @property
    def gates(self) -> tuple[Gate, ...]:
        """Every gate declared for this test, in suite order."""
        return tuple(gate for evaluator in self.evaluators for gate in evaluator.gates)


class Suite(FileModel):
    """A suite of tests; one that is loaded has no errors.

    `path` is relative to the repository root `root`; `folder` is the absolute folder of its file.
    `files` are the files that the suite and its tests name, itself and its targets file included,
    each once. `used_targets` are the names of the targets that answer and judge its tests."""

    noun = "suite"

    name: Annotated[str, Field(min_length=2, max_length=MAX_NAME)] = Field(
        default="",
        json_schema_extra={"pattern": _NAME_PATTERN},
        description="Name of the suite: lower case letters, digits and single hyphens, 2-64 "
        "characters.",
    )
    version: str | float | None = Field(default=None, description='Version of the format, "1.0".')
    description: Annotated[str, Field(max_length=2048)] | None = Field(
        default=None, description="For readers, up to 2048 characters."
    )
    metadata: Data = Field(
        default={}, description="Anything; author, license, tags and skill are known names."
    )
    target: NonEmpty | None = Field(
        default=None, description="AgentV: the same as `execution.target`."
    )
    execution: SuiteExecution = Field(
        default=SuiteExecution(), description="Defaults for every test."
    )
    input: Question = spelled(
        "input",
        "input_messages",
        default=(),
        description="Messages that precede the messages of every test.",
    )
    input_files: ListOf[NonEmpty] = Field(
        default=(), description="Files that precede the `input` of every test."
    )
    evaluators: _EVALUATORS = spelled(
        "evaluators",
        "assert",
        "assertions",
        default=(),
        description="The evaluators of every test.",
    )
    workspace: _WORKSPACE = Field(
        default=None,
        description="The folder that the agent works in, or the path of a YAML file that describes "
        "it.",
    )
    tests: Annotated[
        tuple[Test, ...],
        PlainValidator(
            _given(()),
            json_schema_input_type=NonEmpty | Annotated[list[NonEmpty | Test], Field(min_length=1)],
        ),
    ] = spelled(
        "tests",
        "evalcases",
        "eval_cases",
        default=(),
        description="The tests: a list of tests and paths, or one path: of a YAML or JSONL file, "
        "or a glob of such files.",
    )

    path: Computed[str] = ""
    root: Computed[Path] = Path()
    folder: Computed[Path] = Path()
    targets: Computed[TargetTable] = Field(default_factory=TargetTable)
    files: Computed[tuple[NamedFile, ...]] = ()
    warnings: Computed[tuple[Diagnostic, ...]] = ()
    used_targets: Computed[tuple[str, ...]] = ()

    @field_validator("name")
    @classmethod
    def _is_slug(cls, value: str) -> str:
        if not re.fullmatch(_NAME_PATTERN, value):
            raise ValueError(
                f"{value!r} is not a valid name; write lower case letters, digits and hyphens, a "
                "letter first, as `code-review`"
            )
        return value

    @property
    def default_target(self) -> str | None:
        """Name of the target of the tests that name none."""
        return self.execution.target or self.target

    @property
    def timeout_seconds(self) -> float | None:
        """The time limit of the tests that set none."""
        return self.execution.timeout_seconds

    def with_tests(self, tests: Iterable[Test]) -> "Suite":
        """The suite with these of its tests."""
        return self.model_copy(update={"tests": tuple(tests)})

    def target_of(self, test: Test) -> str | None:
        """Name of the target that answers a test."""
        return self.targets.agent(test.target or self.default_target)

    def agent_of(self, test: Test) -> Target | None:
        """The target that answers a test; None if it is not declared."""
        return self.targets.get(self.target_of(test))


@dataclass(frozen=True)
class BrokenSuite:
    """A suite file that cannot be used: its errors, the files that it names as far as they could be
    read, and the valid targets that it sees."""

    path: str
    errors: tuple[Diagnostic, ...]
    files: tuple[NamedFile, ...] = ()
    targets: TargetTable = field(default_factory=TargetTable)
