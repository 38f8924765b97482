"""Pydantic models of replies, and the error for a reply with an unexpected structure."""

from collections.abc import Sequence
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.model.validation.field_errors import dotted, field_errors

Item = TypeVar("Item")


class ReplyModel(BaseModel):
    """An object of a reply; unknown fields are ignored."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="ignore", allow_inf_nan=False, defer_build=True
    )

    @classmethod
    def parse(cls, data: Any, name: str) -> Self:
        """The model of a reply, which `name` describes with its article; ValueError with the first
        error if it is not one."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = field_errors(error, data)[0]
            field = f"`{dotted(first.steps)}`" if first.steps else "it"
            problem = f"{field} is not {' or '.join(first.expected) or 'valid'}"
            if first.is_missing:
                problem = f"{field} is missing"
            elif first.message:
                problem = f"{field}: {first.message}" if first.steps else first.message
            raise ValueError(f"the reply is not {name}: {problem}") from None


def _none_if_invalid(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


#: A field that the answer does not depend on: None in place of an invalid value.
IfValid = Annotated[Item | None, WrapValidator(_none_if_invalid)]
#: A number of tokens; unknown is not zero.
Tokens = IfValid[Annotated[int, Field(ge=0)]]
#: US dollars; unknown is not zero.
Dollars = IfValid[Annotated[float, Field(ge=0)]]


def at(*steps: str) -> Any:
    """A field at a path of the reply; None if the path leads to nothing."""
    return Field(None, validation_alias=AliasPath(*steps))


class RouterUsage(ReplyModel):
    """The cost in a usage, as OpenRouter states it."""

    cost: Dollars = None
    # With a key of the user's own, `cost` is the fee of the router alone:
    # https://openrouter.ai/docs/use-cases/usage-accounting
    is_byok: IfValid[bool] = None
    upstream_cost: Dollars = at("cost_details", "upstream_inference_cost")

    @property
    def cost_usd(self) -> float | None:
        """The fee and the price of the model; None unless both are known."""
        if self.cost is None or not self.is_byok:
            return self.cost
        return None if self.upstream_cost is None else self.cost + self.upstream_cost


class ModelReply(ReplyModel):
    """The reply of a model: its name and the numbers of tokens, which each format has at other
    paths, and the cost, which a router states."""

    model: IfValid[str] = None
    input_tokens: Tokens = None
    output_tokens: Tokens = None
    cached_tokens: Tokens = None
    cache_write_tokens: Tokens = None
    router_usage: IfValid[RouterUsage] = at("usage")

    def trace(self, messages: Sequence[Message]) -> Trace:
        """The trace of a call that answered with these messages."""
        return Trace(
            messages=tuple(messages),
            tool_calls=tuple(call for message in messages for call in message.tool_calls),
            llm_call_count=1,
            usage=Usage(
                input_tokens=self.input_tokens,
                output_tokens=self.output_tokens,
                cached_tokens=self.cached_tokens,
                cache_write_tokens=self.cache_write_tokens,
                cost_usd=None if self.router_usage is None else self.router_usage.cost_usd,
            ),
            model=self.model,
        )
