"""What is expected of the agent's tool calls, and which call is an expected one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from agentevals_action.evaluators.trace_checks import within
from agentevals_action.formatting import quoted
from agentevals_action.model.messages import ToolCall
from agentevals_action.model.tools import argument, find_differences
from agentevals_action.validation.file_model import FileModel, ListOf, NonEmpty
from agentevals_action.validation.json_values import MISSING, describe_json

Mode = Literal["any_order", "in_order", "exact", "superset", "subset"]
_Names = Annotated[ListOf[NonEmpty], Field(json_schema_extra={"minItems": 1})]
ArgsMatch = Literal["exact", "superset", "subset", "ignore"] | _Names


def check_argument_names(
    args_match: ArgsMatch | None, expected_args: Sequence[Mapping[str, Any]]
) -> None:
    """ValueError if a list of arguments is empty or names one that no expected call has."""
    if not isinstance(args_match, tuple):
        return
    if not args_match:
        raise ValueError("the list is empty; write the arguments to compare, or `ignore`")
    for name in args_match:
        if all(argument(args, name) is MISSING for args in expected_args):
            raise ValueError(
                f"{quoted(name)} is not an argument of an expected call; write it in `args` as well"
            )


class Expectation(FileModel):
    """One expected tool call."""

    tool: NonEmpty = Field(description="Name of the tool.")
    args: Literal["any"] | dict[str, Any] = Field(
        default="any", description="The expected arguments; `any` compares none."
    )
    args_match: ArgsMatch | None = Field(
        default=None,
        description="How the arguments are compared: `superset` (the call has all of "
        "`args`, and may have more; the default), `exact`, `subset` (the call "
        "has no others), `ignore`, or a list of the arguments that must be "
        "equal, as dotted paths.",
    )
    max_duration_ms: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="The longest duration of the call, in milliseconds: one more requirement.",
    )

    @field_validator("args_match")
    @classmethod
    def _check_names(cls, value: ArgsMatch | None, info: ValidationInfo) -> ArgsMatch | None:
        args = info.data.get("args")
        check_argument_names(value, [args] if isinstance(args, dict) else [])
        return value

    def or_else(self, args_match: ArgsMatch | None) -> "Expectation":
        """The expected call with this comparison of arguments, unless it has its own."""
        return self if self.args_match else self.model_copy(update={"args_match": args_match})

    def describe(self) -> str:
        """The tool, with the arguments that are compared."""
        if self.args == "any" or self.args_match == "ignore":
            return quoted(self.tool)
        return f"{quoted(self.tool)} with {describe_json(self.args)}"

    def fits(self, call: ToolCall) -> bool:
        """Whether a call is the expected one, by tool and arguments; a refused call is not."""
        return call.name == self.tool and not call.refused and self.compare(call) == {}

    def compare(self, call: ToolCall) -> Mapping[str, tuple[Any, Any]] | None:
        """The compared arguments that differ, by name, as given and as expected (MISSING: on one
        side only); None if the call's arguments have no names.

        Of a list in `args_match`, the arguments that are expected are compared. A call without
        arguments has `{}`."""
        how, args = self.args_match or "superset", self.args
        given = {} if call.arguments is None else call.arguments
        if args == "any" or how == "ignore":
            return {}
        if not isinstance(given, Mapping):
            return None
        names: Iterable[str] = {"exact": {**given, **args}, "subset": given}.get(str(how), args)
        if isinstance(how, tuple):
            names = [name for name in how if argument(args, name) is not MISSING]
        return find_differences(given, args, names)

    def is_late(self, call: ToolCall) -> bool:
        """Whether a call is known to exceed the duration limit."""
        limit, took = self.max_duration_ms, call.duration_ms
        return limit is not None and took is not None and not within(took, limit)


@dataclass(frozen=True)
class ExpectedCalls:
    """The expected calls, and the least counts of calls by tool."""

    mode: Mode
    expected: tuple[Expectation, ...] = ()
    minimums: Mapping[str, int] = field(default_factory=dict)
