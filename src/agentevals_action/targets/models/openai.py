"""`openai`: a model behind OpenAI's API in its two formats, or a compatible server.

https://platform.openai.com/docs/api-reference
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from agentevals_action.formatting import join_choices
from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace
from agentevals_action.targets.dialects import messages as chat
from agentevals_action.targets.dialects import responses
from agentevals_action.targets.dialects.blocks import objects, trace_of_call
from agentevals_action.targets.dialects.usage import read_usage
from agentevals_action.targets.models.model_api import ModelTarget
from agentevals_action.targets.variables import names_in
from agentevals_action.validation.file_model import expected
from agentevals_action.validation.json_values import as_object

#: The paths of the formats.
PATHS: Mapping[str, str] = {"chat": "chat/completions", "responses": "responses"}
#: The fields of a request that `config` cannot set, with advice.
RESERVED: Mapping[str, str] = {
    "model": "use the field `model`",
    "instructions": "write a system message",
    **dict.fromkeys(("messages", "input", "stream", "background", "n"), "leave it out"),
}


def _check_format(name: str) -> str:
    if name not in PATHS and not names_in(name):
        raise expected(join_choices(PATHS))
    return name


#: The name of a format, or a `${{ VARIABLE }}` with it.
ApiFormat = Annotated[
    str,
    AfterValidator(_check_format),
    Field(
        description="`chat` (chat completions, which every compatible server offers) or "
        "`responses` (the Responses API)."
    ),
]


class OpenAI(ModelTarget):
    """A model behind OpenAI's API, or a compatible server."""

    provider: ClassVar[str] = "openai"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    vendor_url: ClassVar[str] = "https://api.openai.com/v1"
    reserved: ClassVar[Mapping[str, str]] = RESERVED
    dead_codes: ClassVar[frozenset[str]] = frozenset({"model_not_found"})

    api_format: ApiFormat = "chat"

    @property
    def address(self) -> str:
        """The URL of calls in the format."""
        return f"{self.url}/{PATHS[self.api_format]}"

    def headers(self, key: str) -> Mapping[str, str]:
        """The key."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def to_wire(self, messages: Sequence[Message]) -> dict[str, Any]:
        """A request in the format."""
        used = chat if self.api_format == "chat" else responses
        return {**self.config, "model": self.model, **used.to_wire(messages)}

    def from_wire(self, data: Any) -> Trace:
        """The trace of a reply in the format."""
        return read_completion(data) if self.api_format == "chat" else read_response(data)


def read_completion(data: Any) -> Trace:
    """The trace of a chat completion; ValueError if it is not one, was filtered or has no
    content."""
    choices = objects(as_object(data), "choices")
    message = choices[0].get("message") if choices else None
    if not isinstance(message, Mapping):
        raise ValueError("the reply is not a chat completion: `choices[0].message` is missing")
    reason = choices[0].get("finish_reason")
    if reason == "content_filter":
        raise ValueError("the reply was stopped by the vendor's content filter")
    reply = chat.read_reply({**message, "usage": data.get("usage")})
    if reply.is_empty:
        raise ValueError(f"the reply is empty (finish_reason {reason!r})")
    return trace_of_call([reply], reply.usage, data.get("model"))


def read_response(data: Any) -> Trace:
    """The trace of a response without its reasoning. ValueError if it is not one, failed, was
    filtered or is empty."""
    response = as_object(data)
    if "output" not in response or response.get("object", "response") != "response":
        raise ValueError("the reply is not a response: `output` is missing")
    error, status = response.get("error"), response.get("status")
    reason = as_object(response.get("incomplete_details")).get("reason")
    if isinstance(error, dict) or status not in (None, "completed", "incomplete"):
        details = [as_object(error).get("code"), as_object(error).get("message")]
        problem = f"the response was not completed (status {status!r})"
        raise ValueError(": ".join([problem, *(part for part in details if isinstance(part, str))]))
    if reason == "content_filter":
        raise ValueError("the reply was stopped by the vendor's content filter")
    replies = responses.from_wire(objects(response, "output"))
    if not replies:
        status = f"{status!r}, {reason}" if reason else repr(status)
        raise ValueError(f"the reply is empty (status {status})")
    return trace_of_call(replies, read_usage(response.get("usage")), response.get("model"))
