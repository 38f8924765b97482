"""`http`: an agent behind an HTTP service. A test goes in as JSON; the answer is at a path of the
reply."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message, wire_messages
from agentevals_action.model.target import Provider, ProviderContext, Request, Target
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.model.validation.json_values import (
    MISSING,
    look_up,
    read_path,
    shown,
)
from agentevals_action.system import redaction
from agentevals_action.targets import variables
from agentevals_action.targets.formats.envelope import read_reply
from agentevals_action.targets.http.client import HttpClient, HttpReply, check_url, origin_of
from agentevals_action.targets.http.errors import Service
from agentevals_action.targets.message_texts import prompt_text
from agentevals_action.templating import render_value, unknown_variables

#: The variables of a template; the expected answer is not one of them.
VARIABLES = ("prompt", "input", "id", "sample", "conversation_id", "metadata")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Headers that follow from the request itself.
_RESERVED_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})


def _map_texts(value: Any, convert: Callable[[str, str], Any], path: str = "") -> Any:
    """JSON data with every text in it converted; `convert` also gets its path."""
    if isinstance(value, Mapping):
        return {
            key: _map_texts(item, convert, f"{path}.{key}" if path else key)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_map_texts(item, convert, f"{path}[{index}]") for index, item in enumerate(value)]
    return convert(value, path) if isinstance(value, str) else value


def _check_body(body: Any) -> Any:
    if body is None:
        return None
    if not isinstance(body, Mapping | list | tuple):
        raise ValueError("write an object or a list, whose strings are templates")
    try:
        json.dumps(body, allow_nan=False, default=dict)
    except (TypeError, ValueError):
        problem = "it is not valid JSON; write texts, numbers, lists and objects"
        raise ValueError(problem) from None
    return _map_texts(body, _checked_template)


def _checked_template(text: str, path: str) -> str:
    """A text; ValueError if it is not a valid template once the values of `${{ }}` are in it."""
    filled = variables.resolve(text, dict.fromkeys(variables.names_in(text), "x"))
    try:
        unknown = unknown_variables(filled, frozenset(VARIABLES), "the text")
    except ValueError as error:
        raise ValueError(f"in `{path}`, {error}") from None
    if unknown:
        known = ", ".join(f"`{name}`" for name in VARIABLES)
        names = ", ".join(f"`{name}`" for name in unknown)
        problem = f"it names {names}, which does not exist; write any of {known}"
        raise ValueError(f"in `{path}`, {problem}")
    return text


def _check_url(url: str) -> str:
    return url if "${{" in url else check_url(url)  # else validated with its variables filled in


def _check_path(path: str) -> str:
    read_path(path)
    return path


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name in headers:
        if not _HEADER.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"{shown(name)} cannot be sent; leave it out")
    return headers


class Http(Target):
    """An agent behind an HTTP service."""

    provider: ClassVar[str] = "http"

    url: Annotated[str, AfterValidator(_check_url)] = Field(description="The service.")
    method: Literal["POST", "PUT", "PATCH"] = Field("POST", description="POST, PUT or PATCH.")
    headers: Annotated[dict[str, str], AfterValidator(_check_headers)] = Field(
        default_factory=dict, description="Headers of the request; keys as `${{ NAME }}`."
    )
    body: Annotated[Any, AfterValidator(_check_body)] = Field(
        None,
        description="An object or a list whose strings are Jinja templates, sent as JSON (`{{ "
        f"input }}}}` alone is the data itself). Variables: {', '.join(VARIABLES)}. Without it: "
        "{prompt, messages, id}, and the "
        "conversation_id of a test that has one.",
    )
    output_path: Annotated[str, AfterValidator(_check_path)] | None = Field(
        None,
        description="The path of the answer in a JSON reply, as choices.0.message.content; without "
        "it the reply is the answer.",
    )

    def destination(self) -> str:
        """The origin of the service."""
        return origin_of(self.url)

    def connect(self, context: ProviderContext) -> Provider:  # noqa: ARG002  # of the interface
        """The service."""
        return _Connected(self)


class _Connected(Provider):
    def __init__(self, target: Http) -> None:
        self._target = target
        # Secrets often end with a newline.
        headers = {name: value.strip() for name, value in target.headers.items()}
        keys = [value for name, value in headers.items() if redaction.looks_secret(name)]
        words = [word for value in keys for word in (value, *value.split())]
        self._client = HttpClient(
            Service(
                url=target.url,
                key_hint="check the credentials in the target's `headers`",
                url_field="url",
                headers=headers,
                secrets=tuple(word for word in words if len(word) >= redaction.MIN_LENGTH),
            )
        )

    async def complete(self, request: Request) -> Trace:
        target = self._target
        try:
            content = _make_body(target, request)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the request cannot be made: {error}") from None
        has_type = any(name.lower() == "content-type" for name in target.headers)
        headers = None if has_type else {"Content-Type": "application/json"}
        reply = await self._client.send(target.method, "", content, request.timeout, headers)
        try:
            if not reply.body.strip():
                raise ValueError("the reply is empty")
            trace = _read(reply, target, request.messages)
        except ValueError as error:
            raise self._client.reply_error(error) from None
        return replace(trace, usage=Usage(cost_usd=reply.cost_usd).or_else(trace.usage))

    async def check(self, request: Request) -> str:
        """One call."""
        await self.complete(request)
        return ""

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


def _make_body(target: Http, request: Request) -> bytes:
    """The body of a request; ValueError or OSError if the test cannot be put into it."""
    values = {
        "prompt": prompt_text(request.messages),
        "input": wire_messages(request.messages),
        "id": request.eval_id,
        "sample": request.attempt,
        "conversation_id": request.conversation_id,
        "metadata": request.metadata,
    }
    body = {"prompt": values["prompt"], "messages": values["input"], "id": values["id"]}
    if request.conversation_id is not None:
        body["conversation_id"] = request.conversation_id
    if target.body is not None:
        body = _map_texts(
            target.body, lambda text, path: render_value(text, values, f"`body.{path}`")
        )
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    except TypeError as error:
        raise ValueError(f"`body` is not valid JSON with its values: {error}") from None
    return text.encode("utf-8", "replace")


def _read(reply: HttpReply, target: Http, question: Sequence[Message]) -> Trace:
    """The trace of a reply; ValueError if it has no answer, or not a valid one."""
    text, path = reply.body.decode("utf-8-sig", "replace"), target.output_path
    return read_reply(text, question) if path is None else _read_at(reply.json(), path, question)


def _read_at(data: Any, path: str, question: Sequence[Message]) -> Trace:
    """The answer at a path; ValueError if it is missing, null or empty."""
    value = look_up(data, read_path(path))
    if value in (MISSING, None, ""):
        raise ValueError(f"the reply has no answer at `{path}`: it is {shown(data)}")
    if isinstance(value, str):
        return Trace(messages=(Message("assistant", value),))
    return read_reply(json.dumps(value, ensure_ascii=False), question)
