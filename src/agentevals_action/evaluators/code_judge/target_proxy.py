"""An HTTP proxy on the loopback through which one code judge calls targets without their keys."""

import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import cut
from agentevals_action.model.evaluator import Judges
from agentevals_action.model.messages import Message, wire_messages
from agentevals_action.system.loopback_server import (
    HttpAnswer,
    HttpRequest,
    LoopbackServer,
    RefusedRequest,
    is_token,
)
from agentevals_action.validation.field_errors import invalid_json

#: Bytes of a request's body.
MAX_BODY = 10 * 1024 * 1024
_NAME = 200  # characters of a path or a name that an error quotes

_METHODS = {"/info": "GET", "/invoke": "POST", "/invokeBatch": "POST"}
#: Refusals that do not explain the failure of a judge.
_QUIET = (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)


class Question(BaseModel):
    """The body of `/invoke`."""

    model_config = ConfigDict(strict=True)

    question: str = Field(min_length=1)
    system_prompt: str | None = Field(default=None, alias="systemPrompt")
    target: str | None = None


class Batch(BaseModel):
    """The body of `/invokeBatch`."""

    model_config = ConfigDict(strict=True)

    requests: list[Question]


@dataclass
class TargetProxy:
    """A running proxy. `calls` counts the calls of targets; `last_error` is the last refusal that
    may explain the failure of a judge."""

    judges: Judges
    max_calls: int
    token: str
    url: str = ""
    calls: int = 0
    last_error: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the judge's program reads."""
        return {"AGENTV_TARGET_PROXY_URL": self.url, "AGENTV_TARGET_PROXY_TOKEN": self.token}

    def check(self, request: HttpRequest) -> None:
        """RefusedRequest for a request without the token."""
        if not is_token(request.headers.get("authorization", ""), f"Bearer {self.token}"):
            message = "the bearer token AGENTV_TARGET_PROXY_TOKEN is required"
            raise RefusedRequest(HTTPStatus.UNAUTHORIZED, message)

    def refuse(self, error: RefusedRequest) -> HttpAnswer:
        """The answer to a refused request; it is kept if it may explain the failure of a judge."""
        if error.status not in _QUIET:
            self.last_error = str(error)
        unauthorized = error.status is HTTPStatus.UNAUTHORIZED
        headers = {"WWW-Authenticate": "Bearer"} if unauthorized else {}
        return HttpAnswer(_encode({"error": str(error)}), status=error.status, headers=headers)

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        """The answer to an authorised request."""
        path = request.path
        if path not in _METHODS:
            message = f"there is no {cut(path, _NAME)}; known are {', '.join(_METHODS)}"
            raise RefusedRequest(HTTPStatus.NOT_FOUND, message)
        if request.method != _METHODS[path]:
            raise RefusedRequest(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} needs {_METHODS[path]}")
        data: Mapping[str, Any] = {
            "targetName": self.judges.default,
            "maxCalls": self.max_calls,
            "callCount": self.calls,
            "availableTargets": list(self.judges.names),
        }
        try:
            if path == "/invoke":
                question = Question.model_validate_json(request.body)
                (data,) = await self._ask([question])
            elif path == "/invokeBatch":
                batch = Batch.model_validate_json(request.body)
                data = {"responses": await self._ask(batch.requests)}
        except ValidationError as error:
            problem = f"the body cannot be read: {invalid_json(error)}"
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, problem) from None
        return HttpAnswer(_encode(data))

    async def _ask(self, questions: Sequence[Question]) -> list[Mapping[str, Any]]:
        for question in questions:
            if question.target is not None and question.target not in self.judges.names:
                names = ", ".join(self.judges.names)
                problem = f"there is no target {cut(question.target, _NAME)!r}; known are {names}"
                raise RefusedRequest(HTTPStatus.BAD_REQUEST, problem)
        if self.calls + len(questions) > self.max_calls:
            raise RefusedRequest(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"the limit of {self.max_calls} calls is reached ({self.calls} made, "
                f"{len(questions)} asked for); `target.max_calls` raises it",
            )
        # Counted before they are made, so that concurrent requests share the limit.
        self.calls += len(questions)
        replies: list[Mapping[str, Any]] = []
        # One after the other, as in AgentV: a target may keep a conversation.
        for question in questions:
            messages = [Message("user", question.question)]
            if question.system_prompt:
                messages.insert(0, Message("system", question.system_prompt))
            try:
                trace = await self.judges.ask(question.target or self.judges.default, messages)
            except AttemptError as error:
                raise RefusedRequest(HTTPStatus.BAD_GATEWAY, str(error)) from None
            reply: dict[str, Any] = {
                "rawText": trace.output,
                "output": wire_messages(trace.messages),
            }
            usage = trace.usage
            if usage.total_tokens is not None:
                reply["tokenUsage"] = {"input": usage.input_tokens, "output": usage.output_tokens}
            replies.append(reply)
        return replies


def _encode(data: Mapping[str, Any]) -> bytes:
    # ASCII: an answer may hold half of a surrogate pair, which UTF-8 cannot encode.
    return json.dumps(data).encode("ascii")


@asynccontextmanager
async def target_proxy(judges: Judges, max_calls: int) -> AsyncIterator[TargetProxy]:
    """A proxy on a free port of the loopback; at the end it is closed, and its calls are cancelled.

    AttemptError of kind `evaluator` if no port can be opened."""
    proxy = TargetProxy(judges, max_calls, secrets.token_urlsafe(32))
    server = LoopbackServer(proxy.check, proxy.answer, proxy.refuse, MAX_BODY)
    async with AsyncExitStack() as stack:
        try:
            proxy.url = await stack.enter_async_context(server.listen())
        except OSError as error:
            raise AttemptError(
                "evaluator", f"the judge's target proxy cannot listen: {error.strerror}"
            ) from error
        yield proxy
