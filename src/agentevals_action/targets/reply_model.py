"""Pydantic models of replies, and the error for a reply with an unexpected structure."""

from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from agentevals_action.model.field_errors import dotted, field_errors

Item = TypeVar("Item")
Model = TypeVar("Model", bound="ReplyModel")


class ReplyModel(BaseModel):
    """An object of a reply; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False)


def _none_if_invalid(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


#: A field that the answer does not depend on: None in place of an invalid value.
IfValid = Annotated[Item | None, WrapValidator(_none_if_invalid)]
#: A number of tokens; unknown is not zero.
Tokens = IfValid[Annotated[int, Field(ge=0)]]


def validate_reply(model: type[Model], data: Any, name: str) -> Model:
    """The model of a reply, which `name` describes with its article; ValueError with the first
    error if it is not one."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = field_errors(error, data)[0]
        field = f"`{dotted(first.steps)}`" if first.steps else "it"
        problem = f"{field} is not {' or '.join(first.expected) or 'valid'}"
        if first.is_missing:
            problem = f"{field} is missing"
        elif first.message:
            problem = f"{field}: {first.message}" if first.steps else first.message
        raise ValueError(f"the reply is not {name}: {problem}") from None
