"""`mock`: prepared answers, for suites that need no agent; it can replace an agent or a judge."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

import regex
from pydantic import AfterValidator, Field, model_validator

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import quoted
from agentevals_action.model.messages import Message, read_message
from agentevals_action.model.target import Provider, ProviderContext, Request, Target
from agentevals_action.model.trace import Trace, list_calls
from agentevals_action.targets.message_texts import content_text
from agentevals_action.validation.file_model import FileModel, ListOf, errors_at

_SEARCH_SECONDS = 2.0  # the limit for the search of one pattern


def _check_pattern(pattern: str) -> str:
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError) as error:
        raise ValueError(f"the pattern is not a valid regular expression: {error}") from None
    return pattern


def _check_response(response: Any) -> Any:
    read_answers(response)
    return response


class Response(FileModel):
    """One answer and its pattern."""

    pattern: Annotated[str, AfterValidator(_check_pattern)] = Field(
        description="Regular expression that is searched in the last user message."
    )
    response: Annotated[Any, AfterValidator(_check_response)] = Field(
        description="The answer: a string, a list of messages, or a list of answers that are used "
        "in turn, by sample."
    )


def read_answers(response: Any) -> Sequence[tuple[Message, ...]]:
    """The answers of a response, used in turn by sample: a list of messages is one answer, a list
    with a string or a list of messages is several. ValueError if it is not one."""
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


class Mock(Target):
    """Prepared answers: the first whose pattern matches the last user message; without any, the
    answer is that message."""

    provider: ClassVar[str] = "mock"
    is_model: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    responses: ListOf[Response] = Field(
        (), min_length=1, description="The answers in order; the first match is used."
    )
    response: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="The answer to every question, instead of `responses`."
    )
    delay_ms: float = Field(0, ge=0, description="Milliseconds until the answer.")

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if self.response is not None and self.responses:
            raise errors_at({("response",): "`responses` answers already; remove one of them"})
        return self

    def warnings(self) -> Sequence[tuple[str, str, str]]:
        """A target without an answer of its own."""
        if self.response is not None or self.responses:
            return ()
        problem = "this `mock` target has no `responses`, and answers with the question itself"
        return (("name", problem, "write `responses`, or `response` for one fixed answer"),)

    def connect(self, context: ProviderContext) -> Provider:  # noqa: ARG002  # of the interface
        """The answers."""
        return _Connected(self)


class _Connected(Provider):
    def __init__(self, target: Mock) -> None:
        self._delay = target.delay_ms / 1000
        self._answers = [
            (regex.compile(pair.pattern), read_answers(pair.response)) for pair in target.responses
        ]
        self._fixed = target.response

    async def complete(self, request: Request) -> Trace:
        questions = [message for message in request.messages if message.role == "user"]
        try:
            text = content_text(questions[-1]) if questions else ""
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
        await asyncio.sleep(min(self._delay, request.timeout))
        if self._delay > request.timeout:
            raise AttemptError("timeout", f"no answer within {request.timeout:g} s")
        if not self._answers:
            return _trace(_answer(text if self._fixed is None else self._fixed))
        for pattern, answers in self._answers:
            try:
                match = pattern.search(text, timeout=_SEARCH_SECONDS)
            except TimeoutError:
                problem = f"the mock pattern {pattern.pattern!r} ran for over {_SEARCH_SECONDS:g} s"
                raise AttemptError("configuration", problem) from None
            if match is not None:
                return _trace(answers[request.attempt % len(answers)])
        raise AttemptError(
            "target",
            f"none of the {len(self._answers)} mock responses matches {quoted(text)}",
            "add a response with a pattern that does",
        )


def _trace(messages: tuple[Message, ...]) -> Trace:
    """The trace of messages that show every call."""
    calls = sum(message.role == "assistant" for message in messages)
    return Trace(messages, list_calls(messages), calls)
