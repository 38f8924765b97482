"""What may stand in a suite, by canonical names: what files are checked against and the JSON Schema
is made from."""

import re
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from agentevals_action.entries.entry import Before, Entry, NonEmpty, Seen, checks

Item = TypeVar("Item")
#: A list in a file; frozen once read.
ListOf = tuple[Item, ...]
Seconds = Annotated[float, Meta(ge=1, le=3600)]
#: The longest name that is shown as it is, in tables and in check titles.
MAX_NAME = 64

_NAME_PATTERN = r"^[a-z][a-z0-9]*(-+[a-z0-9]+)*$"


def _given(value: Any) -> Any:
    if value is None:
        raise ValueError("it is empty; write `true`, a number over 0 and up to 1, or leave it out")
    return value


class SuiteExecution(Entry):
    """Defaults for every test of the suite."""

    target: Annotated[
        NonEmpty | None,
        Meta(
            description="Name of the target (see .agentv/targets.yaml) that the tests are put to."
        ),
    ] = None
    timeout_seconds: Annotated[
        Seconds | None, Meta(description="Time limit of each test in seconds, 1-3600.")
    ] = None


class TestExecution(SuiteExecution):
    """Overrides for one test."""

    __test__ = False  # pytest: an entry of a file, no test case

    skip_defaults: Annotated[
        bool, Meta(description="Leaves out the suite's evaluators and its input for this test.")
    ] = False


class ToolFunction(Entry):
    """The function of a tool call."""

    name: Annotated[NonEmpty, Meta(description="Name of the function.")]
    arguments: Annotated[str, Meta(description="The arguments as a string of JSON.")] = ""


class ToolCallEntry(Entry):
    """A tool call of an assistant, in the specification's form (`function`) or AgentV's
    (`tool`)."""

    id: Annotated[str | None, Meta(description="Identifier that a tool message refers to.")] = None
    type: Annotated[Literal["function"], Meta(description="Always `function`.")] = "function"
    function: Annotated[ToolFunction | None, Meta(description="The function that was called.")] = (
        None
    )
    tool: Annotated[NonEmpty | None, Meta(description="AgentV's form: name of the tool.")] = None
    input: Annotated[Any, Meta(description="AgentV's form: the arguments.")] = None
    output: Annotated[Any, Meta(description="AgentV's form: what the tool gave back.")] = None
    duration_ms: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="AgentV's form: how long the call took, in milliseconds."),
    ] = None


class BlockEntry(Entry):
    """One part of a message."""

    type: Annotated[Literal["text", "file", "image", "json"], Meta(description="What `value` is.")]
    value: Annotated[
        Any,
        Meta(
            description="The text; the path of a file; the path or base64 data of an image; or JSON data."
        ),
    ]


class MessageEntry(Entry):
    """One message."""

    role: Annotated[
        Literal["system", "user", "assistant", "tool"], Meta(description="Who says it.")
    ]
    content: Annotated[Any, Meta(description="A text, or a list of blocks.")] = None
    name: Annotated[str | None, Meta(description="Name of the tool, on tool messages.")] = None
    tool_call_id: Annotated[
        str | None, Meta(description="The tool call that a tool message answers.")
    ] = None
    tool_calls: Annotated[
        ListOf[ToolCallEntry], Meta(description="Tools that an assistant called.")
    ] = ()


class EvaluatorEntry(Entry):
    """What all evaluators have in common; the rest belongs to the type."""

    type: Annotated[
        NonEmpty, Meta(description="The type of evaluator; `-` and `_` are equal in it.")
    ]
    name: Annotated[
        NonEmpty | None,
        Meta(description="Shown in results and gates; made from type and value when missing."),
    ] = None
    weight: Annotated[float, Meta(ge=0, description="Weight in the test's score, 0 or more.")] = 1.0
    required: Annotated[
        bool | Annotated[float, Meta(gt=0, le=1)] | None,
        Before(_given),
        Meta(
            description="Makes it a gate that fails the test: true (0.8 must be reached) or the score that must be reached."
        ),
    ] = None
    min_score: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        Meta(description="AgentV: the threshold of the gate, over 0 and up to 1."),
    ] = None
    negate: Annotated[bool, Meta(description="Turns the score into 1 - score.")] = False
    config: Annotated[
        dict[str, Any] | None, Meta(description="Passed on to the evaluator as it is.")
    ] = None
    target: Annotated[NonEmpty | None, Meta(description="Name of the target that judges.")] = None


class TestEntry(Entry):
    """One test. Its `input` and `expected_output` are read by `content`, its `rubrics` by the
    evaluator type `rubric`."""

    __test__ = False  # pytest: an entry of a file, no test case

    id: Annotated[NonEmpty, Meta(description="Identifier of the test, unique in the suite.")]
    input: Annotated[
        Any, Meta(description="What the agent is asked: a text, an object, or messages.")
    ]
    criteria: Annotated[
        str | None, Meta(description="What makes an answer good, in words; for judges and readers.")
    ] = None
    expected_output: Annotated[
        Any, Meta(description="A reference answer: a text, an object, or messages.")
    ] = None
    rubrics: Annotated[
        Any,
        Meta(
            description="Criteria that a judge checks one by one: texts, or objects with id, outcome, weight, required."
        ),
    ] = None
    evaluators: Annotated[Any, Meta(description="What grades the answer.")] = None
    workspace: Annotated[
        Any,
        Meta(
            description="The folder that the agent works in: its fields replace the suite's, one by one."
        ),
    ] = None
    execution: Annotated[TestExecution, Meta(description="Overrides for this test.")] = (
        TestExecution()
    )
    description: Annotated[str | None, Meta(description="For readers.")] = None
    conversation_id: Annotated[
        str | None, Meta(description="Groups tests of one conversation.")
    ] = None
    note: Annotated[str | None, Meta(description="Context for evaluators.")] = None
    metadata: Annotated[
        dict[str, Any] | None, Meta(description="Anything; handed to evaluators.")
    ] = None


class SuiteEntry(Entry):
    """The root of a suite."""

    name: Annotated[
        Annotated[str, Meta(min_length=2, max_length=MAX_NAME)] | None,
        Meta(
            description="Name of the suite: lower case letters, digits and single hyphens, 2-64 characters.",
            extra_json_schema={"pattern": _NAME_PATTERN},
        ),
    ] = None
    version: Annotated[str | float | None, Meta(description='Version of the format, "1.0".')] = None
    description: Annotated[
        Annotated[str, Meta(max_length=2048)] | None,
        Meta(description="For readers, up to 2048 characters."),
    ] = None
    metadata: Annotated[
        dict[str, Any] | None,
        Meta(description="Anything; author, license, tags and skill are known names."),
    ] = None
    execution: Annotated[SuiteExecution, Meta(description="Defaults for every test.")] = (
        SuiteExecution()
    )
    input: Annotated[Any, Meta(description="Messages that are put before every test's own.")] = None
    evaluators: Annotated[Any, Meta(description="What grades every answer of the suite.")] = None
    workspace: Annotated[
        Any,
        Meta(
            description="The folder that the agent works in, or the path of a YAML file that describes it."
        ),
    ] = None
    tests: Annotated[
        Any,
        Meta(
            description="The tests: a list of tests and paths, or the path of a YAML or JSONL file."
        ),
    ] = None

    @checks("name")
    @classmethod
    def _is_slug(cls, value: str | None, _seen: Seen) -> str | None:
        if value is not None and not re.fullmatch(_NAME_PATTERN, value):
            raise ValueError(
                f"{value!r} is no name; write lower case letters, digits and hyphens, a letter first, as `code-review`"
            )
        return value
