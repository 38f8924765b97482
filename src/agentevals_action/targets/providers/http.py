"""`http`: an agent behind an HTTP service. A test goes in as JSON, a text or a URL; the answer is
at a path of the reply."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import one_of
from agentevals_action.model.messages import wire_messages
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import (
    MISSING,
    look_up,
    parse_json,
    read_path,
    shown,
)
from agentevals_action.system import redaction
from agentevals_action.targets import variables
from agentevals_action.targets.apis.http_client import HttpClient, HttpReply, check_url, origin_of
from agentevals_action.targets.apis.http_errors import Service
from agentevals_action.targets.base import Provider, ProviderContext, ProviderOptions, Request
from agentevals_action.targets.message_texts import prompt_text
from agentevals_action.targets.replies.envelope import read_reply
from agentevals_action.targets.replies.event_stream import (
    ServerSentEvent,
    Stream,
    answer_of,
    read_stream,
)
from agentevals_action.targets.replies.usage import Usage, read_usage
from agentevals_action.templating import (
    prints_only,
    render_text,
    render_value,
    unknown_variables,
)

#: The variables of a template; the expected answer is not one of them.
VARIABLES = ("prompt", "input", "id", "sample", "conversation_id", "metadata")

_WITH_BODY = ("POST", "PUT", "PATCH")
_METHODS = (*_WITH_BODY, "GET", "DELETE")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Headers that follow from the request itself.
_RESERVED_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_MAX_NAMES = 10  # field names in an error about a missing one


def _check_template(text: str) -> str:
    """The text with placeholders for `${{ }}`, which is filled in before the template; ValueError
    if it is not a valid template."""
    text = variables.resolve(text, dict.fromkeys(variables.names_in(text), "x"))
    if _is_template(text) and (
        unknown := unknown_variables(text, frozenset(VARIABLES), "the text")
    ):
        known = ", ".join(f"`{name}`" for name in VARIABLES)
        names = ", ".join(f"`{name}`" for name in unknown)
        raise ValueError(f"it names {names}, which does not exist; write any of {known}")
    return text


def _is_template(text: str) -> bool:
    return any(sign in text for sign in ("{{", "{%", "{#"))


def _check_body(body: Any) -> Any:
    if body is not None and not isinstance(body, str | Mapping | list | tuple):
        raise ValueError("write a text, an object or a list")
    return _plain(body, "")


def _plain(value: Any, path: str) -> Any:
    if isinstance(value, Mapping):
        return {
            str(key): _plain(item, f"{path}.{key}" if path else str(key))
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, str):
        try:
            _check_template(value)
        except ValueError as error:
            raise ValueError(f"in `{path}`, {error}" if path else str(error)) from None
    elif value is not None and not isinstance(value, bool | int | float):
        raise ValueError("it is not valid JSON; write texts, numbers, lists and objects")
    return value


def _check_method(method: Any) -> Any:
    if not isinstance(method, str):
        return method
    if method.upper() not in _METHODS:
        raise ValueError(f"the method is unknown; write {one_of(_METHODS)}")
    return method.upper()


def _check_url_template(url: str) -> str:
    template = _check_template(url)
    if "${{" not in url:
        parts = urlsplit(template)
        if _is_template(parts.netloc):
            raise ValueError(
                "the host cannot be a template; write it out, or give it as `${{ NAME }}`"
            )
        check_url(f"{parts.scheme}://{parts.netloc}/")
    return url


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    seen = set(_RESERVED_HEADERS)
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in seen:
            raise ValueError(f"{shown(name)} cannot be sent; leave it out")
        text = value.strip()
        if not (text.isascii() and text.isprintable()):  # not quoted: it may be a key
            raise ValueError(f"{shown(name)} has characters that no header can carry; correct it")
        seen.add(name.lower())
    return headers


def _check_path(path: str) -> str:
    read_path(path)
    return path


class Http(ProviderOptions):
    """An agent behind an HTTP service."""

    provider: ClassVar[str] = "http"

    url: Annotated[str, AfterValidator(_check_url_template)] = Field(
        description="The service. After its host it may be a template as `body` is "
        "(`…/ask?q={{ prompt | urlencode }}`)."
    )
    method: Annotated[str, BeforeValidator(_check_method)] = Field(
        "POST",
        description="POST, PUT or PATCH, which have a body, or GET or DELETE, which have none.",
    )
    headers: Annotated[dict[str, str], AfterValidator(_check_headers)] = Field(
        default_factory=dict, description="Headers of the request; keys as `${{ NAME }}`."
    )
    body: Annotated[Any, AfterValidator(_check_body)] = Field(
        None,
        description="An object or a list whose strings are Jinja templates, sent as JSON (`{{ "
        "input }}` alone is the data itself), or one template (in JSON: `{{ prompt | tojson }}`). "
        f"Variables: {', '.join(VARIABLES)}. Without it: {{prompt, messages, id}}, and the "
        "conversation_id of a test that has one.",
    )
    output_path: Annotated[str, AfterValidator(_check_path)] | None = Field(
        None,
        description="The path of the answer in a JSON reply, as choices.0.message.content; without "
        "it the reply is the answer. In a stream of server-sent events, the path of the text in an "
        "event.",
    )
    messages_path: Annotated[str, AfterValidator(_check_path)] | None = Field(
        None,
        description="The path of the agent's messages in a JSON reply, or in the last event of a "
        "stream that has them.",
    )
    usage_path: Annotated[str, AfterValidator(_check_path)] | None = Field(
        None, description="The path of the tokens, in the form of a vendor (`usage`)."
    )

    @model_validator(mode="after")
    def _check_body_and_method(self) -> Self:
        if self.body is not None and self.method not in _WITH_BODY:
            raise ValueError(f"{self.method} has no `body`; leave it out, or use POST")
        if isinstance(self.body, dict | list) and "json" not in (self.content_type or "json"):
            raise ValueError(
                "the `body` is sent as JSON, but `headers` has another Content-Type; write the "
                "body as a text, or change the Content-Type"
            )
        return self

    @model_validator(mode="after")
    def _check_filters(self) -> Self:
        body = self.body if isinstance(self.body, str) else ""
        is_form = "x-www-form-urlencoded" in (self.content_type or "")
        for name, text, needed in (
            ("url", self.url, "urlencode"),
            ("body", body if is_form else "", "urlencode"),
            ("body", body if self.is_json_text else "", "tojson"),
        ):
            if not prints_only(_check_template(text), needed):
                raise ValueError(
                    f"a text of a test can break this `{name}`; write `{{{{ … | {needed} }}}}`"
                    + (" without quotes, or the body as an object" if needed == "tojson" else "")
                )
        return self

    @property
    def is_json_text(self) -> bool:
        """Whether the body is a text of JSON, by the header or by its beginning."""
        if not isinstance(self.body, str):
            return False
        start = self.body.lstrip()
        looks_json = start.startswith("[") or re.match(r"\{(?![{%#])", start) is not None
        return "json" in self.content_type if self.content_type else looks_json

    @property
    def content_type(self) -> str | None:
        """The Content-Type of the headers, in lower case."""
        names = {name.lower(): value.lower() for name, value in self.headers.items()}
        return names.get("content-type")

    def destination(self) -> str:
        """The origin of the service."""
        return origin_of(self.url)

    def connect(self, context: ProviderContext) -> Provider:  # noqa: ARG002  # of the interface
        """The service."""
        return _Connected(self)


class _Connected(Provider):
    def __init__(self, options: Http) -> None:
        self._options = options
        # Secrets often end with a newline.
        headers = {name: value.strip() for name, value in options.headers.items()}
        keys = [value for name, value in headers.items() if redaction.looks_secret(name)]
        words = [word for value in keys for word in (value, *value.split())]
        parts = urlsplit(options.url)
        self._client = HttpClient(
            Service(
                url=f"{parts.scheme}://{parts.netloc}/",
                key_hint="check the credentials in the target's `headers`",
                url_field="url",
                headers=headers,
                secrets=tuple(word for word in words if len(word) >= redaction.MIN_LENGTH),
            )
        )

    async def complete(self, request: Request) -> Trace:
        options = self._options
        try:
            url, content, content_type = _make_request(options, request)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the request cannot be made: {error}") from None
        own_type = content_type if options.content_type is None else None
        headers = {"Content-Type": own_type} if own_type else None
        reply = await self._client.send(options.method, url, content, request.timeout, headers)
        try:
            if not reply.body.strip():
                raise ValueError("the reply is empty")
            trace = _read(reply, options, request.messages)
        except ValueError as error:
            raise self._client.reply_error(error) from None
        return trace if reply.cost_usd is None else replace(trace, cost_usd=reply.cost_usd)

    async def check(self, request: Request) -> str:
        """One call."""
        await self.complete(request)
        return ""

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


def _make_request(options: Http, request: Request) -> tuple[str, bytes | None, str | None]:
    """The URL, the body and its Content-Type; ValueError or OSError if the test cannot be put into
    them."""
    values = {
        "prompt": prompt_text(request.messages),
        "input": wire_messages(request.messages),
        "id": request.eval_id,
        "sample": request.attempt,
        "conversation_id": request.conversation_id,
        "metadata": request.metadata,
    }
    url = options.url
    if _is_template(url):
        url = render_text(url, values, "`url`")
    if options.method not in _WITH_BODY:
        return url, None, None
    content_type = "application/json"
    if isinstance(options.body, str):
        text = render_text(options.body, values, "`body`")
        content_type = "text/plain; charset=utf-8"
        if options.is_json_text:
            content_type = "application/json"
            try:
                parse_json(text)
            except ValueError as error:
                problem = f"`body` is not valid JSON with its values: {error}"
                raise ValueError(f"{problem}; write the body as an object") from None
    else:
        body = {"prompt": values["prompt"], "messages": values["input"], "id": values["id"]}
        if request.conversation_id is not None:
            body["conversation_id"] = request.conversation_id
        if options.body is not None:
            body = _fill(options.body, values, "body")
        try:
            text = json.dumps(body, ensure_ascii=False, allow_nan=False)
        except TypeError as error:
            raise ValueError(f"`body` is not valid JSON with its values: {error}") from None
    return url, text.encode("utf-8", "replace"), content_type


def _fill(value: Any, values: Mapping[str, Any], path: str) -> Any:
    if isinstance(value, dict):
        return {key: _fill(item, values, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, values, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, str) and _is_template(value):
        return render_value(value, values, f"`{path}`")
    return value


def _read(reply: HttpReply, options: Http, question: Sequence[Message]) -> Trace:
    """The trace of a reply; ValueError if it has no answer, or not a valid one."""
    text = reply.body.decode("utf-8-sig", "replace")
    output, messages, usage = options.output_path, options.messages_path, options.usage_path
    if not (reply.is_event_stream or output or messages or usage):
        return read_reply(text, question)
    is_stream = reply.is_event_stream
    stream = (
        read_stream(text) if is_stream else Stream((ServerSentEvent(reply.json()),), is_done=True)
    )
    if messages is not None:
        trace = _conversation_at(stream, messages, output, question)
    elif is_stream:
        trace = answer_of(stream, None if output is None else read_path(output))
    elif output is not None:
        trace = _read_at(stream.events[0].data, output, question)
    else:
        trace = read_reply(text, question)
    return trace if usage is None else _with_usage(trace, stream, usage)


def _conversation_at(
    stream: Stream, path: str, output: str | None, question: Sequence[Message]
) -> Trace:
    """The trace of the messages at a path, with the text at `output` as the answer after them."""
    messages = stream.last(read_path(path))
    if not isinstance(messages, list):
        problem = "has no" if messages is MISSING else "has no list of messages at"
        raise ValueError(f"the reply {problem} `{path}`")
    envelope: dict[str, Any] = {"messages": messages}
    if output is not None and isinstance(text := stream.last(read_path(output)), str):
        envelope["output"] = text
    return read_reply(json.dumps(envelope, ensure_ascii=False), question)


def _with_usage(trace: Trace, stream: Stream, path: str) -> Trace:
    usage, model = read_usage(stream.last(read_path(path))), stream.last(("model",))
    if usage == Usage():
        warning = f"the reply has no tokens in a known format at `{path}`"
        return replace(trace, warnings=(*trace.warnings, warning))
    return replace(
        trace,
        input_tokens=usage.input,
        output_tokens=usage.output,
        cached_tokens=usage.cached,
        cache_write_tokens=usage.cache_write,
        cost_usd=trace.cost_usd if usage.cost_usd is None else usage.cost_usd,
        model=trace.model or (model if isinstance(model, str) else None),
    )


def _read_at(data: Any, path: str, question: Sequence[Message]) -> Trace:
    """The answer at a path; ValueError, with the fields that exist, if it is missing or null."""
    value = look_up(data, read_path(path))
    if value is MISSING:
        raise ValueError(f"the reply has no `{path}`: {_existing(data, read_path(path))}")
    if value is None or value == "":
        raise ValueError(f"the reply's `{path}` is {'null' if value is None else 'empty'}")
    if isinstance(value, str):
        return Trace(messages=(Message("assistant", value),))
    return read_reply(json.dumps(value, ensure_ascii=False), question)


def _existing(data: Any, steps: tuple[str, ...]) -> str:
    known = next(
        count for count in range(len(steps)) if look_up(data, steps[: count + 1]) is MISSING
    )
    value = look_up(data, steps[:known])
    parent = f"`{'.'.join(steps[:known])}`" if known else "it"
    if isinstance(value, Mapping) and not value:
        return f"{parent} is an empty object"
    if isinstance(value, Mapping):
        names = [shown(name) for name in value]
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        return f"{parent} has {', '.join(names[:_MAX_NAMES])}{more}"
    if isinstance(value, list):
        return f"{parent} is a list of {len(value)}"
    return f"{parent} is {shown(value)}"
