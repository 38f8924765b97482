"""What may stand in a suite, by canonical names: the models that files are checked against and the JSON Schema is made from."""

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, StringConstraints, field_validator

Item = TypeVar("Item")
#: A list in a file; frozen once read. The items are checked strictly all the same.
ListOf = Annotated[tuple[Item, ...], Strict(False)]
NonEmpty = Annotated[str, StringConstraints(min_length=1)]
Seconds = Annotated[float, Field(ge=1, le=3600, allow_inf_nan=False)]
#: The longest name that is shown as it is, in tables and in check titles.
MAX_NAME = 64

_NAME_PATTERN = r"^[a-z][a-z0-9]*(-+[a-z0-9]+)*$"


class Entry(BaseModel):
    """Base of everything read from a suite: wrong types are refused, unknown fields are told about by the dialects."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", defer_build=True)


class SuiteExecution(Entry):
    """Defaults for every test of the suite."""

    target: NonEmpty | None = Field(None, description="Name of the target (see .agentv/targets.yaml) that the tests are put to.")
    timeout_seconds: Seconds | None = Field(None, description="Time limit of each test in seconds, 1-3600.")


class TestExecution(SuiteExecution):
    """Overrides for one test."""

    __test__ = False  # pytest: an entry of a file, no test case

    skip_defaults: bool = Field(False, description="Leaves out the suite's evaluators and its input for this test.")


class ToolFunction(Entry):
    """The function of a tool call."""

    name: NonEmpty = Field(description="Name of the function.")
    arguments: str = Field("", description="The arguments as a string of JSON.")


class ToolCallEntry(Entry):
    """A tool call of an assistant, in the specification's form (`function`) or AgentV's (`tool`)."""

    id: str | None = Field(None, description="Identifier that a tool message refers to.")
    type: Literal["function"] = Field("function", description="Always `function`.")
    function: ToolFunction | None = Field(None, description="The function that was called.")
    tool: NonEmpty | None = Field(None, description="AgentV's form: name of the tool.")
    input: Any = Field(None, description="AgentV's form: the arguments.")
    output: Any = Field(None, description="AgentV's form: what the tool gave back.")
    duration_ms: Annotated[float, Field(ge=0)] | None = Field(None, description="AgentV's form: how long the call took, in milliseconds.")


class BlockEntry(Entry):
    """One part of a message."""

    type: Literal["text", "file", "image", "json"] = Field(description="What `value` is.")
    value: Any = Field(description="The text; the path of a file; the path or base64 data of an image; or JSON data.")


class MessageEntry(Entry):
    """One message."""

    role: Literal["system", "user", "assistant", "tool"] = Field(description="Who says it.")
    content: Any = Field(None, description="A text, or a list of blocks.")
    name: str | None = Field(None, description="Name of the tool, on tool messages.")
    tool_call_id: str | None = Field(None, description="The tool call that a tool message answers.")
    tool_calls: ListOf[ToolCallEntry] = Field((), description="Tools that an assistant called.")


class EvaluatorEntry(Entry):
    """What all evaluators have in common; the rest belongs to the type."""

    type: NonEmpty = Field(description="The type of evaluator; `-` and `_` are equal in it.")
    name: NonEmpty | None = Field(None, description="Shown in results and gates; made from type and value when missing.")
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(1.0, description="Weight in the test's score, 0 or more.")
    required: bool | Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="Makes it a gate that fails the test: true (0.8 must be reached) or the score that must be reached."
    )
    min_score: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="AgentV: the threshold of the gate, over 0 and up to 1."
    )
    negate: bool = Field(False, description="Turns the score into 1 - score.")
    config: dict[str, Any] | None = Field(None, description="Passed on to the evaluator as it is.")
    target: NonEmpty | None = Field(None, description="Name of the target that judges.")

    @field_validator("required", mode="before")
    @classmethod
    def _is_given(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("it is empty; write `true`, a number over 0 and up to 1, or leave it out")
        return value


class TestEntry(Entry):
    """One test. Its `input` and `expected_output` are read by `content`, its `rubrics` by the evaluator type `rubric`."""

    __test__ = False  # pytest: an entry of a file, no test case

    id: NonEmpty = Field(description="Identifier of the test, unique in the suite.")
    input: Any = Field(description="What the agent is asked: a text, an object, or messages.")
    criteria: str | None = Field(None, description="What makes an answer good, in words; for judges and readers.")
    expected_output: Any = Field(None, description="A reference answer: a text, an object, or messages.")
    rubrics: Any = Field(None, description="Criteria that a judge checks one by one: texts, or objects with id, outcome, weight, required.")
    evaluators: Any = Field(None, description="What grades the answer.")
    workspace: Any = Field(None, description="The folder that the agent works in: its fields replace the suite's, one by one.")
    execution: TestExecution = Field(TestExecution(), description="Overrides for this test.")
    description: str | None = Field(None, description="For readers.")
    conversation_id: str | None = Field(None, description="Groups tests of one conversation.")
    note: str | None = Field(None, description="Context for evaluators.")
    metadata: dict[str, Any] | None = Field(None, description="Anything; handed to evaluators.")


class SuiteEntry(Entry):
    """The root of a suite."""

    name: Annotated[str, StringConstraints(min_length=2, max_length=MAX_NAME)] | None = Field(
        None,
        description="Name of the suite: lower case letters, digits and single hyphens, 2-64 characters.",
        json_schema_extra={"pattern": _NAME_PATTERN},
    )
    version: str | float | None = Field(None, description='Version of the format, "1.0".')
    description: Annotated[str, StringConstraints(max_length=2048)] | None = Field(None, description="For readers, up to 2048 characters.")
    metadata: dict[str, Any] | None = Field(None, description="Anything; author, license, tags and skill are known names.")
    execution: SuiteExecution = Field(SuiteExecution(), description="Defaults for every test.")
    input: Any = Field(None, description="Messages that are put before every test's own.")
    evaluators: Any = Field(None, description="What grades every answer of the suite.")
    workspace: Any = Field(None, description="The folder that the agent works in, or the path of a YAML file that describes it.")
    tests: Any = Field(None, description="The tests: a list of tests and paths, or the path of a YAML or JSONL file.")

    @field_validator("name")
    @classmethod
    def _is_slug(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(_NAME_PATTERN, value):
            raise ValueError(f"{value!r} is no name; write lower case letters, digits and hyphens, a letter first, as `code-review`")
        return value
