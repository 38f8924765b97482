"""The base of replies that are read by a schema, with its error."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from agentevals_action.model.validation.field_errors import dotted, field_errors


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
