"""`http`: an agent behind a service of one's own. A test in as JSON, a text or a URL, an answer out
at a path of the reply."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import urlsplit

from msgspec import Meta, field

from agentevals_action.entries.entry import Before, Seen, Written, checks
from agentevals_action.errors import AttemptError
from agentevals_action.model.json_values import MISSING, look_up, read_path, shown
from agentevals_action.model.messages import prompt_text, wire_messages
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.system import redaction
from agentevals_action.targets import base, variables
from agentevals_action.targets.apis.http_client import HttpClient
from agentevals_action.targets.apis.http_errors import Service
from agentevals_action.targets.reply_envelope import read_reply

#: What a template may name; nothing of the answer that is expected.
VARIABLES = ("prompt", "input", "id", "sample", "conversation_id", "metadata")

_WITH_BODY = ("POST", "PUT", "PATCH")
_METHODS = (*_WITH_BODY, "GET", "DELETE")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: They follow from the request itself.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_KEYS_SHOWN = 10  # names that an error lists of an object that lacks the one asked for


def _template(text: str) -> str:
    """A text, checked when it is a template. What `${{ }}` names is filled in before the template
    is."""
    if not _is_template(
        text := variables.resolve(text, dict.fromkeys(variables.names_in(text), "x"))
    ):
        return text
    from agentevals_action.templating import unknown_variables

    if unknown := unknown_variables(text, frozenset(VARIABLES), "the text"):
        known = ", ".join(f"`{name}`" for name in VARIABLES)
        raise ValueError(
            f"it names {', '.join(f'`{name}`' for name in unknown)}, which there is not; write any of {known}"
        )
    return text


def _is_template(text: str) -> bool:
    return any(sign in text for sign in ("{{", "{%", "{#"))


def _checked(value: Any, place: str) -> Any:
    """A body as plain data, its templates checked."""
    if isinstance(value, Mapping):
        return {
            str(key): _checked(item, f"{place}.{key}" if place else str(key))
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_checked(item, f"{place}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, str):
        try:
            _template(value)
        except ValueError as error:
            raise ValueError(f"in `{place}`, {error}" if place else str(error)) from None
    elif value is not None and not isinstance(value, bool | int | float):
        raise ValueError("what it holds is no JSON; write texts, numbers, lists and objects")
    return value


def _upper(method: Any) -> Any:
    return method.upper() if isinstance(method, str) else method


class Http(base.ProviderOptions):
    """An agent behind a service that speaks HTTP."""

    provider: ClassVar[str] = "http"

    url: Annotated[
        str,
        Meta(
            description="The service. Behind its host it may be a template as `body` is (`…/ask?q={{ prompt }}`); what is printed is "
            "encoded."
        ),
    ]
    method: Annotated[
        Annotated[str, Before(_upper)],
        Meta(
            description="POST, PUT or PATCH, which carry a body, or GET or DELETE, which carry none."
        ),
    ] = "POST"
    headers: Annotated[
        dict[str, str], Meta(description="Headers of the request; keys in them as `${{ NAME }}`.")
    ] = field(default_factory=dict)
    body: Annotated[
        Any,
        Meta(
            description="A Jinja template, or an object or a list whose strings are templates, which is sent as JSON; there `{{ input }}` "
            f"alone is the data itself. Variables: {', '.join(VARIABLES)}. Without it: {{prompt, messages, id}}, and the conversation_id "
            f"of a test that has one."
        ),
    ] = None
    output_path: Annotated[
        str | None,
        Meta(
            description="Where the answer is in a JSON reply, as choices.0.message.content; without it the reply is the answer."
        ),
    ] = None

    @checks("url")
    @classmethod
    def _is_url(cls, url: str, _seen: Seen) -> str:
        filled = _template(url)
        if "${{" not in url:
            parts = urlsplit(filled)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("write a URL that begins with http:// or https://")
            if _is_template(parts.netloc):
                raise ValueError(
                    "the host cannot be a template; write it out, or give it as `${{ NAME }}`"
                )
        return url

    @checks("method")
    @classmethod
    def _is_method(cls, method: str, _seen: Seen) -> str:
        if method not in _METHODS:
            raise ValueError(f"the method is none of these; write one of {', '.join(_METHODS)}")
        return method

    @checks("headers")
    @classmethod
    def _can_be_sent(cls, headers: dict[str, str], _seen: Seen) -> dict[str, str]:
        seen = set()
        for name, value in headers.items():
            if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS or name.lower() in seen:
                raise ValueError(f"{shown(name)} cannot be sent; leave it out")
            if not (
                value.strip().isascii() and value.strip().isprintable()
            ):  # never the value: it may be a key
                raise ValueError(
                    f"{shown(name)} has characters that no header can carry; correct it"
                )
            seen.add(name.lower())
        return headers

    @checks("body")
    @classmethod
    def _has_good_templates(cls, body: Any, _seen: Seen) -> Any:
        if body is not None and not isinstance(body, str | Mapping | list | tuple):
            raise ValueError("write a text, an object or a list")
        return _checked(body, "")

    @checks("output_path")
    @classmethod
    def _is_path(cls, path: str | None, _seen: Seen) -> str | None:
        if path is not None:
            read_path(path)
        return path

    def completed(self, _written: Written) -> Self:
        """Itself; ValueError when its body cannot be sent so."""
        if self.body is not None and self.method not in _WITH_BODY:
            raise ValueError(f"{self.method} carries no `body`; leave it out, or use POST")
        if isinstance(self.body, dict | list) and "json" not in (self.content_type or "json"):
            raise ValueError(
                "the `body` is sent as JSON, and `headers` say otherwise; write the body as a text, or another Content-Type"
            )
        return self

    @property
    def content_type(self) -> str | None:
        """The Content-Type that the headers give, in lower case."""
        return next(
            (
                value.lower()
                for name, value in self.headers.items()
                if name.lower() == "content-type"
            ),
            None,
        )

    def connect(self, surroundings: base.ProviderContext) -> base.Provider:  # noqa: ARG002
        """The service."""
        return _Connected(self)


class _Connected:
    def __init__(self, options: Http) -> None:
        self._options = options
        headers = {
            name: value.strip() for name, value in options.headers.items()
        }  # a secret is easily stored with the end of its line
        parts = urlsplit(options.url)
        secret = [value for name, value in headers.items() if redaction.looks_secret(name)]
        self._endpoint = HttpClient(
            Service(
                url=f"{parts.scheme}://{parts.netloc}/",
                key_hint="check the credentials in the target's `headers`",
                url_field="url",
                headers=headers,
                secrets=tuple(
                    word
                    for value in secret
                    for word in (value, *value.split())
                    if len(word) >= redaction.MIN_LENGTH
                ),
            )
        )

    async def complete(self, request: base.Request) -> Trace:
        try:
            url, content, kind = _sent(self._options, request)
        except (OSError, ValueError, RecursionError) as error:
            raise AttemptError("configuration", f"the request cannot be made: {error}") from None
        headers = {"Content-Type": kind} if kind and self._options.content_type is None else None
        answer = await self._endpoint.send(
            self._options.method, url, content, request.timeout, headers
        )
        try:
            if not answer.body.strip():
                raise ValueError("the reply is empty")
            if self._options.output_path is None:
                return read_reply(answer.body.decode("utf-8-sig", "replace"))
            return _found(answer.json(), self._options.output_path)
        except (ValueError, RecursionError) as error:
            raise self._endpoint.reply_error(error) from None

    async def check(self, request: base.Request) -> None:
        """The request itself, whose reply has to be readable: a service promises nothing
        smaller."""
        await self.complete(request)

    async def close(self) -> None:
        """Closes the connections."""
        await self._endpoint.close()


def _sent(options: Http, request: base.Request) -> tuple[str, bytes | None, str | None]:
    """The URL, the body and its Content-Type; ValueError or OSError when the test cannot be put
    into them."""
    values = _values(request)
    url = options.url
    if _is_template(url):
        from agentevals_action.templating import render_text

        url = render_text(url, values, "`url`", "url")
    if options.method not in _WITH_BODY:
        return url, None, None
    if isinstance(options.body, str):
        text, kind = _text_body(options.body, options.content_type, values)
        return url, text.encode("utf-8", "replace"), kind
    body = _default(values) if options.body is None else _filled(options.body, values, "body")
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    except TypeError as error:
        raise ValueError(f"`body` is no JSON once it is filled in: {error}") from None
    return url, text.encode("utf-8", "replace"), "application/json"


def _values(request: base.Request) -> Mapping[str, Any]:
    return {
        "prompt": prompt_text(request.messages),
        "input": wire_messages(request.messages),
        "id": request.eval_id,
        "sample": request.attempt,
        "conversation_id": request.conversation_id,
        "metadata": request.metadata,
    }


def _default(values: Mapping[str, Any]) -> Mapping[str, Any]:
    conversation = (
        {"conversation_id": values["conversation_id"]}
        if values["conversation_id"] is not None
        else {}
    )
    return {
        "prompt": values["prompt"],
        "messages": values["input"],
        "id": values["id"],
        **conversation,
    }


def _filled(value: Any, values: Mapping[str, Any], place: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, values, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values, f"{place}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, str) or not _is_template(value):
        return value
    from agentevals_action.templating import render_value

    return render_value(value, values, f"`{place}`")


def _text_body(
    template: str, content_type: str | None, values: Mapping[str, Any]
) -> tuple[str, str]:
    """The template filled in, and its Content-Type. JSON is told by the header, or by how the
    template begins: no text of a test can end a string of it."""
    from agentevals_action.templating import render_text

    begins = template.lstrip()
    if (
        "json" in content_type
        if content_type
        else begins.startswith("[") or re.match(r"\{(?![{%#])", begins)
    ):
        text = render_text(template, values, "`body`", "json")
        try:
            json.loads(text)
        except ValueError as error:
            advice = "write texts in quotes and data without, or the body as an object"
            raise ValueError(
                f"`body` is no JSON once it is filled in ({error}): {advice}"
            ) from None
        return text, "application/json"
    form = content_type is not None and "x-www-form-urlencoded" in content_type
    return render_text(
        template, values, "`body`", "url" if form else "text"
    ), "text/plain; charset=utf-8"


def _found(data: Any, path: str) -> Trace:
    """The answer at the path; ValueError, which says what there is instead, when it is missing or
    null."""
    value = look_up(data, read_path(path))
    if value is MISSING:
        raise ValueError(f"the reply has no `{path}`: {_instead(data, read_path(path))}")
    if value is None or value == "":
        raise ValueError(f"the reply's `{path}` is {'null' if value is None else 'empty'}")
    if isinstance(value, str):
        return Trace(messages=(Message("assistant", value),), llm_call_count=1)
    return read_reply(json.dumps(value, ensure_ascii=False))


def _instead(data: Any, steps: tuple[str, ...]) -> str:
    known = next(
        count for count in range(len(steps)) if look_up(data, steps[: count + 1]) is MISSING
    )
    here = look_up(data, steps[:known])
    place = f"`{'.'.join(steps[:known])}`" if known else "it"
    if isinstance(here, Mapping):
        names = [shown(name) for name in here]
        more = f" and {len(names) - _KEYS_SHOWN} more" if len(names) > _KEYS_SHOWN else ""
        return (
            f"{place} holds {', '.join(names[:_KEYS_SHOWN])}{more}"
            if names
            else f"{place} is an empty object"
        )
    if isinstance(here, list):
        return f"{place} is a list of {len(here)}"
    return f"{place} is {shown(here)}"
