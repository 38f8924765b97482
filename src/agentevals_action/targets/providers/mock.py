"""`mock`: answers written down beforehand, for suites that need no agent; it stands in for an agent
and for a judge alike."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import regex
from msgspec import Meta

from agentevals_action.entries.entry import Entry, Seen, checks
from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import content_text, read_message
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.targets import base
from agentevals_action.targets.reply_envelope import trace_of

#: Seconds that a pattern may search.
_SEARCH_LIMIT = 2.0
_MOST_CHARACTERS = 50_000  # of a pattern: longer ones take long to compile
_SHOWN = 80  # characters of a message that an error quotes


class Response(Entry):
    """One answer, and when it is given."""

    pattern: Annotated[
        str,
        Meta(
            description="Regular expression that is searched in the text of the last user message."
        ),
    ]
    response: Annotated[
        Any,
        Meta(
            description="The answer: a string, a list of messages, or a list of answers that are used in turn, by sample."
        ),
    ]

    @checks("pattern")
    @classmethod
    def _compiles(cls, pattern: str, _seen: Seen) -> str:
        if len(pattern) > _MOST_CHARACTERS:
            raise ValueError(
                f"the pattern is longer than {_MOST_CHARACTERS:,} characters; write a shorter one"
            )
        try:
            regex.compile(pattern)
        except regex.error as error:
            raise ValueError(f"the pattern is no regular expression: {error}") from None
        except RecursionError:
            raise ValueError(
                "the pattern is nested too deeply for a regular expression; write a flatter one"
            ) from None
        return pattern

    @checks("response")
    @classmethod
    def _answers(cls, response: Any, _seen: Seen) -> Any:
        turns(response)
        return response


def turns(response: Any) -> Sequence[tuple[Message, ...]]:
    """The answers that a response stands for, one for each sample in turn; ValueError when it is
    none.

    A list of nothing but messages is one answer; a list with a string or a list of messages in it
    is several."""
    if isinstance(response, list | tuple) and not all(
        isinstance(item, Mapping) for item in response
    ):
        return [_answer(item) for item in response]
    return [_answer(response)]


def _answer(item: Any) -> tuple[Message, ...]:
    if isinstance(item, str):
        return (Message("assistant", item),)
    if isinstance(item, Mapping):
        return (read_message(item),)
    if not isinstance(item, list | tuple) or not item:
        raise ValueError("a response is a string, a list of messages, or a list of such answers")
    return tuple(read_message(part) for part in item)


class Mock(base.ProviderOptions):
    """Answers from a list: the first whose pattern is found in the last user message."""

    provider: ClassVar[str] = "mock"
    is_model: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    responses: Annotated[
        tuple[Response, ...],
        Meta(min_length=1, description="The answers, tried in order; the first match is given."),
    ]
    delay_ms: Annotated[
        float, Meta(ge=0, description="Milliseconds until the answer is given.")
    ] = 0

    def connect(self, surroundings: base.ProviderContext) -> base.Provider:  # noqa: ARG002
        """The list, ready to answer."""
        return _Connected(self)


class _Connected:
    def __init__(self, options: Mock) -> None:
        self._delay = options.delay_ms / 1000
        self._answers = [
            (regex.compile(item.pattern), turns(item.response)) for item in options.responses
        ]

    async def complete(self, request: base.Request) -> Trace:
        asked = [message for message in request.messages if message.role == "user"]
        try:
            text = content_text(asked[-1]) if asked else ""
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
        import asyncio  # late: targets are read without an event loop

        if self._delay > request.timeout:
            await asyncio.sleep(request.timeout)
            raise AttemptError("timeout", f"no answer within {request.timeout:g} s")
        if self._delay:
            await asyncio.sleep(self._delay)
        for pattern, answers in self._answers:
            if _found(pattern, text):
                return trace_of(answers[request.attempt % len(answers)])
        shown = " ".join(text.split())
        shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
        raise AttemptError(
            "target",
            f"none of the {len(self._answers)} mock responses matches {shown!r}",
            "add a response with a pattern that does",
        )

    async def check(self, request: base.Request) -> None:
        """Always there."""

    async def close(self) -> None:
        """Holds nothing open."""


def _found(pattern: "regex.Pattern[str]", text: str) -> bool:
    try:
        return pattern.search(text, timeout=_SEARCH_LIMIT) is not None
    except TimeoutError:
        raise AttemptError(
            "configuration",
            f"the mock pattern {pattern.pattern!r} ran for over {_SEARCH_LIMIT:g} s",
        ) from None
